"""Collects the results of a tightening controller: live results and missed ones."""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, Literal

import msgspec
import structlog
from msgspec import Struct, field

from edge.errors import Refused
from edge.southbound.change_signal import ChangeSignal
from edge.southbound.ijt_conversion import (
    command_id_of,
    has_classification_for,
    has_command_id,
    is_newer,
    is_result_of,
    is_single,
    joinings_in,
    may_be_result_of,
    result_data,
    was_aborted,
)
from edge.southbound.ijt_methods import IjtMethods
from edge.southbound.ijt_reading import latest_result, listed_ids, read_result
from edge.southbound.ijt_schema import Result, parse_result
from edge.southbound.late_result import LateResults
from edge.station.equipment import Command

# Number of settled results that are remembered, to recognize a result that is reported again.
_SETTLED = 10_000
# Number of newest results that are searched when a result cannot be found by its SequenceNumber.
_SEARCHED = 100

_log = structlog.get_logger(__name__)


class ResultLimits(Struct, frozen=True):
    """Limits: seconds to wait for requested results, and number and bytes of JSON of the results kept in memory.

    In memory, a result takes ten times the size of its JSON.
    """

    missed_seconds: float = 5.0
    kept: int = 1000
    kept_bytes: int = 8 << 20


_LIMITS = ResultLimits()


class ControllerState(Struct):
    """The state of a controller beyond one connection.

    `last` is the last SequenceNumber: results up to it are not requested again. `begun` holds the ids of started
    commands, `current` the id of the command that occupies the tool. `kept` holds the results that are not settled,
    each with the size of its JSON in bytes. `expected` is the command that takes the next result without a command id,
    with the SequenceNumber before its start; `assigned` maps the ResultIds of such results to command ids. `settled`
    holds the ids of results that are durable.
    """

    last: int | None = None
    current: str | None = None
    begun: set[str] = field(default_factory=set)
    kept: dict[str, tuple[Result, int]] = field(default_factory=dict)
    expected: tuple[Command, int | None] | None = None
    assigned: dict[str, str] = field(default_factory=dict)
    settled: dict[str, None] = field(default_factory=dict)
    skipped: int = 0
    """The number of results that exceeded the size limit of a message."""
    is_disabled_elsewhere: bool = False
    """Whether another system disabled the tool during a command."""

    def settle(self, result_ids: Collection[str]) -> None:
        """Forget results whose answers are durable; remember only their ids."""
        for result_id in result_ids:
            self.kept.pop(result_id, None)
            self.assigned.pop(result_id, None)
            self.settled[result_id] = None
        while len(self.settled) > _SETTLED:
            del self.settled[next(iter(self.settled))]


async def _use_nothing(_: Result) -> bool:
    return False


async def _add_nothing(_: str, __: Result, ___: dict[str, Any]) -> None:
    """Add nothing to the data of a late result."""


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
        *,
        acknowledge: bool,
        correlation: Literal["command_id", "next"] = "command_id",
        on_own: Callable[[Result], Awaitable[bool]] = _use_nothing,
        add_late_files: Callable[[str, Result, dict[str, Any]], Awaitable[None]] = _add_nothing,
        limits: ResultLimits = _LIMITS,
    ) -> None:
        self.changed = ChangeSignal()
        self._methods = methods
        self._known = state
        self._reporter = reporter
        self._acknowledges = acknowledge and "AcknowledgeResults" in methods
        self._correlation = correlation
        self._limits = limits
        self._on_own = on_own
        self._add_late_files = add_late_files
        self._kept = state.kept
        self._came = 0
        self._earlier_until = -1
        self._has_large_latest = False

    async def handle_live(self, data: Any) -> None:
        """Keep a live result; request the results that are missing before its SequenceNumber."""
        result = parse_result(data)
        number, last = result["ResultMetaData"].get("SequenceNumber"), self._known.last
        if number is not None and last is not None:
            await self._request_range(last + 1, number - 1)
        await self._keep(result)
        if number is not None:
            # Set it last: a result that could not be requested or kept is requested on the next connection.
            self._known.last = number

    async def handle_requested(self, data: Any) -> None:
        """Keep a requested result and advance `last`: the next connection requests only later results."""
        self._came += 1
        result = parse_result(data)
        number, last = result["ResultMetaData"].get("SequenceNumber"), self._known.last
        await self._keep(result, is_new=number is None or number > self._earlier_until)
        if number is not None and last is not None:
            self._known.last = max(last, number)

    def expect(self, command: Command) -> None:
        """Record the command that is about to start: the next result without a command id may belong to it."""
        self._known.expected = (command, self._known.last) if self._correlation == "next" else None

    def find(self, command: Command) -> Result | None:
        """Return the result of a command; None until the result has come."""
        return next(
            (
                each
                for result_id, (each, _) in self._kept.items()
                if is_result_of(each, command)
                or (self._known.assigned.get(result_id) == command.command_id and has_classification_for(each, command))
            ),
            None,
        )

    @property
    def skipped(self) -> int:
        """The number of results that were skipped because they exceed the size limit of a message."""
        return self._known.skipped

    async def is_awaited(self, command: Command) -> bool:
        """Return whether a command waits for its result; True while the store is unavailable."""
        return await self._reporter.is_awaited(command.command_id)

    def parts(self, command: Command) -> list[Result]:
        """Return the results of single joinings of a command that waits for a batch, in the order of their numbers."""
        if command.parameters.get("classification", "single") == "single":
            return []
        found = [each for each, _ in self._kept.values() if has_command_id(each, command) and is_single(each)]
        return sorted(found, key=lambda each: each["ResultMetaData"].get("SequenceNumber") or 0)

    async def catch_up(self, command: Command | None = None) -> None:
        """Collect the results from the time without a connection; stop early when the result of `command` is found."""
        await self._poll_latest(command)
        # After a restart the SequenceNumbers find no missed result; it may be among the unacknowledged ones.
        if not self._has(command):
            await self._wait_for_results(command, await self._request_unacknowledged())

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
            latest = await latest_result(self._methods)
        except Refused as refusal:
            if not self._has_large_latest:
                self._has_large_latest = True
                await self.note_skipped(refusal)
            return
        self._has_large_latest = False
        number = latest["ResultMetaData"].get("SequenceNumber") if latest else None
        if latest and (number is None or number != last):
            # While `last` is unknown, the latest result is not new: it was answered, or comes again as unacknowledged.
            await self._keep(latest, is_new=last is not None)
        if last is not None and number is not None:
            await self._wait_for_results(command, await self._request_range(last + 1, number - 1))
        if number is not None:
            self._known.last = number

    async def _request_earlier(self, command: Command) -> None:
        """Request the results before the latest one: after a restart the last number that was seen is unknown."""
        if (last := self._known.last) is None:
            return
        # Other results among them were reported before the restart, or belong to other clients.
        self._earlier_until = last
        # The latest result is known already; a controller that numbers from 1 sends one less than the range has.
        await self._wait_for_results(command, await self._request_range(0, last) - 1)

    async def _read_listed(self, command: Command) -> None:
        """Read the results that the controller lists, one by one, until the result of a command is found."""
        for result_id in (await self._unknown_ids())[:_SEARCHED]:
            await self._read_result(result_id)
            if self.find(command):
                return

    async def _unknown_ids(self) -> list[str]:
        known = self._kept.keys() | self._known.settled
        return [each for each in await listed_ids(self._methods) if each not in known]

    async def _read_result(self, result_id: str, *, is_lost: bool = False) -> None:
        """Keep a listed result; one that cannot be read does not hide the others."""
        try:
            result = await read_result(self._methods, result_id)
        except Refused as refusal:
            if refusal.kind == "too_large":
                await self._skip(result_id, refusal)
            else:
                _log.warning("listed result not read", result=result_id, reason=refusal.message)
            return
        number, last = result["ResultMetaData"].get("SequenceNumber"), self._known.last
        # A result up to the last one was reported when it came, before a restart perhaps, unless its event was lost.
        await self._keep(result, is_new=is_lost or number is None or last is None or number > last)

    async def note_skipped(self, refusal: Refused) -> None:
        """Read the results of a message beyond the size limit one by one; report those that exceed it themselves."""
        lost = await self._unknown_ids()
        for result_id in lost[: self._limits.kept]:
            await self._read_result(result_id, is_lost=True)
        if not lost:
            await self._skip("", refusal)

    async def _skip(self, result_id: str, refusal: Refused) -> None:
        """Report a result that is too large, once; it stays unacknowledged at the controller."""
        await self._reporter.skip(result_id, refusal)
        self._known.skipped += 1
        if result_id:
            self._known.settle([result_id])
        self.changed.set()

    async def _wait_for_results(self, command: Command | None, end: int) -> None:
        """Wait until the number of requested results reaches `end`, or the result of a command is found."""
        enough = await self.changed.wait_until(
            lambda: self._came >= end or self._has(command), self._limits.missed_seconds
        )
        if not enough:
            _log.warning("missed results incomplete", missing=end - self._came)

    async def settle(self, command: Command) -> None:
        """Drop and acknowledge the results of a command whose answer is durable."""
        self._known.begun.discard(command.command_id)
        assigned = self._known.assigned
        ids = [
            result_id
            for result_id, (each, _) in self._kept.items()
            if has_command_id(each, command) or assigned.get(result_id) == command.command_id
        ]
        # The joinings of a batch are in its result: one that is reported later is not a late result.
        held = [part["ResultMetaData"]["ResultId"] for each in ids for part in joinings_in(self._kept[each][0])]
        self._known.settle([*ids, *(each for each in held if each not in self._kept)])
        await self._acknowledge(ids)

    async def _keep(self, result: Result, *, is_new: bool = True) -> None:
        meta, command_id = result["ResultMetaData"], command_id_of(result)
        if meta.get("IsPartial"):
            return
        if command_id is None:
            self._assign(result)
        if meta["ResultId"] in self._known.settled:
            await self._acknowledge_own(result)
        # The answer of another gateway may be committed before this one ends its own work for the command.
        elif (command_id is None and meta["ResultId"] not in self._known.assigned) or (
            command_id and command_id != self._known.current and not await self._reporter.is_awaited(command_id)
        ):
            await self._dismiss(result, is_new=is_new)
        else:
            self._store(meta["ResultId"], result)
        self.changed.set()

    async def _dismiss(self, result: Result, *, is_new: bool) -> None:
        """Report a new result that no command waits for, then acknowledge it; an aborted joining is not reported.

        After a restart, a result that may have been answered before is new if its command was given up meanwhile.
        """
        meta, command_id = result["ResultMetaData"], command_id_of(result)
        was_given_up = not is_new and command_id is not None and await self._reporter.was_given_up(command_id)
        if not is_new and not was_given_up:
            return
        was_used = command_id is None and not was_aborted(result) and await self._on_own(result)
        if not was_used and not was_aborted(result):
            report = self._reporter.keep if was_given_up else self._reporter.report
            add_files = partial(self._add_late_files, command_id or "", result)
            await report(meta["ResultId"], meta.get("CreationTime"), command_id, result_data(result), add_files)
        self._known.settle([meta["ResultId"]])
        await self._acknowledge_own(result)

    async def _acknowledge_own(self, result: Result) -> None:
        if command_id_of(result) is None:
            # A result without a command id belongs to other clients that collect results.
            return
        try:
            await self._acknowledge([result["ResultMetaData"]["ResultId"]])
        except Refused as refusal:
            _log.debug("late result not acknowledged", reason=refusal.message)

    def _assign(self, result: Result) -> None:
        """Assign a result without a command id to the command that was started last, if the settings allow it."""
        meta, known = result["ResultMetaData"], self._known
        if meta["ResultId"] in known.assigned or meta["ResultId"] in self._kept:
            return
        _log.info("result without command id", result=meta["ResultId"], correlation=self._correlation)
        match known.expected:
            case command, before if is_newer(result, before) and may_be_result_of(result, command):
                known.assigned[meta["ResultId"]] = command.command_id
                known.expected = None

    def _store(self, result_id: str, result: Result) -> None:
        kept, limits = self._kept, self._limits
        kept[result_id] = result, len(msgspec.json.encode(result))
        # Keep the newest result in any case: a command with a result that is too large must fail with that reason.
        while len(kept) > 1 and (len(kept) > limits.kept or sum(size for _, size in kept.values()) > limits.kept_bytes):
            oldest = next(iter(kept))
            del kept[oldest]
            self._known.assigned.pop(oldest, None)

    async def _acknowledge(self, result_ids: list[str]) -> None:
        if self._acknowledges and result_ids:
            await self._methods.call_result_method("AcknowledgeResults", result_ids)

    async def _request_range(self, first: int, last: int) -> int:
        """Request the results from one SequenceNumber to another; return the result count at which all have come."""
        first = max(first, last - self._limits.kept + 1)
        if first > last or "RequestResults" not in self._methods:
            return self._came
        end = self._came + last - first + 1
        try:
            await self._methods.call("RequestResults", first, last)
        except Refused as refusal:
            _log.warning("missed results not requested", first=first, last=last, reason=refusal.message)
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
