"""Collects the results of an Open Protocol controller: live ones, missed ones, and those of commands."""

import asyncio
from collections.abc import Sequence

import structlog

from edge.equipment.device import DeviceOutcomeUnknownError
from edge.equipment.remembered_text import RememberedText
from edge.equipment.result_ledger import ReportedResult, ResultClaim, Standing
from edge.equipment.result_numbers import Position
from edge.equipment.result_settlement import ResultSettlement
from edge.equipment.unclaimed import LateResults
from edge.features.openprotocol.conversion import TighteningResult, is_batch, lacking
from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.protocol.mids import Decline, Mid, parse_message, revisions_of
from edge.features.openprotocol.protocol.session import DeclinedError, OpenProtocolSession, UnansweredError
from edge.features.openprotocol.reports import RememberedResult, batch_of, claim_of, decode_memory, reported
from edge.features.openprotocol.settled import OnOwn, SettledTightenings, is_confirmed
from edge.features.openprotocol.state import ToolState
from edge.foundation.errors import Refused
from edge.foundation.listeners import ChangeSignal
from edge.foundation.text import Text
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

_log = structlog.get_logger(__name__)


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
        self._settled = SettledTightenings(session, state, reporter, memory, inbox, acknowledgement, on_own)
        self._settlement = ResultSettlement(state.ledger, reporter, self._settled)
        self._correlation = correlation
        self._counts = counts
        self._taking = asyncio.Lock()
        self._may_come_late = False
        """Whether an answer was not awaited to the end on this connection."""

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
        return any(self._ledger.owes(kept_result.report) for kept_result in self._ledger.unsettled())

    def remember(self, command: Command) -> None:
        """Record what a command of an earlier connection expects."""
        self._state.remember(command, self._correlation)

    def find(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command in their order; none until all have come."""
        answer = self._ledger.answer(command.command_id)
        if answer is None:
            return ()
        return self.parts(command) if is_batch(command) else (answer.payload,)

    def whole(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command; raise DeviceOutcomeUnknownError for a batch that lacks some.

        Those that come now, or came after the end of the batch, are further ones.
        """
        results = self.find(command)
        if not is_batch(command):
            return results
        if missing := lacking(results):
            raise DeviceOutcomeUnknownError(
                Text.of("the batch has ended, and {missing} of its results have not come", missing=missing)
            )
        self._ledger.close(command.command_id, self._batch(command))
        return results

    def parts(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command that have come, in their order."""
        return [report.payload for report in self._batch(command)]

    def _batch(self, command: Command) -> Sequence[ReportedResult]:
        return batch_of(self._ledger.results(command.command_id))

    async def handle_live(self, result: TighteningResult) -> None:
        """Keep a live result; the numbers that are missing before it are requested later."""
        received = {"received": asyncio.get_running_loop().time()}
        await self._take(received | dict(result))

    async def restore(self) -> None:
        """Begin a connection; the first one restores what survived a restart. Raises Unavailable without the store."""
        self._ledger.connect()
        self.retry()
        if self._state.is_restored:
            return
        memory = decode_memory(await self._memory.recall())
        self._numbers.last, self._state.last = memory.number, memory.last
        self._state.has_memory = memory.number is not None
        for remembered_result in memory.unsettled:
            await self._restore(remembered_result)
        if memory.last is not None:
            self._numbers.instant = memory.last.instant
            if memory.last.key not in self._state.pending:
                self._ledger.restore(memory.last.report)
        self._state.is_restored = True

    async def _restore(self, kept: RememberedResult) -> None:
        """Restore a result that was kept for a command: as durable if it is stored, else as one that may come again."""
        command_id, is_awaited = kept.command_id, await self._reporter.is_awaited(kept.command_id)
        if not is_awaited and await self._reporter.is_stored(command_id, kept.report.result_id):
            self._ledger.restore(kept.report)
            return
        self._state.pending[kept.key] = kept
        if not is_awaited:
            # The command was given up meanwhile: as its result it is late.
            self._ledger.claim(ResultClaim(command_id, classification=kept.classification), kept.identifier)

    async def catch_up(self) -> None:
        """Request the latest result; those that were missed before it are requested later.

        The first connection of all reports no earlier results.
        """
        try:
            latest = await self._request(0)
        except UnansweredError:
            return
        if not self._counts:
            return
        if latest is None:
            self._numbers.last = self._numbers.last or 0
            await self._settled.write()
            return
        report = self.reported(latest)
        standing = self._ledger.judge(report).standing
        if standing is Standing.OF_COMMAND or self._numbers.is_new(report.sequence, report.instant):
            await self._take(latest)
        elif standing is not Standing.REPEATED:
            self._ledger.note(report)
        # Follow it last: a result that could not be kept is requested on the next connection.
        if not await self._follow_again(report):
            self._numbers.follow(report.sequence, report.instant)
        await self._settled.write()

    async def _follow_again(self, report: ReportedResult) -> bool:
        """Return whether the numbers began again since the last result, which has or had that number or a later one.

        The result of that number is newer then. Without dates nothing shows it.
        """
        last, before, instant = self._numbers.last, self._numbers.instant, report.instant
        if not last or report.sequence < last or before is None or instant is None or instant <= before:
            return False
        try:
            found = report.payload if report.sequence == last else await self._request_numbered(last)
        except UnansweredError:
            return False
        again = None if found is None else self.reported(found).instant
        if again is None or again <= before:
            return False
        self._numbers.begin_again(report.sequence, instant, before)
        return True

    def retry(self) -> None:
        """Request the results again whose requests were not answered."""
        self._numbers.retry()

    async def fill(self) -> None:
        """Request the newest missed results, at most twenty; older ones stay missing.

        One whose request is not answered is requested again later. It ends the series: its answer may come late.
        """
        if not self._counts:
            self._numbers.gaps, self._numbers.deferred = [], []
        if not self._numbers.gaps:
            return
        gap, found, misses = self._numbers.gaps[-1], list[TighteningResult](), 0
        number = gap.last
        while number >= max(gap.first, gap.last - MOST_REQUESTS + 1) and misses < _MISSES and self._counts:
            try:
                result = await self._request_numbered(number)
            except UnansweredError:
                self._numbers.defer(number, gap.after)
                number -= 1
                break
            instant = self.reported(result).instant if result else None
            if gap.after and instant and instant <= gap.after:
                # Those before it are older still.
                misses = _MISSES
                break
            misses = 0 if result else misses + 1
            found += [result] if result and (instant or not gap.after) else []
            number -= 1
        for result in reversed(found):
            await self._take(result)
        is_at_end = misses >= _MISSES or not self._counts
        self._numbers.narrow(gap, gap.first - 1 if is_at_end else number)
        await self._settled.write()

    async def search(self, command: Command) -> None:
        """Search the newest unsettled results for those of a command by its mark; without marks, fill the gaps.

        Only the latest result is read from a controller whose results cannot be requested by number. The results of a
        batch follow each other: after them, the first result of another command ends the search.
        """
        if self._correlation == "next":
            await self.catch_up()
            await self.fill()
            return
        latest = await self._request_or_skip(0)
        number = latest["result"] or 0 if latest else 0
        most = _SEARCHED_FOR_BATCH if is_batch(command) else _SEARCHED
        settled = self._state.durable_number if self._state.has_memory else None
        floor = max(1, number - most + 1, (settled or 0) + 1)
        while latest is not None and (is_batch(command) or not self.find(command)):
            is_own = bool(latest) and self._ledger.marks.get(latest["identifier"]) == command.command_id
            if is_own:
                await self._take(latest)
            number -= 1
            at_end = number < floor or (bool(latest) and not is_own and bool(self.parts(command)))
            latest = None if at_end or not self._counts else await self._request_or_skip(number)

    async def surrender(self, command: Command) -> None:
        """Report the results of a command that does not take them: it was stopped, or its outcome is unknown."""
        self._ledger.release(command.command_id)
        await self.settle_left()

    async def settle(self, command: Command) -> None:
        """Drop and acknowledge the results of a command whose answer is durable; report further ones as late."""
        await self._settlement.settle(command.command_id)
        await self.settle_left()

    async def settle_left(self) -> None:
        """Report and acknowledge the results of commands that no longer wait; raises Unavailable without the store."""
        await self._settlement.settle_left()
        self.changed.set()

    async def _take(self, result: TighteningResult) -> None:
        """Keep the result of a command that waits; report any other and acknowledge it then."""
        report = self.reported(result)
        async with self._taking:
            verdict = self._ledger.judge(report)
            if verdict.standing is Standing.REPEATED:
                if is_confirmed(report):
                    self._ledger.renew(report)
                if verdict.is_owed or not self._is_unsettled(report):
                    await self._settled.confirm(report)
            elif await self._settlement.take(report, verdict):
                self.changed.set()
                await self._settled.note(report, verdict.command_id)
            if "confirmed" in report.payload:
                # At its receipt on this connection: from then on an equal frame is a result of its own.
                self._ledger.acknowledge(report, report.payload["confirmed"])
            if report.frame and self._counts and verdict.standing is not Standing.REPEATED:
                self._numbers.follow(report.sequence, report.instant)
        self.changed.set()

    def _is_unsettled(self, report: ReportedResult) -> bool:
        return any(kept_result.report.frame == report.frame for kept_result in self._ledger.unsettled())

    def reported(self, result: TighteningResult) -> ReportedResult:
        """Return a result of this connection for the ledger."""
        origin = self._session.controller["origin"]
        return reported(result, self._ledger.marks, correlation=self._correlation, origin=origin)

    async def _request_numbered(self, number: int) -> TighteningResult | None:
        """Request an old result as `_request`; the late answer to an earlier request counts as none."""
        result = await self._request(number)
        if result is None or result["result"] == number:
            return result
        if self._may_come_late:
            raise UnansweredError(Mid.OLD_RESULT, 0.0)
        return None

    async def _request_or_skip(self, number: int) -> TighteningResult | None:
        """Request an old result as `_request`; return an empty one when the controller does not answer."""
        try:
            return await self._request(number)
        except UnansweredError:
            return {}

    async def _request(self, number: int) -> TighteningResult | None:
        """Request an old result, 0 for the latest; None when the controller does not have it.

        Raises UnansweredError when it does not answer; the connection stays open.
        """
        answers, values = {Mid.OLD_RESULT_REPLY}, {"result": number}
        try:
            answer = await self._session.attempt(Mid.OLD_RESULT, revisions_of(Mid.OLD_RESULT_REPLY), answers, values)
            return {**parse_message(answer), "station": answer.station, "spindle": answer.spindle}
        except DeclinedError as declined:
            if declined.error != Decline.NO_RESULT:
                self._counts = False
                _log.info("old results not available", reason=declined.message)
        except UnansweredError as error:
            self._may_come_late = True
            _log.warning("old result not requested", result=number, reason=error.message)
            raise
        except Refused as refusal:
            _log.warning("old result unreadable", result=number, reason=refusal.message)
        return None
