"""Collects the results of an Open Protocol controller: live ones, missed ones, and those of commands."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import structlog
from msgspec import Struct, field

from edge.errors import Refused, Unavailable
from edge.links.openprotocol_frame import MidFrame
from edge.links.openprotocol_mids import Decline, Mid, parse_message, revisions_of
from edge.links.openprotocol_session import DeclinedError, OpenProtocolSession
from edge.model.cloudevent import new_id
from edge.southbound.change_signal import ChangeSignal
from edge.southbound.late_result import LateResults
from edge.southbound.openprotocol_conversion import TighteningResult, created_at, is_batch, result_data
from edge.southbound.openprotocol_inbox import ResultInbox
from edge.southbound.openprotocol_reports import claim_of, decode_memory, encode_memory, mark_of, reported
from edge.southbound.remembered_text import RememberedText
from edge.southbound.result_ledger import Position, ReportedResult, ResultLedger, Standing
from edge.southbound.result_numbers import ResultNumbers
from edge.station.equipment import Command

MOST_REQUESTS = 20
"""The most old results that are requested in a row."""
_MISSES = 3
"""After so many numbers without a result, the controller has none of the older ones either."""
_SEARCHED = 50
"""The newest results that are searched for that of a command when the last number is unknown."""
_SEARCHED_FOR_BATCH = 200
"""The same for the results of a batch, with the bolts that were tightened again."""

LAST_RESULT = "last_result"
"""The name of the text with the last number and the last result."""

OnOwn: TypeAlias = Callable[[TighteningResult, str], Awaitable[bool]]
"""Offers a result of the operator's own as an event with an occurrence; returns whether a job has used it."""

_log = structlog.get_logger(__name__)


class ToolState(Struct):
    """The results of a tool and their numbers, beyond one connection."""

    ledger: ResultLedger = field(default_factory=ResultLedger)
    numbers: ResultNumbers = field(default_factory=ResultNumbers)
    is_restored: bool = False
    has_memory: bool = False
    """Whether an earlier process left the number up to which no result is missing."""

    def remember(self, command: Command, correlation: str) -> None:
        """Remember what a command expects, to recognize its result; one with invalid parameters expects nothing."""
        try:
            self.ledger.claim(claim_of(command), mark_of(command, correlation))
        except Refused as refusal:
            _log.info("command not expected", command=command.command_id, reason=refusal.message)


class TighteningCollector:
    """Collector of the results on one connection; each sets `changed`.

    With the correlation "mark", a result belongs to the command whose identifier it has; with "next", the next
    result after a start belongs to the started command. A result is acknowledged at the controller once it is durable.
    With `counts`, old results are requested by their numbers.
    """

    def __init__(
        self,
        session: OpenProtocolSession,
        state: ToolState,
        reporter: LateResults,
        memory: RememberedText,
        inbox: ResultInbox,
        *,
        correlation: str,
        counts: bool,
        acknowledgement: Mid = Mid.RESULT_ACKNOWLEDGE,
        on_own: OnOwn,
    ) -> None:
        self.changed = ChangeSignal()
        self._session = session
        self._state = state
        self._ledger = state.ledger
        self._numbers = state.numbers
        self._reporter = reporter
        self._memory = memory
        self._inbox = inbox
        self._correlation = correlation
        self._counts = counts
        self._acknowledgement = acknowledgement
        self._on_own = on_own
        self._newest: tuple[ReportedResult, str | None] | None = None
        self._taking = asyncio.Lock()

    def expect(self, command: Command, identifier: str) -> None:
        """Record the command that is about to start; `identifier` is what the controller has accepted for it."""
        self._state.remember(command, self._correlation)
        if self._correlation == "next":
            before = Position(self._numbers.last or 0, self._numbers.instant)
            self._ledger.expected = claim_of(command, identifier), before

    def is_expected(self, command: Command) -> bool:
        """Return whether the next result belongs to a command: it was started by this process."""
        expected = self._ledger.expected
        return expected is not None and expected[0].command_id == command.command_id

    @property
    def is_incomplete(self) -> bool:
        """Whether results are missing that can be requested."""
        return bool(self._numbers.gaps)

    @property
    def is_owing(self) -> bool:
        """Whether the controller waits for the acknowledgement of a result."""
        return any(self._ledger.owes(each.report) for each in self._ledger.unsettled())

    def remember(self, command: Command) -> None:
        """Record what a command of an earlier connection expects."""
        self._state.remember(command, self._correlation)

    def find(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command in their order; none until all have come."""
        answer = self._ledger.answer(command.command_id)
        if answer is None:
            return ()
        return self.parts(command) if is_batch(command) else (answer.payload,)

    def parts(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command that have come, in their order."""
        parts = self._ledger.parts(command.command_id)
        return [each.payload for each in sorted(parts, key=lambda each: each.sequence)]

    async def handle_live(self, result: TighteningResult) -> None:
        """Keep a live result; the numbers that are missing before it are requested later."""
        received = {"received": asyncio.get_running_loop().time()}
        await self._take(received | dict(result))

    async def restore(self) -> None:
        """Begin a connection; the first one restores what survived a restart. Raises Unavailable without the store."""
        self._ledger.connect()
        if self._state.is_restored:
            return
        memory = decode_memory(await self._memory.recall())
        self._numbers.last, self._numbers.instant = memory.number, memory.instant
        self._state.has_memory = memory.number is not None
        if memory.frame or memory.sequence:
            is_open = bool(memory.command_id) and await self._reporter.is_awaited(memory.command_id)
            self._ledger.restore(memory.report, is_open=is_open)
        self._state.is_restored = True

    async def catch_up(self) -> None:
        """Request the latest result; those that were missed before it are requested later.

        The first connection of all reports no earlier results.
        """
        latest = await self._request(0)
        if not self._counts:
            return
        if latest is None:
            self._numbers.last = self._numbers.last or 0
            return
        report = self.reported(latest)
        standing = self._ledger.judge(report).standing
        if standing is Standing.OF_COMMAND or self._numbers.is_new(report.sequence, report.instant):
            await self._take(latest)
        elif standing is not Standing.REPEATED:
            self._ledger.note(report)
        # Follow it last: a result that could not be kept is requested on the next connection.
        self._numbers.follow(report.sequence, report.instant)
        await self._write()

    async def fill(self) -> None:
        """Request the newest missed results, at most twenty; older ones stay missing."""
        if not self._counts:
            self._numbers.gaps = []
        if not self._numbers.gaps:
            return
        gap, found, misses = self._numbers.gaps[-1], list[TighteningResult](), 0
        number = gap.last
        while number >= max(gap.first, gap.last - MOST_REQUESTS + 1) and misses < _MISSES and self._counts:
            result = await self._request(number)
            is_found = result is not None and result["result"] == number
            misses = 0 if is_found else misses + 1
            found += [result] if result is not None and is_found else []
            number -= 1
        for result in reversed(found):
            instant = self.reported(result).instant
            if gap.after is None or (instant is not None and instant > gap.after):
                await self._take(result)
        is_at_end = misses >= _MISSES or not self._counts
        self._numbers.narrow(gap, gap.first - 1 if is_at_end else number)
        await self._write()

    async def search(self, command: Command) -> None:
        """Search the newest unsettled results for those of a command by its mark; without marks, fill the gaps.

        Only the latest result is read from a controller whose results cannot be requested by number. The results of a
        batch follow each other: after them, the first result of another command ends the search.
        """
        if self._correlation == "next":
            await self.catch_up()
            await self.fill()
            return
        latest = await self._request(0)
        number = latest["result"] or 0 if latest else 0
        most = _SEARCHED_FOR_BATCH if is_batch(command) else _SEARCHED
        settled = self._numbers.durable(self._open_numbers()) if self._state.has_memory else None
        floor = max(1, number - most + 1, (settled or 0) + 1)
        while latest is not None and (is_batch(command) or not self.find(command)):
            is_own = self._ledger.marks.get(latest["identifier"]) == command.command_id
            if is_own:
                await self._take(latest)
            number -= 1
            at_end = number < floor or (not is_own and bool(self.parts(command)))
            latest = None if at_end or not self._counts else await self._request(number)

    async def surrender(self, command: Command) -> None:
        """Report the results of a command that will not be completed as late results."""
        self._ledger.release(command.command_id)
        parts = self._ledger.parts(command.command_id) if is_batch(command) else []
        await self._report_late(command.command_id, parts)

    async def settle(self, command: Command) -> None:
        """Drop and acknowledge the results of a command whose answer is durable; report further ones as late."""
        command_id = command.command_id
        parts, further = self._ledger.parts(command_id), self._ledger.further(command_id)
        if self._ledger.answer(command_id) is not None:
            self._ledger.end(command_id)
            self._ledger.settle(parts)
            await self._write()
            for report in parts:
                await self._acknowledge(report)
            parts = []
        self._ledger.begun.discard(command_id)
        self._ledger.release(command_id)
        await self._report_late(command_id, [*parts, *further])
        self.changed.set()

    async def _report_late(self, command_id: str, reports: Iterable[ReportedResult]) -> None:
        for report in reports:
            await self._keep_late(report, command_id)
            await self._settle(report)

    async def _take(self, result: TighteningResult) -> None:
        """Keep the result of a command that waits; report any other and acknowledge it then."""
        report = self.reported(result)
        async with self._taking:
            verdict = self._ledger.judge(report)
            match verdict.standing:
                case Standing.REPEATED:
                    if verdict.is_owed or not self._is_unsettled(report):
                        await self._acknowledge(report)
                case Standing.OF_COMMAND if verdict.command_id:
                    await self._take_for(report, verdict.command_id)
                case Standing.FURTHER if verdict.command_id:
                    await self._take_further(report, verdict.command_id)
                case _:
                    if verdict.reason:
                        _log.warning("result not of the command", result=report.result_id, reason=verdict.reason)
                    await self._report_own(report)
            if _is_confirmed(report) and "is_earlier" not in report.payload:
                # It was confirmed at its receipt on this connection: an equal frame is a result of its own from now on.
                self._ledger.acknowledge(report, report.received)
            if report.frame and self._counts and verdict.standing is not Standing.REPEATED:
                self._numbers.follow(report.sequence, report.instant)
        self.changed.set()

    async def _take_for(self, report: ReportedResult, command_id: str) -> None:
        # The answer of another gateway may be committed before this one ends its own work for the command.
        if command_id == self._ledger.current or await self._reporter.is_awaited(command_id):
            self._ledger.keep(report, command_id)
            self.changed.set()
            self._newest = report, command_id
            await self._write()
            await self._acknowledge_part(report, command_id)
            return
        data, occurrence = result_data(report.payload), self._occurrence(report)
        await self._reporter.report(
            report.result_id, created_at(report.payload), command_id, data, occurrence=occurrence
        )
        self._ledger.end(command_id)
        await self._settle(report)

    async def _take_further(self, report: ReportedResult, command_id: str) -> None:
        """Keep a second result of a command as late: at once, or when the first one is durable."""
        _log.warning("second result of a command", result=report.result_id, command=command_id)
        if self._ledger.answer(command_id) is not None:
            self._ledger.keep(report, command_id, is_further=True)
            return
        await self._keep_late(report, command_id)
        await self._settle(report)

    async def _report_own(self, report: ReportedResult) -> None:
        result, occurrence = report.payload, self._occurrence(report)
        try:
            is_used = await self._on_own(result, occurrence)
        except Refused as refusal:
            _log.warning("event of a result refused", result=report.result_id, reason=refusal.message)
            is_used = False
        if not is_used:
            data = result_data(result)
            await self._reporter.report(report.result_id, created_at(result), None, data, occurrence=occurrence)
        await self._settle(report)

    async def _keep_late(self, report: ReportedResult, command_id: str) -> None:
        data, created = result_data(report.payload), created_at(report.payload)
        await self._reporter.keep(report.result_id, created, command_id, data, occurrence=self._occurrence(report))

    async def _settle(self, report: ReportedResult) -> None:
        """Record a result that is durable, then acknowledge it."""
        self._ledger.settle([report])
        self._newest = report, None
        await self._write()
        await self._acknowledge(report)

    def _occurrence(self, report: ReportedResult) -> str:
        """Return what distinguishes a result from others with its number and instant; empty where these do."""
        if report.sequence and report.instant is not None and not self._ledger.is_taken(report):
            return ""
        return new_id() if report.frame else "/".join(map(str, (*report.measured, report.payload.get("identifier"))))

    async def _acknowledge_part(self, report: ReportedResult, command_id: str) -> None:
        """Acknowledge a result before the last of its batch: without it a controller sends no further one.

        The controller keeps it: after a restart of the gateway it is requested by its number.
        """
        if self._ledger.answer(command_id) is None and not _is_confirmed(report):
            await self._acknowledge(report)

    async def _acknowledge(self, report: ReportedResult) -> None:
        """Acknowledge a result that is durable; one in the inbox was confirmed at its receipt, and is removed there."""
        if _is_confirmed(report):
            try:
                await self._inbox.remove(report.payload["kept"])
            except Unavailable as error:
                _log.info("settled result still in the inbox", reason=error.message)
        elif self._ledger.owes(report):
            # From now on an equal frame can be a result of its own.
            self._ledger.acknowledge(report, asyncio.get_running_loop().time())
            await self._session.send(MidFrame(self._acknowledgement))

    def _is_unsettled(self, report: ReportedResult) -> bool:
        return any(each.report.frame == report.frame for each in self._ledger.unsettled())

    async def _write(self) -> None:
        """Write what survives a restart."""
        number = self._numbers.durable(self._open_numbers())
        await self._memory.write(encode_memory(number, *(self._newest or (None, None))))

    def _open_numbers(self) -> list[int]:
        return [each.report.sequence for each in self._ledger.unsettled()]

    def reported(self, result: TighteningResult) -> ReportedResult:
        """Return a result of this connection for the ledger."""
        return reported(result, self._ledger.marks, correlation=self._correlation)

    async def _request(self, number: int) -> TighteningResult | None:
        """Request an old result, 0 for the latest; None when the controller does not have it."""
        answers = {Mid.OLD_RESULT_REPLY}
        try:
            answer = await self._session.negotiate(
                Mid.OLD_RESULT, revisions_of(Mid.OLD_RESULT_REPLY), answers=answers, result=number
            )
            return {**parse_message(answer), "station": answer.station, "spindle": answer.spindle}
        except DeclinedError as declined:
            if declined.error != Decline.NO_RESULT:
                self._counts = False
                _log.info("old results not available", reason=declined.message)
        except Refused as refusal:
            _log.warning("old result unreadable", result=number, reason=refusal.message)
        return None


def _is_confirmed(report: ReportedResult) -> bool:
    return "kept" in report.payload
