"""Collects the results of an Open Protocol controller: live ones, missed ones, and those of commands."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import structlog
from msgspec import Struct, field

from edge.errors import Refused
from edge.links.openprotocol_frame import MidFrame
from edge.links.openprotocol_mids import Decline, Mid, parse_message, revisions_of
from edge.links.openprotocol_session import DeclinedError, OpenProtocolSession
from edge.links.openprotocol_trace import CurveMessage
from edge.southbound.change_signal import ChangeSignal
from edge.southbound.late_result import LateResults
from edge.southbound.openprotocol_conversion import (
    Curves,
    TighteningResult,
    created_at,
    identifier_of,
    is_batch,
    is_complete,
    number_of,
    result_data,
)
from edge.station.equipment import Command

ResultKey: TypeAlias = tuple[int, datetime | None]
"""The number of a result and its time: a controller may count from 1 again."""

_REMEMBERED = 10_000
_FILLED = 200
"""The most missed results that are requested after a lost connection."""
_SEARCHED = 50
"""The newest results that are searched for that of a command."""
_SEARCHED_FOR_BATCH = 200
"""The same for the results of a batch, with the bolts that were tightened again."""

_CURVES = 200
"""The most results whose curves are kept until they are answered."""

_log = structlog.get_logger(__name__)


class ToolState(Struct):
    """The state of a tool beyond one connection.

    `last` is the number of the last result; `begun` holds the ids of started commands, `current` that of the command
    that occupies the tool. `marks` maps identifiers to command ids; `batches` holds the commands that wait for a whole
    batch. `kept` holds the results of commands until these are settled. `expected` takes the next result, with the
    number before its start. `settled` holds durable results, `curves` and `plots` those of the newest results by their
    numbers.
    """

    last: int | None = None
    current: str | None = None
    begun: set[str] = field(default_factory=set)
    marks: dict[str, str] = field(default_factory=dict)
    batches: dict[str, Command] = field(default_factory=dict)
    kept: dict[ResultKey, tuple[TighteningResult, str]] = field(default_factory=dict)
    expected: tuple[Command, int | None] | None = None
    curves: dict[int, list[CurveMessage]] = field(default_factory=dict)
    plots: dict[int, Mapping[str, str]] = field(default_factory=dict)
    settled: dict[ResultKey, None] = field(default_factory=dict)

    def remember(self, command: Command, correlation: str) -> None:
        """Remember the identifier of a command, to recognise its result."""
        if is_batch(command):
            self.batches[command.command_id] = command
            _limit(self.batches)
        if correlation == "mark":
            self.marks[identifier_of(command, correlation)] = command.command_id
            _limit(self.marks)

    def settle(self, keys: Iterable[ResultKey]) -> None:
        """Forget results that are durable; remember only their keys."""
        for key in keys:
            self.kept.pop(key, None)
            self.settled[key] = None
        _limit(self.settled)


def _limit(memory: dict[Any, Any], most: int = _REMEMBERED) -> None:
    while len(memory) > most:
        del memory[next(iter(memory))]


class TighteningCollector:
    """Collector of the results on one connection; each sets `changed`.

    With the correlation "mark", a result belongs to the command whose identifier it has; with "next", the next
    result after a start belongs to the started command. A result is acknowledged at the controller once it is durable.
    `on_own` offers a result of the operator's own as an event, and returns whether a job has used it.
    """

    def __init__(
        self,
        session: OpenProtocolSession,
        state: ToolState,
        reporter: LateResults,
        *,
        correlation: str,
        counts: bool,
        acknowledgement: Mid = Mid.RESULT_ACKNOWLEDGE,
        on_own: Callable[[TighteningResult], Awaitable[bool]],
    ) -> None:
        self.changed = ChangeSignal()
        self._session = session
        self._state = state
        self._reporter = reporter
        self._correlation = correlation
        self._counts = counts
        self._acknowledgement = acknowledgement
        self._on_own = on_own
        self._unacknowledged: set[ResultKey] = set()
        self._taking = asyncio.Lock()

    def expect(self, command: Command) -> None:
        """Record the command that is about to start."""
        self._state.remember(command, self._correlation)
        self._state.expected = (command, self._state.last) if self._correlation == "next" else None

    def find(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command in their order; none until all have come."""
        found = self.parts(command)
        return found if is_complete(found, command) else ()

    def parts(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command that have come, in their order."""
        kept = self._state.kept.items()
        found = {key: result for key, (result, command_id) in kept if command_id == command.command_id}
        return [found[key] for key in sorted(found, key=lambda key: key[0])]

    async def handle_live(self, result: TighteningResult) -> None:
        """Keep a live result; request the results that are missing before it."""
        number, last = result["result"] or 0, self._state.last
        if last is not None and number > last + 1:
            await self._fill(last + 1, number - 1)
        self._unacknowledged.add(_key(result))
        await self._take(result)

    def handle_curve(self, curve: CurveMessage) -> None:
        """Keep a curve until its result is answered."""
        self._state.curves.setdefault(curve.result, []).append(curve)
        _limit(self._state.curves, _CURVES)
        self.changed.set()

    def handle_plot(self, number: int, parameters: Mapping[str, str]) -> None:
        """Keep the parameters of the plot of a result until it is answered."""
        self._state.plots[number] = parameters
        _limit(self._state.plots, _CURVES)

    def with_plots(self, results: Sequence[TighteningResult]) -> Sequence[TighteningResult]:
        """Return these results, each with the parameters of its plot where they came."""
        plots = self._state.plots
        return [{**each, "plot": plot} if (plot := plots.pop(each["result"] or 0, None)) else each for each in results]

    async def curves_of(self, results: Sequence[TighteningResult], kinds: int, seconds: float) -> Curves:
        """Return the curves of these results; wait at most `seconds` until each has `kinds` of them."""
        numbers = [result["result"] or 0 for result in results]
        known = self._state.curves
        if kinds:
            await self.changed.wait_until(lambda: all(len(known.get(each, ())) >= kinds for each in numbers), seconds)
        return {number: tuple(known.pop(number)) for number in numbers if number in known}

    async def catch_up(self) -> None:
        """Request the results that were missed without a connection; the first connection only finds the last one."""
        latest = await self._request(0)
        if not self._counts:
            return
        if latest is None:
            self._state.last = 0 if self._state.last is None else self._state.last
            return
        number, last = latest["result"] or 0, self._state.last
        if last is None or number < last:
            # The numbers of a controller that was replaced or reset begin again.
            self._state.last = number
            return
        await self._fill(last + 1, number)

    async def search(self, command: Command) -> None:
        """Search the newest results for those of a command.

        Only the latest result is read from a controller whose results cannot be requested by number. The results of a
        batch follow each other: after them, the first result of another command ends the search.
        """
        latest = await self._request(0)
        number = latest["result"] or 0 if latest else 0
        most = _SEARCHED_FOR_BATCH if is_batch(command) else _SEARCHED
        while latest is not None and (is_batch(command) or not self.find(command)):
            is_own = self._state.marks.get(latest["identifier"]) == command.command_id
            if is_own:
                await self._take(latest)
            number, most = number - 1, most - 1
            at_end = number < 1 or most < 1 or (not is_own and bool(self.parts(command)))
            latest = None if at_end or not self._counts else await self._request(number)

    async def surrender(self, command: Command) -> None:
        """Report the results of a batch that will not be completed as late results."""
        found = self._state.kept.items()
        keys = [key for key, (_, command_id) in found if command_id == command.command_id]
        for key in keys if command.command_id in self._state.batches else ():
            result = self._state.kept[key][0]
            await self._reporter.keep(str(key[0]), created_at(result), command.command_id, result_data(result))
            self._state.settle([key])
            await self._acknowledge(key)

    async def settle(self, command: Command) -> None:
        """Drop and acknowledge the results of a command whose answer is durable."""
        self._state.begun.discard(command.command_id)
        self._state.batches.pop(command.command_id, None)
        keys = [key for key, (_, command_id) in self._state.kept.items() if command_id == command.command_id]
        self._state.settle(keys)
        for key in keys:
            await self._acknowledge(key)

    async def _fill(self, first: int, last: int) -> None:
        for number in range(max(first, last - _FILLED + 1), last + 1) if self._counts else ():
            if (result := await self._request(number)) is not None:
                await self._take(result)

    async def _take(self, result: TighteningResult) -> None:
        """Keep the result of a command that waits; report any other and acknowledge it then."""
        key = _key(result)
        async with self._taking:
            if key in self._state.settled:
                await self._acknowledge(key)
            elif key not in self._state.kept:
                command_id = self._owner(result)
                # The answer of another gateway may be committed before this one ends its own work for the command.
                if command_id and (command_id == self._state.current or await self._reporter.is_awaited(command_id)):
                    self._state.kept[key] = result, command_id
                    await self._acknowledge_part(key, command_id)
                else:
                    if command_id or not await self._on_own(result):
                        await self._reporter.report(str(key[0]), created_at(result), command_id, result_data(result))
                    self._state.settle([key])
                    await self._acknowledge(key)
            self._state.last = max(key[0], self._state.last or 0)
        self.changed.set()

    def _owner(self, result: TighteningResult) -> str | None:
        """Return the id of the command that a result belongs to; None for one of the operator's own."""
        if self._correlation == "mark":
            return self._state.marks.get(result["identifier"])
        match self._state.expected:
            case command, before if _may_belong(result, command, before):
                if command.command_id not in self._state.batches or is_complete([result], command):
                    self._state.expected = None
                return command.command_id
        return None

    async def _acknowledge_part(self, key: ResultKey, command_id: str) -> None:
        """Acknowledge a result before the last of its batch: without it a controller sends no further one.

        The controller keeps it: after a restart of the gateway it is requested by its number.
        """
        command = self._state.batches.get(command_id)
        if command is not None and not self.find(command):
            await self._acknowledge(key)

    async def _acknowledge(self, key: ResultKey) -> None:
        if key in self._unacknowledged:
            self._unacknowledged.discard(key)
            await self._session.send(MidFrame(self._acknowledgement))

    async def _request(self, number: int) -> TighteningResult | None:
        """Request an old result, 0 for the latest; None when the controller does not have it."""
        answers = {Mid.OLD_RESULT_REPLY}
        try:
            answer = await self._session.negotiate(
                Mid.OLD_RESULT, revisions_of(Mid.OLD_RESULT_REPLY), answers=answers, result=number
            )
            return parse_message(answer)
        except DeclinedError as declined:
            if declined.error != Decline.NO_RESULT:
                self._counts = False
                _log.info("old results not available", reason=declined.message)
        except Refused as refusal:
            _log.warning("old result unreadable", result=number, reason=refusal.message)
        return None


def _key(result: TighteningResult) -> ResultKey:
    return result["result"] or 0, result.get("time")


def _may_belong(result: Mapping[str, Any], command: Command, before: int | None) -> bool:
    """Return whether a result can be that of a command that was started after the result `before`."""
    wanted, vin = number_of(command, "parameter_set"), identifier_of(command, "next")
    is_newer = before is None or (result["result"] or 0) > before
    return is_newer and wanted in {None, result["parameter_set"]} and vin in {"", result["identifier"]}
