"""The results of a tightening controller: as they come, and those that were missed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from edge.errors import Refused, Unavailable
from edge.southbound.ijt_answer import command_id_of, has_command_id, is_result_of, without_traces
from edge.southbound.ijt_methods import IjtMethods
from edge.southbound.ijt_schema import Result, parse_result
from edge.station.equipment import Command, StationPort

MISSED_SECONDS = 5.0
"""How long results that were asked for may take to come."""
_KEPT_LIMIT = 1000
# As JSON; in memory it is ten times as much.
_KEPT_BYTES_LIMIT = 8 << 20
# What a server may do with the handle of a result: it is given back at once.
_HANDLE_MS = 1000

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ControllerState:
    """What is known of a controller beyond one connection: the last SequenceNumber, and which commands it began.

    It is `unconfirmed` whether it heard of the start of a command that it has not confirmed. `kept` are the results
    that nobody has let go of yet, each with its bytes as JSON: up to the last SequenceNumber none is asked for again.
    """

    last: int | None = None
    begun: set[str] = field(default_factory=set)
    unconfirmed: set[str] = field(default_factory=set)
    kept: dict[str, tuple[Result, int]] = field(default_factory=dict)


class ResultCollector:
    """The results as they come on one connection; `changed` is set with each.

    With `acknowledge`, the controller is told which results of our commands are stored.
    """

    def __init__(
        self, methods: IjtMethods, memory: ControllerState, station: StationPort, *, acknowledge: bool
    ) -> None:
        self.changed = asyncio.Event()
        self._methods = methods
        self._known = memory
        self._station = station
        self._acknowledges = acknowledge and "AcknowledgeResults" in methods
        self._kept = memory.kept
        self._came = 0

    async def handle_live(self, told: Any) -> None:
        """Take the result of what was just done. A gap before its SequenceNumber is asked for."""
        result = parse_result(told)
        number, last = result["ResultMetaData"].get("SequenceNumber"), self._known.last
        if number is not None and last is not None:
            await self._request_range(last + 1, number - 1)
        await self._keep(result)
        if number is not None:
            # Only now: what could not be asked for, or kept, is asked for on the next connection.
            self._known.last = number

    async def handle_requested(self, told: Any) -> None:
        """Take a result that was asked for: were the connection lost now, those after it would be asked for."""
        self._came += 1
        result = parse_result(told)
        await self._keep(result)
        number, last = result["ResultMetaData"].get("SequenceNumber"), self._known.last
        if number is not None and last is not None:
            self._known.last = max(last, number)

    def find(self, command: Command) -> Result | None:
        """Give the result of a command, if it has come."""
        return next((each for each, _ in self._kept.values() if is_result_of(each, command)), None)

    async def catch_up(self, command: Command) -> None:
        """Get what came about while nobody listened, until the result of a command is among it."""
        last = self._known.last
        latest = await self._latest()
        number = latest["ResultMetaData"].get("SequenceNumber") if latest else None
        if latest:
            await self._keep(latest)
        if last is not None and number is not None:
            await self._wait_for_results(command, await self._request_range(last + 1, number - 1))
        # Where the numbers lead to nothing, as after a restart of ours, what nobody has acknowledged may be it.
        if not self.find(command):
            await self._wait_for_results(command, await self._request_unacknowledged())
        if number is not None:
            self._known.last = number

    async def _wait_for_results(self, command: Command, end: int) -> None:
        """Wait until so many results have come, or that of a command is among them."""
        if not await self.wait_until(lambda: self._came >= end or self.find(command) is not None, MISSED_SECONDS):
            _log.warning("missed results did not all come", missing=end - self._came)

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None) -> bool:
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
        """Let go of the results of a command whose answer is durable."""
        self._known.begun.discard(command.command_id)
        self._known.unconfirmed.discard(command.command_id)
        ids = [result_id for result_id, (each, _) in self._kept.items() if has_command_id(each, command)]
        for result_id in ids:
            del self._kept[result_id]
        await self._acknowledge(ids)

    async def _keep(self, result: Result) -> None:
        meta = result["ResultMetaData"]
        if meta.get("IsPartial"):
            return
        if await self._is_unwanted(result):
            try:
                await self._acknowledge([meta["ResultId"]])
            except Refused as refusal:
                _log.debug("a result that nobody waits for stays where it is", reason=refusal.message)
        else:
            self._store(meta["ResultId"], without_traces(result))
        self.changed.set()

    def _store(self, result_id: str, result: Result) -> None:
        kept = self._kept
        kept[result_id] = result, len(msgspec.json.encode(result))
        # The newest stays in any case: who waits for one that is too large has to hear that it is.
        while len(kept) > 1 and (len(kept) > _KEPT_LIMIT or sum(size for _, size in kept.values()) > _KEPT_BYTES_LIMIT):
            del kept[next(iter(kept))]

    async def _is_unwanted(self, result: Result) -> bool:
        """Tell whether a result is that of a command that was answered, or stopped, before."""
        command_id = command_id_of(result)
        if command_id is None:
            return False
        try:
            return not await self._station.is_outstanding(command_id)
        except Unavailable:
            return False

    async def _acknowledge(self, result_ids: list[str]) -> None:
        if self._acknowledges and result_ids:
            await self._methods.call_result_method("AcknowledgeResults", result_ids)

    async def _latest(self) -> Result | None:
        if "GetLatestResult" not in self._methods:
            return None
        try:
            handle, told = await self._methods.call_result_method("GetLatestResult", _HANDLE_MS, output_count=2)
            if handle and "ReleaseResultHandle" in self._methods:
                await self._methods.call_result_method("ReleaseResultHandle", handle)
            return parse_result(told)
        except Refused:
            # There is none yet, or none that we could read.
            return None

    async def _request_range(self, first: int, last: int) -> int:
        """Ask for the results from one SequenceNumber to another; give how many have come when they all have."""
        first = max(first, last - _KEPT_LIMIT + 1)
        if first > last or "RequestResults" not in self._methods:
            return self._came
        end = self._came + last - first + 1
        try:
            await self._methods.call("RequestResults", first, last)
        except Refused as refusal:
            _log.warning("missed results are not told", first=first, last=last, reason=refusal.message)
            return self._came
        return end

    async def _request_unacknowledged(self) -> int:
        """Ask for the results that nobody has acknowledged; give as `_request_range`."""
        if "RequestUnacknowledgedResults" not in self._methods:
            return self._came
        came = self._came
        try:
            _pace, count = await self._methods.call("RequestUnacknowledgedResults", _KEPT_LIMIT, output_count=2)
        except Refused as refusal:
            _log.warning("results that were not acknowledged are not told", reason=refusal.message)
            return self._came
        return came + (min(count, _KEPT_LIMIT) if isinstance(count, int) else 0)
