"""Sends commands to equipment for flows, while no job uses it."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import CommandEquipment, task_of
from edge.features.flows.redis_state import keep_answer
from edge.features.flows.state import KeptAnswer
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.sfc.identifiers import command_id
from edge.sfc.signal import Phase
from edge.station.direct_commands import DirectCommands, result_of
from edge.station.equipment import Command, EquipmentAnswer, OutcomeUnknown
from edge.station.equipment_watch import WatchedEquipment
from edge.store.commit import Commit
from edge.store.keys import Keys

ANSWER_WITHIN_S: Final = 300.0
"""A longer work belongs into a job."""
_RUN: Final = "flow"


class EquipmentCommander:
    """Sends commands under the id of their node task."""

    def __init__(
        self,
        commands: DirectCommands,
        keys: Keys,
        watched: Iterable[WatchedEquipment],
        scope: str,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self._commands = commands
        self._keys = keys
        self._equipment = {watched_equipment.equipment.name: watched_equipment for watched_equipment in watched}
        self._scope = scope
        self._answer_within_s = answer_within_s

    async def command(self, action: CommandEquipment, action_id: str) -> Any:
        """Send a command and return the data of its answer.

        Raises NodeError when nothing was sent or the equipment declined, OutcomeUnknownError without an answer.
        """
        task_id = task_of(action_id)
        watched_equipment = self._equipment.get(action.equipment)
        if watched_equipment is None:
            raise NodeError(
                Text.of(
                    "there is no equipment {equipment!r}; known: {known}",
                    equipment=action.equipment,
                    known=_list(self._equipment),
                )
            )
        if action.type_id not in watched_equipment.type_ids:
            raise NodeError(
                Text.of(
                    "{equipment} takes no commands of type {type_id!r}",
                    equipment=action.equipment,
                    type_id=action.type_id,
                )
            )
        command = Command(
            command_id=command_id(action_id, _RUN, _RUN, action.attempt),
            phase=Phase.START,
            type_id=action.type_id,
            scope=self._scope,
            job_id=task_id,
            correlation_id=task_id,
            action=_RUN,
            attempt=action.attempt,
            parameters=action.value if isinstance(action.value, dict) else {},
        )
        try:
            answer = await self._commands.perform(
                watched_equipment.equipment,
                watched_equipment.type_ids,
                command,
                self._answer_within_s,
                partial(self._keep, command),
            )
            if isinstance(answer, OutcomeUnknown):
                raise OutcomeUnknownError(answer.reason)
            return result_of(answer)
        except Refused as refusal:
            raise NodeError(refusal.text) from None

    def _keep(self, command: Command, answer: EquipmentAnswer) -> Commit:
        """Keep an answer with the node task: a gateway that is killed before the node ends must not lose it."""
        error = None if answer.error is None else str(answer.error)
        return keep_answer(self._keys, command.job_id, KeptAnswer(command.attempt, answer.data, error))


def _list(names: Iterable[str]) -> str | Text:
    return ", ".join(sorted(names)) or Text.of("none")
