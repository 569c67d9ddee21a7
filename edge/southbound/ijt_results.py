"""The results of a tightening controller: as they come, and those that were missed."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from edge.errors import Refused, Unavailable
from edge.southbound.ijt_answer import Result, command_id_of, is_result_of
from edge.southbound.ijt_methods import Methods
from edge.station.equipment import Command, Station

MISSED_SECONDS = 5.0
"""How long results that were asked for may take to come."""
_MOST_KEPT = 1000
# What a server may do with the handle of a result: it is given back at once.
_HANDLE_MS = 1000

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Memory:
    """What is known of a controller beyond one connection: the last SequenceNumber, and which commands it began."""

    last: int | None = None
    begun: set[str] = field(default_factory=set)


class Results:
    """The results that came on one connection and that nobody has let go of yet; `changed` is set with each.

    With `acknowledge`, the controller is told which results of our commands are stored.
    """

    def __init__(self, methods: Methods, memory: Memory, station: Station, *, acknowledge: bool) -> None:
        self.changed = asyncio.Event()
        self._methods = methods
        self._memory = memory
        self._station = station
        self._acknowledges = acknowledge and "AcknowledgeResults" in methods
        self._kept: deque[Result] = deque(maxlen=_MOST_KEPT)
        self._came = 0

    async def take_live(self, result: Result) -> None:
        """Take the result of what was just done. A gap before its SequenceNumber is asked for."""
        number = result["ResultMetaData"].get("SequenceNumber")
        if number is not None:
            last, self._memory.last = self._memory.last, number
            if last is not None and number > last + 1:
                try:
                    await self._ask_for(last + 1, number - 1)
                except Refused as refusal:
                    _log.warning("missed results are not told", first=last + 1, last=number - 1, reason=refusal.message)
        await self._keep(result)

    async def take_requested(self, result: Result) -> None:
        """Take a result that was asked for."""
        self._came += 1
        await self._keep(result)

    def of(self, command: Command) -> Result | None:
        """Give the result of a command, if it has come."""
        return next((each for each in reversed(self._kept) if is_result_of(each, command)), None)

    async def catch_up(self) -> None:
        """Get what came about while nobody listened, as far as the controller can tell."""
        last = self._memory.last
        latest = await self._latest()
        number = latest["ResultMetaData"].get("SequenceNumber") if latest else None
        if latest:
            await self._keep(latest)
        if number is not None:
            self._memory.last = number
        came = self._came
        try:
            if last is None or number is None:
                expected = await self._ask_for_unacknowledged()
            else:
                expected = await self._ask_for(last + 1, number - 1)
        except Refused as refusal:
            _log.warning("missed results are not told", reason=refusal.message)
            return
        if not await self.until(lambda: self._came >= came + expected, MISSED_SECONDS):
            _log.warning("missed results did not all come", expected=expected, came=self._came - came)

    async def until(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Wait for a condition that a result may make true, at most so long; tell whether it is true."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True

    async def settle(self, command: Command) -> None:
        """Let go of the result of a command whose answer is durable."""
        self._memory.begun.discard(command.command_id)
        if result := self.of(command):
            self._kept.remove(result)
            await self._acknowledge(result)

    async def _keep(self, result: Result) -> None:
        if result["ResultMetaData"].get("IsPartial"):
            return
        if await self._is_of_no_use(result):
            try:
                await self._acknowledge(result)
            except Refused as refusal:
                _log.debug("a result that nobody waits for stays where it is", reason=refusal.message)
        else:
            self._kept.append(result)
        self.changed.set()

    async def _is_of_no_use(self, result: Result) -> bool:
        """Tell whether a result is that of a command that was answered, or stopped, before."""
        command_id = command_id_of(result)
        if command_id is None:
            return False
        try:
            return not await self._station.is_outstanding(command_id)
        except Unavailable:
            return False

    async def _acknowledge(self, result: Result) -> None:
        if self._acknowledges:
            await self._methods.call_for_results("AcknowledgeResults", [result["ResultMetaData"]["ResultId"]])

    async def _latest(self) -> Result | None:
        if "GetLatestResult" not in self._methods:
            return None
        try:
            handle, result = await self._methods.call_for_results("GetLatestResult", _HANDLE_MS)
            if handle and "ReleaseResultHandle" in self._methods:
                await self._methods.call_for_results("ReleaseResultHandle", handle)
        except Refused:
            # There is none yet.
            return None
        found: Result | None = result
        return found

    async def _ask_for(self, first: int, last: int) -> int:
        """Ask for the results from one SequenceNumber to another; give how many are to come."""
        first = max(first, last - _MOST_KEPT + 1)
        if first > last or "RequestResults" not in self._methods:
            return 0
        await self._methods.call("RequestResults", first, last)
        return last - first + 1

    async def _ask_for_unacknowledged(self) -> int:
        if "RequestUnacknowledgedResults" not in self._methods:
            return 0
        _pace, count = await self._methods.call("RequestUnacknowledgedResults", _MOST_KEPT)
        return min(int(count), _MOST_KEPT)
