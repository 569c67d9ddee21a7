"""Commands to equipment that belong to no job: sent while no job uses the equipment, answered in memory."""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.model.equipment_connection import NOT_CONNECTED
from edge.sfc.signal import Phase
from edge.station.equipment import Begin, Command, EquipmentAnswer, EquipmentPort, NotSent, OutcomeUnknown, withdraw
from edge.station.runs import Runs
from edge.store import equipment_memory
from edge.store import runs as run_store
from edge.store.commit import Commit, join
from edge.store.equipment_memory import SafingCommand

logger = structlog.get_logger(__name__)


KeepAnswer = Callable[[EquipmentAnswer], Commit]
"""Returns what must be stored before an answer is acknowledged at the equipment."""


class _Waiting(Struct):
    """A command that waits for its answer.

    `is_released`: no job uses the equipment, the start may be sent. `is_begun`: it may have been sent.
    """

    command: Command
    answer: "asyncio.Future[EquipmentAnswer | OutcomeUnknown]"
    keep: KeepAnswer
    is_released: bool = False
    is_begun: bool = False


class DirectCommands:
    """The commands without a job that wait for an answer, one at each piece of equipment."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._waiting: dict[str, _Waiting] = {}
        self._busy: dict[str, str] = {}

    def is_waiting(self, command_id: str) -> bool:
        """Return whether a command waits for its answer."""
        return command_id in self._waiting

    def is_busy(self, equipment: str) -> bool:
        """Return whether a piece of equipment executes a command without a job: a job waits for its end."""
        return equipment in self._busy

    def begin(self, command_id: str) -> Begin:
        """Record that a start is about to be sent: the node task that sends it was committed as begun."""
        waiting = self._waiting[command_id]
        begun, waiting.is_begun = waiting.is_begun, True
        return Begin.AGAIN if begun else Begin.NEW

    def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> list[Command]:
        """Return the commands of these types that wait for an answer in these scopes."""
        return [
            replace(waiting.command, offered_again=True, begun=waiting.is_begun)
            for waiting in self._waiting.values()
            if waiting.is_released
            and not waiting.answer.done()
            and waiting.command.scope in scopes
            and waiting.command.type_id in type_ids
        ]

    async def accept(self, answer: EquipmentAnswer | OutcomeUnknown, type_ids: Collection[str] | None = None) -> bool:
        """Accept an answer from equipment of these types; return False when no command of them waits for it here.

        It is stored when this returns. Raises Unavailable without the store.
        """
        waiting = self._waiting.get(answer.command_id)
        if waiting is None or (type_ids is not None and waiting.command.type_id not in type_ids):
            return False
        if waiting.answer.done():
            return not waiting.answer.cancelled()
        # The equipment has ended the command: its stop is not needed any more.
        ended = equipment_memory.remove_safing(self._runs.store.keys, answer.command_id)
        commit = waiting.keep(answer) if isinstance(answer, EquipmentAnswer) else Commit()
        await self._runs.store.commit(join((ended, commit)))
        if not waiting.answer.done():
            waiting.answer.set_result(answer)
        # The answer of a command that was given up meanwhile is late.
        return not waiting.answer.cancelled()

    async def perform(
        self,
        equipment: EquipmentPort,
        type_ids: Collection[str],
        command: Command,
        answer_within_s: float,
        keep: KeepAnswer = lambda _: Commit(),
    ) -> EquipmentAnswer | OutcomeUnknown:
        """Send a command and return its answer; without one in time, or when cancelled, the command is stopped.

        `keep` is committed with the answer. Raises Refused when the equipment is in use or not connected, Unavailable
        without the store: nothing was sent.
        """
        if equipment.connected is False:
            raise Refused(
                "not_connected",
                Text.of(
                    "{equipment} is {connection}",
                    equipment=equipment.name,
                    connection=equipment.connection.text or NOT_CONNECTED,
                ),
            )
        if holder := equipment.connection.holder:
            raise Refused(
                "not_connected",
                Text.of(
                    "gateway {holder} connects to {equipment}: run this there", holder=holder, equipment=equipment.name
                ),
            )
        if other := self._busy.get(equipment.name):
            raise Refused(
                "in_use", Text.of("command {other!r} uses {equipment}", other=other, equipment=equipment.name)
            )
        # First: from here on no job sends a start to this equipment; one that has sent it before is found below.
        self._busy[equipment.name] = command.command_id
        answer: asyncio.Future[EquipmentAnswer | OutcomeUnknown] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[command.command_id] = _Waiting(command, answer, keep)
        try:
            if job := await self._holder(type_ids):
                raise Refused("in_use", Text.of("job {job!r} uses {equipment}", job=job, equipment=equipment.name))
            return await self._perform(equipment, waiting, answer_within_s)
        finally:
            answer.cancel()
            del self._waiting[command.command_id]
            del self._busy[equipment.name]

    async def _perform(
        self,
        equipment: EquipmentPort,
        waiting: _Waiting,
        answer_within_s: float,
    ) -> EquipmentAnswer | OutcomeUnknown:
        command = waiting.command
        # Before the start: when this process is killed, the stop is sent at the end of the time for the answer.
        await self._keep_stop(command, answer_within_s)
        try:
            async with asyncio.timeout(answer_within_s):
                waiting.is_released = True
                await equipment.send(command)
                return await waiting.answer
        except NotSent as error:
            await self._drop_stop(command)
            raise Refused("not_connected", error.text) from error
        except Unavailable as error:
            # The equipment may have the start nevertheless.
            await self._stop(equipment, command)
            return OutcomeUnknown(command.command_id, error.text)
        except TimeoutError:
            if withdraw(equipment, command.command_id):
                await self._drop_stop(command)
                raise Refused(
                    "not_sent",
                    Text.of(
                        "{equipment} could not receive it in {answer_within_s:g} s",
                        equipment=equipment.name,
                        answer_within_s=answer_within_s,
                    ),
                ) from None
            await self._stop(equipment, command)
            reason = Text.of(
                "{equipment} did not answer in {seconds:g} s", equipment=equipment.name, seconds=answer_within_s
            )
            return OutcomeUnknown(command.command_id, reason)
        except asyncio.CancelledError:
            await self._stop(equipment, command)
            raise

    async def _holder(self, type_ids: Collection[str]) -> str | None:
        """Return a running job whose recipe has commands of these types, as the store has it."""
        for job_id in await run_store.active_jobs(self._runs.store):
            loaded = await self._runs.load_readable(job_id)
            if loaded is None or loaded.net.command_types & set(type_ids):
                return job_id
        return None

    async def _stop(self, equipment: EquipmentPort, command: Command) -> None:
        """Stop a command that nothing waits for any more; the stop is repeated until the equipment confirms it."""
        logger.warning("direct command stopped", equipment=equipment.name, command=command.command_id)
        with contextlib.suppress(Unavailable):
            await self._keep_stop(command, 0)
        with contextlib.suppress(Unavailable):
            await equipment.stop(replace(command, phase=Phase.STOP))

    async def _drop_stop(self, command: Command) -> None:
        """Drop the stop of a command that never left the gateway."""
        await self._runs.store.commit(equipment_memory.remove_safing(self._runs.store.keys, command.command_id))

    async def _keep_stop(self, command: Command, after_s: float) -> None:
        """Keep the stop of a command until the equipment confirms it; it is due after a time."""
        stop = SafingCommand(
            phase=Phase.STOP,
            command_id=command.command_id,
            type_id=command.type_id,
            scope=command.scope,
            job_id=command.job_id,
            correlation_id=command.correlation_id,
            action=command.action,
            attempt=command.attempt,
            since=self._runs.clock() + round(after_s * 1000),
        )
        await self._runs.store.commit(equipment_memory.save_safing(self._runs.store.keys, stop))


def result_of(answer: EquipmentAnswer) -> Any:
    """Return the data of an answer; raises Refused when the equipment declined or failed."""
    if answer.error is not None:
        raise Refused("failed", answer.error)
    return answer.data
