"""A station that outlives its gateways, and ends the first one at a write to the store."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from edge.station.equipment import Begin, Command, EquipmentAnswer, LateResult, OutcomeUnknown
from tests.equipment.recording_station import RecordingStation


class DurableStation(RecordingStation):
    """A station whose marks and answers survive the gateway."""

    async def begin(self, command_id: str) -> Begin:
        if self.is_settled(command_id):
            return Begin.GONE
        return await super().begin(command_id)

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> Sequence[Command]:
        waiting = [command for command in self.unanswered if not self.is_settled(command.command_id)]
        begun = set(self.begun)
        return [replace(command, begun=command.command_id in begun, offered_again=True) for command in waiting]

    async def is_outstanding(self, command_id: str) -> bool:
        return not self.is_settled(command_id)

    def is_settled(self, command_id: str) -> bool:
        ended = {answer.command_id for answer in self.answers} | {
            outcome_unknown.command_id for outcome_unknown in self.unknown
        }
        return command_id in ended | self.stopped_meanwhile


class StoringStation(DurableStation):
    """A station that knows each stored result: it keeps a late one once."""

    async def late(self, result: LateResult) -> None:
        if result.key not in {late_result.key for late_result in self.late_results}:
            await super().late(result)

    async def has_result(self, command_id: str, result_id: str) -> bool:
        answers = [answer.data for answer in self.answers if answer.command_id == command_id]
        parts: list[Any] = [result.data for result in self.late_results if result.command_id == command_id]
        parts += [part for data in answers for part in (data, *data.get("results", {}).values())]
        return any(part["result_id"] == result_id for part in parts)


class CrashingStation(StoringStation):
    """A station whose gateway ends at the write of that number; `is_durable` says whether the write is."""

    def __init__(self, number: int, *, is_durable: bool) -> None:
        super().__init__()
        self._remaining = number
        self._is_durable = is_durable
        self._is_restarted = False
        self.crashed = asyncio.Event()

    def restart(self) -> None:
        """Serve the next gateway: each of its writes is durable."""
        self._is_restarted = True

    async def _write(self, commit: Callable[[], Awaitable[Any]]) -> Any:
        if self._is_restarted:
            return await commit()
        self._remaining -= 1
        if self._remaining > 0:
            return await commit()
        if self._remaining == 0 and self._is_durable:
            await commit()
        self.crashed.set()
        return await asyncio.get_running_loop().create_future()

    async def begin(self, command_id: str) -> Begin:
        begun: Begin = await self._write(lambda: super(CrashingStation, self).begin(command_id))
        return begun

    async def late(self, result: LateResult) -> None:
        await self._write(lambda: super(CrashingStation, self).late(result))

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        await self._write(lambda: super(CrashingStation, self).answer(answer))

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        await self._write(lambda: super(CrashingStation, self).remember(equipment, texts))
