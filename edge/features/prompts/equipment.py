"""The people at the station as a piece of equipment: a command is an open prompt until a person answers it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager

from edge.features.prompts.settings import OperatorSettings
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_traffic import TrafficKind
from edge.station.equipment import Command, EquipmentAnswer, Repetition, StationPort

FaultOf = Callable[[Command], Awaitable[Text | None]]
"""Returns why the parameters of an action cannot be asked; None when they can."""


class Operator:
    """Port of the people at the station. It has no state: what is open is in the runs, so a restart changes nothing."""

    def __init__(self, name: str, station: StationPort, fault_of: FaultOf) -> None:
        self.name = name
        self.connected = True
        self.connection = ConnectionState(connected=True)
        self.problem = ""
        self.connection_count = 1
        self._station = station
        self._fault_of = fault_of

    def repetition_of(self, type_id: str) -> Repetition:
        """Return that a prompt may be asked again: it is the same one."""
        return Repetition.REPEATABLE

    async def send(self, command: Command) -> None:
        """Return at once: people can answer. A prompt that cannot be asked fails with its faults."""
        self._station.report_traffic(TrafficKind.COMMAND, command)
        if (fault := await self._fault_of(command)) is not None:
            await self._station.answer(EquipmentAnswer(command.command_id, error=fault))

    async def reset(self, command: Command) -> None:
        """Confirm a reset: no answer is kept outside the run."""
        await self._station.answer(EquipmentAnswer(command.command_id, {}))

    async def stop(self, command: Command) -> None:
        """Confirm a stop: the prompt ended with the decision that asked for it."""
        await self._station.stopped(command.command_id, None)


@asynccontextmanager
async def open_operator(
    name: str, _settings: OperatorSettings, station: StationPort, _scopes: Collection[str], fault_of: FaultOf
) -> AsyncIterator[Operator]:
    """Open the people at the station; nothing connects."""
    yield Operator(name, station, fault_of)
