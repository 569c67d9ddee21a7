"""Sends commands to equipment for flows, while no job uses it."""

from collections.abc import Iterable
from typing import Any, Final

from edge.errors import Refused
from edge.flows.attempt import OutcomeUnknownError
from edge.flows.nodes.act import CommandEquipment
from edge.flows.nodes.kind import NodeError
from edge.sfc.command_id import command_id
from edge.sfc.signal import Phase
from edge.station.direct_commands import DirectCommands, result_of
from edge.station.equipment import Command, OutcomeUnknown
from edge.station.equipment_watch import WatchedEquipment

ANSWER_WITHIN_S: Final = 300.0
"""A longer work belongs into a job."""
_RUN: Final = "flow"


class EquipmentCommander:
    """Sends commands under the id of their node task."""

    def __init__(
        self,
        commands: DirectCommands,
        watched: Iterable[WatchedEquipment],
        scope: str,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self._commands = commands
        self._equipment = {each.equipment.name: each for each in watched}
        self._scope = scope
        self._answer_within_s = answer_within_s

    async def command(self, action: CommandEquipment, task_id: str) -> Any:
        """Send a command and return the data of its answer.

        Raises NodeError when nothing was sent or the equipment declined, OutcomeUnknownError without an answer.
        """
        found = self._equipment.get(action.equipment)
        if found is None:
            raise NodeError(f"there is no equipment {action.equipment!r}; known: {_list(self._equipment)}")
        if action.type_id not in found.type_ids:
            raise NodeError(f"{action.equipment} takes no commands of type {action.type_id!r}")
        command = Command(
            command_id=command_id(task_id, _RUN, _RUN, 1),
            phase=Phase.START,
            type_id=action.type_id,
            scope=self._scope,
            job_id=task_id,
            correlation_id=task_id,
            action=_RUN,
            attempt=1,
            parameters=action.value if isinstance(action.value, dict) else {},
        )
        try:
            answer = await self._commands.perform(found.equipment, found.type_ids, command, self._answer_within_s)
            if isinstance(answer, OutcomeUnknown):
                raise OutcomeUnknownError(answer.reason)
            return result_of(answer)
        except Refused as refusal:
            raise NodeError(refusal.message) from None


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
