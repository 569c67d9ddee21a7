"""Collects the results of a tightening controller: live results and missed ones."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import structlog

from edge.equipment.remembered_text import RememberedText
from edge.equipment.result_ledger import ReportedResult, Standing
from edge.equipment.result_numbers import Position
from edge.equipment.result_settlement import ResultSettlement
from edge.equipment.unclaimed import LateResults
from edge.features.joining.conversion import command_id_of, is_single, measured_values, raw_command_id
from edge.features.joining.late import LateJoinings
from edge.features.joining.methods import IjtMethods, latest_result, listed_ids, read_result
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.reports import claim_of, reported
from edge.features.joining.schema import Result, parse_result
from edge.features.joining.settled import SettledJoinings
from edge.features.joining.state import ControllerState, ResultLimits
from edge.foundation.errors import Refused
from edge.foundation.listeners import ChangeSignal
from edge.station.equipment import Command

LAST_NUMBER = "last_sequence_number"
"""The name of the text with the SequenceNumber after which a restart continues."""
LAST_STARTED = "last_started_command"
"""The name of the text with the command that was started last, where results may have no command id."""

# Number of newest results that are searched when a result cannot be found by its SequenceNumber.
_SEARCHED = 100
# Number of newest ranges of missing results that are requested on each connection.
_RANGES = 20

_LIMITS = ResultLimits()

_log = structlog.get_logger(__name__)


class JoiningCollector:
    """Collector of the results on one connection; each result sets `changed`.

    With `acknowledge`, results of our commands are acknowledged at the controller once they are stored. With the
    `correlation` "next", a result without a command id belongs to the command that was started last.
    """

    def __init__(
        self,
        methods: IjtMethods,
        state: ControllerState,
        reporter: LateResults,
        memory: RememberedText,
        started: RememberedText,
        *,
        acknowledge: bool,
        programs: JoiningPrograms,
        correlation: Literal["command_id", "next"] = "command_id",
        late: LateJoinings,
        limits: ResultLimits = _LIMITS,
    ) -> None:
        self.changed = ChangeSignal()
        self._methods = methods
        self._known = state
        self._reporter = reporter
        self._correlation = correlation
        self._limits = limits
        self._settled = SettledJoinings(methods, state, late, acknowledges=acknowledge)
        self._settlement = ResultSettlement(state.ledger, reporter, self._settled)
        self._ledger = state.ledger
        self._memory = memory
        self._started = started
        self._programs = programs
        self._taking, self._reading = asyncio.Lock(), asyncio.Lock()
        self._came = 0
        self._earlier_until = -1
        self._latest: tuple[object, ...] = ()
        self._has_large_latest = False

    async def restore(self) -> None:
        """Restore the last SequenceNumber after a restart. Raises Unavailable without the store."""
        if self._known.is_restored:
            return
        self._known.restore(await self._memory.recall())
        self._known.earlier = await self._started.recall()

    async def handle_live(self, data: Any) -> None:
        """Keep a live result; request the results that are missing before its SequenceNumber."""
        try:
            result = parse_result(data)
        except Refused as refusal:
            await self._note_unreadable(data, refusal)
            raise
        number, last = _number_of(result), self._known.last
        await self._keep(result, is_latest=True)
        if number is not None and last is not None:
            await self._request_range(last + 1, number - 1)
        if number is not None:
            # Set it last: a result that could not be requested or kept is requested on the next connection.
            self._known.advance(number)
        await self._write()

    async def handle_requested(self, data: Any) -> None:
        """Keep a requested result and advance `last`: the next connection requests only later results."""
        self._came += 1
        try:
            result = parse_result(data)
        except Refused as refusal:
            if raw_command_id(data) is not None:
                await self._note_unreadable(data, refusal)
            raise
        number, last = _number_of(result), self._known.last
        await self._keep(result, is_new=number is None or number > self._earlier_until)
        if number is not None and last is not None:
            self._known.last = max(last, number)
            self._known.missing.remove(number, number)
        await self._write()

    def claim(self, command: Command) -> None:
        """Record what a command expects of its results."""
        self._ledger.claim(claim_of(command, self._programs))

    async def announce(self, command: Command) -> None:
        """Remember a command before its tool is prepared: a restart knows its result without a command id by it."""
        self._known.earlier = ""
        if self._correlation == "next":
            await self._started.write(command.command_id)

    def expect(self, command: Command) -> None:
        """Record the command that is about to start: the next result without a command id may belong to it."""
        self._known.unreadable = ""
        if self._correlation == "next":
            before = Position(self._known.last or 0, self._known.instant)
            self._ledger.expected = claim_of(command, self._programs), before

    def find(self, command: Command) -> Result | None:
        """Return the result of a command; None until the result has come."""
        answer = self._ledger.answer(command.command_id)
        return None if answer is None else answer.payload

    @property
    def skipped(self) -> int:
        """The number of results that were skipped because they could not be read."""
        return self._known.skipped

    @property
    def skip_reason(self) -> str:
        """Why the last of them could not be read."""
        return self._known.skip_reason

    @property
    def unreadable(self) -> str:
        """Why a result since the last start could not be read; it may be that of the command at work."""
        return self._known.unreadable

    async def is_awaited(self, command: Command) -> bool:
        """Return whether a command waits for its result; True while the store is unavailable."""
        return await self._reporter.is_awaited(command.command_id)

    def parts(self, command: Command) -> list[Result]:
        """Return the results of single joinings of a command that waits for a batch, in the order of their numbers."""
        if command.parameters.get("classification", "single") == "single":
            return []
        parts = [part for part in self._ledger.parts(command.command_id) if is_single(part.payload)]
        return [part.payload for part in sorted(parts, key=lambda reported_result: reported_result.sequence)]

    async def catch_up(self, command: Command | None = None) -> None:
        """Collect the results from the time without a connection; stop early when the result of `command` is found."""
        if command is None:
            await self.settle_left()
        await self._poll_latest(command)
        # After a restart the SequenceNumbers find no missed result; it may be among the unacknowledged ones.
        if not self._has(command):
            await self._wait_for_results(command, await self._request_unacknowledged())
        self._known.oldest = self._known.oldest or ()
        if command is None:
            await self._request_missing()

    async def _request_missing(self) -> None:
        """Request what did not come on an earlier connection; the results around it are durable."""
        for first, last in self._known.missing.ranges(self._known.last or 0)[-_RANGES:]:
            await self._request_range(first, last)

    def _has(self, command: Command | None) -> bool:
        return command is not None and self.find(command) is not None

    async def poll(self, command: Command) -> None:
        """Check for a result whose event was lost; a refusal of the controller is logged."""
        try:
            if "GetLatestResult" in self._methods:
                await self._poll_latest(command)
            else:
                await self._read_listed(command)
        except Refused as refusal:
            _log.info("results not polled", reason=refusal.message)

    async def search(self, command: Command) -> None:
        """Search for the result of a command with every method that the controller has."""
        await self.catch_up(command)
        if not self.find(command):
            await self._read_listed(command)
        if not self.find(command):
            await self._request_earlier(command)

    async def _poll_latest(self, command: Command | None) -> None:
        last = self._known.last
        try:
            latest = self._parsed(await latest_result(self._methods))
        except Refused as refusal:
            if not self._has_large_latest:
                self._has_large_latest = True
                await self._read_lost(refusal)
            return
        self._has_large_latest = False
        if latest is None or latest["ResultMetaData"].get("IsPartial"):
            return
        number, mark = _number_of(latest), _mark_of(latest)
        if mark != self._latest:
            # A number may come again, as after a power cut at the controller: the ledger knows which result is new.
            await self._keep(latest, is_new=not self._known.is_old(mark, number), is_latest=True)
            self._latest = mark
        if number is not None:
            if last is not None:
                await self._wait_for_results(command, await self._request_range(last + 1, number - 1))
            self._known.advance(number)

    def _parsed(self, data: Any) -> Result | None:
        """Return data of the controller as a result; None for none, or for one that cannot be read."""
        try:
            return None if data is None else parse_result(data)
        except Refused as refusal:
            if self._ledger.current is not None and raw_command_id(data) == self._ledger.current:
                self._known.unreadable = refusal.message
                self.changed.set()
            _log.info("stored result not readable", reason=refusal.message)
            return None

    async def _request_earlier(self, command: Command) -> None:
        """Request the results before the latest one: after a restart the last number that was seen is unknown."""
        if (last := self._known.last) is None:
            return
        # Other results among them were reported before the restart, or belong to other clients.
        self._earlier_until = last
        # The latest result is known already; a controller that numbers from 1 sends one less than the range has.
        await self._wait_for_results(command, await self._request_range(0, last, is_known=True) - 1)

    async def _read_listed(self, command: Command) -> None:
        """Read the results that the controller lists, one by one, until the result of a command is found."""
        async with self._reading:
            for result_id in self._unknown(await listed_ids(self._methods))[:_SEARCHED]:
                await self._read_result(result_id)
                if self.find(command):
                    return

    def _unknown(self, listed: Sequence[str]) -> list[str]:
        known = self._ledger.result_ids() | self._known.skipped_ids.keys()
        return [identifier for identifier in listed if identifier not in known]

    async def _read_result(self, result_id: str, *, is_lost: bool = False) -> None:
        """Keep a listed result; one that cannot be read does not hide the others."""
        try:
            result = self._parsed(await read_result(self._methods, result_id))
        except Refused as refusal:
            if refusal.kind == "too_large":
                await self._skip(result_id, refusal)
            else:
                _log.warning("listed result not read", result=result_id, reason=refusal.message)
            return
        if result is None:
            # It would not be readable the next time either.
            self._known.ignore(result_id)
            return
        number, last = _number_of(result), self._known.last
        # A result up to the last one was reported when it came, before a restart perhaps, unless its event was lost.
        await self._keep(result, is_new=is_lost or number is None or last is None or number > last)

    async def note_skipped(self, refusal: Refused) -> None:
        """Report an event that could not be read; a result that was requested comes no more."""
        self._came += 1
        self._known.missing.skip()
        await self._read_lost(refusal)
        await self._write()

    async def _read_lost(self, refusal: Refused) -> None:
        """Read the results of a message beyond the size limit one by one; report those that exceed it themselves."""
        # A poll may meet the result whose event is too large.
        async with self._reading:
            listed, skipped = await listed_ids(self._methods), self._known.skipped
            lost = self._unknown(listed)
            for result_id in lost[: self._limits.kept]:
                await self._read_result(result_id, is_lost=True)
            # With nothing new in the list, it is one that was skipped before.
            if not lost and self._known.skipped_ids.keys().isdisjoint(listed):
                await self._skip("", refusal)
            self._has_large_latest = self._has_large_latest or self._known.skipped > skipped

    async def _skip(self, result_id: str, refusal: Refused) -> None:
        """Report a result that is too large, once; it stays unacknowledged at the controller."""
        await self._reporter.skip(result_id, refusal)
        self._known.skip(result_id, refusal.message)
        self.changed.set()

    async def _note_unreadable(self, data: Any, refusal: Refused) -> None:
        """Read the stored results when one that cannot be read may be that of the command at work."""
        current = self._ledger.current
        if current is None or raw_command_id(data) not in {None, current}:
            return
        await self._poll_latest(None)
        for result_id in self._unknown(await listed_ids(self._methods))[:_SEARCHED]:
            await self._read_result(result_id, is_lost=True)
        if self._ledger.answer(current) is None:
            self._known.unreadable = refusal.message
            self.changed.set()

    async def _wait_for_results(self, command: Command | None, end: int) -> None:
        """Wait until the number of requested results reaches `end`, or the result of a command is found."""
        enough = await self.changed.wait_until(
            lambda: self._came >= end or self._has(command), self._limits.missed_seconds
        )
        if not enough:
            _log.warning("missed results incomplete", missing=end - self._came)

    async def settle(self, command: Command) -> None:
        """Acknowledge the results of a command whose answer is durable; report those of commands without one."""
        await self._settlement.settle(command.command_id)
        await self.settle_left()

    async def settle_left(self) -> None:
        """Report and acknowledge the results of commands that no longer wait; raises Unavailable without the store."""
        await self._settlement.settle_left()
        await self._write()

    async def _keep(self, result: Result, *, is_new: bool = True, is_latest: bool = False) -> None:
        if result["ResultMetaData"].get("IsPartial"):
            return
        report = reported(result, self._programs)
        # A poll may find a result while its event is handled.
        async with self._taking:
            await self._take(report, is_new=is_new)
            # The clock of a controller may be set back: what follows its latest result is newer than that one.
            instants = (report.instant, None if is_latest and report.instant else self._known.instant)
            self._known.instant = max(filter(None, instants), default=None)
        self.changed.set()

    async def _take(self, report: ReportedResult, *, is_new: bool) -> None:
        verdict = self._ledger.judge(report)
        if report.command_id is None:
            _log.info("result without command id", result=report.result_id, correlation=self._correlation)
        match verdict.standing:
            case _ if self._known.is_held(report):
                await self._settled.acknowledge_late(report)
            case Standing.REPEATED:
                if verdict.is_owed:
                    await self._settled.acknowledge_late(report)
            case Standing.UNSOLICITED if report.command_id is None and await self._was_answer(report):
                self._ledger.settle([report])
            case _:
                await self._settlement.take(report, verdict, is_new=is_new)
        self._ledger.evict(self._limits.kept, self._limits.kept_bytes)

    async def _was_answer(self, report: ReportedResult) -> bool:
        """Return whether a result is stored at the command of an earlier process, which ended before it noted that."""
        earlier = self._known.earlier
        return bool(earlier) and await self._reporter.is_stored(earlier, report.result_id)

    async def _write(self) -> None:
        """Write the SequenceNumber after which a restart continues, and those that are missing before it."""
        if (position := self._known.position()) is not None:
            await self._memory.write(position)

    async def _request_range(self, first: int, last: int, *, is_known: bool = False) -> int:
        """Request the results from one SequenceNumber to another; return the result count at which all have come.

        They are missing until they come, unless `is_known`: they came before.
        """
        first = max(first, last - self._limits.kept + 1)
        if first > last or "RequestResults" not in self._methods:
            return self._came
        end = self._came + last - first + 1
        if not is_known:
            self._known.missing.add(first, last)
        try:
            await self._methods.call("RequestResults", first, last)
        except Refused as refusal:
            _log.warning("missed results not requested", first=first, last=last, reason=refusal.message)
            self._known.missing.remove(first, last)
            return self._came
        return end

    async def _request_unacknowledged(self) -> int:
        """Request the unacknowledged results; return the result count as `_request_range` does."""
        if "RequestUnacknowledgedResults" not in self._methods:
            return self._came
        came = self._came
        try:
            _pace, count = await self._methods.call("RequestUnacknowledgedResults", self._limits.kept, output_count=2)
        except Refused as refusal:
            _log.warning("unacknowledged results not requested", reason=refusal.message)
            return self._came
        return came + (min(count, self._limits.kept) if isinstance(count, int) else 0)


def _number_of(result: Result) -> int | None:
    """Return the SequenceNumber of a result; None for 0, which a controller without numbers sends."""
    return result["ResultMetaData"].get("SequenceNumber") or None


def _mark_of(result: Result) -> tuple[object, ...]:
    """Return what distinguishes the latest result from the one that was the latest before."""
    meta = result["ResultMetaData"]
    names = ("ResultId", "SequenceNumber", "CreationTime")
    return (*(meta.get(name) for name in names), command_id_of(result), *measured_values(result))
