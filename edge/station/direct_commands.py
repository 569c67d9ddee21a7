"""Commands to equipment that belong to no job: sent while no job uses the equipment, answered in memory."""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Any

import structlog

from edge.errors import Refused, Unavailable
from edge.station.equipment import Command, EquipmentAnswer, EquipmentPort, OutcomeUnknown
from edge.station.runs import Runs
from edge.store import runs as run_store

logger = structlog.get_logger(__name__)


class DirectCommands:
    """The commands without a job that wait for an answer, one at each piece of equipment."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._waiting: dict[str, asyncio.Future[EquipmentAnswer | OutcomeUnknown]] = {}
        self._types: dict[str, str] = {}
        self._busy: dict[str, str] = {}

    def is_waiting(self, command_id: str) -> bool:
        """Return whether a command waits for its answer."""
        return command_id in self._waiting

    def take(self, answer: EquipmentAnswer | OutcomeUnknown, type_ids: Collection[str] | None = None) -> bool:
        """Take an answer of equipment of these types; return False when no command of them waits for it here."""
        waiting = self._waiting.get(answer.command_id)
        if waiting is None or (type_ids is not None and self._types[answer.command_id] not in type_ids):
            return False
        if not waiting.done():
            waiting.set_result(answer)
        return True

    async def perform(
        self, equipment: EquipmentPort, type_ids: Collection[str], command: Command, answer_within_s: float
    ) -> EquipmentAnswer | OutcomeUnknown:
        """Send a command and return its answer; without one in time, or when cancelled, the command is stopped.

        Raises Refused when the equipment is in use or not connected: nothing was sent then.
        """
        if equipment.connected is False:
            raise Refused("not_connected", f"{equipment.name} is not connected")
        if job := await self._holder(type_ids):
            raise Refused("in_use", f"job {job!r} uses {equipment.name}")
        if other := self._busy.get(equipment.name):
            raise Refused("in_use", f"command {other!r} uses {equipment.name}")
        self._busy[equipment.name] = command.command_id
        waiting = self._waiting[command.command_id] = asyncio.get_running_loop().create_future()
        self._types[command.command_id] = command.type_id
        try:
            async with asyncio.timeout(answer_within_s):
                await equipment.send(command)
                answer: EquipmentAnswer | OutcomeUnknown = await waiting
                return answer
        except Unavailable as error:
            return OutcomeUnknown(command.command_id, error.message)
        except TimeoutError:
            await self._stop(equipment, command)
            return OutcomeUnknown(command.command_id, f"{equipment.name} did not answer in {answer_within_s:g} s")
        except asyncio.CancelledError:
            await self._stop(equipment, command)
            raise
        finally:
            del self._waiting[command.command_id], self._types[command.command_id]
            del self._busy[equipment.name]

    async def _holder(self, type_ids: Collection[str]) -> str | None:
        """Return a running job whose recipe has commands of these types, as the store has it."""
        for job_id in await run_store.active_jobs(self._runs.store):
            loaded = await self._runs.load_readable(job_id)
            if loaded is None or loaded.net.command_types & set(type_ids):
                return job_id
        return None

    async def _stop(self, equipment: EquipmentPort, command: Command) -> None:
        """Stop a command that nothing waits for any more."""
        logger.warning("direct command stopped", equipment=equipment.name, command=command.command_id)
        with contextlib.suppress(Unavailable):
            await equipment.stop(command)


def result_of(answer: EquipmentAnswer) -> Any:
    """Return the data of an answer; raises Refused when the equipment declined or failed."""
    if answer.error is not None:
        raise Refused("failed", answer.error)
    return answer.data
