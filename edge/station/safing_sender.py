"""Delivers stops and resets until the equipment confirms them, whatever happens to job, broker or gateway."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import structlog
from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.model.equipment_health import OpenSafing
from edge.sfc.signal import Late, Phase
from edge.station.decision import Decision
from edge.station.equipment import Command, EquipmentPort, release_of
from edge.station.runs import Progress, Runs
from edge.station.safing_tries import SafingTries
from edge.store import equipment_memory
from edge.store.background import Isolated, poll_store, retry_while_unavailable
from edge.store.equipment_memory import SafingCommand

logger = structlog.get_logger(__name__)

POLL_INTERVAL_S: Final = 5.0
LOOK_INTERVAL_S: Final = 1.0
"""The interval at which the connection of equipment with open commands is looked at."""
_MOST_AT_ONCE: Final = 10
"""The most commands that are sent to one piece of equipment at each look: one that declines all is not flooded."""
_LOG_INTERVAL_S: Final = 600.0

_Key: TypeAlias = tuple[Phase, str]


class SafingSender:
    """Sends unconfirmed stops and resets again: at once when their equipment connects, then at `INTERVALS_S`.

    `open_commands` holds them as of the last poll. Each piece of equipment has its own task: one that does not answer
    delays no other. `monotonic` returns seconds of a clock that is never set.
    """

    def __init__(
        self,
        runs: Runs,
        scopes: Collection[str],
        routes: Mapping[str, EquipmentPort],
        clock: Clock,
        poll_interval_s: float = POLL_INTERVAL_S,
        look_interval_s: float = LOOK_INTERVAL_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.open_commands: tuple[SafingCommand, ...] = ()
        self._runs = runs
        self._store = runs.store
        self._scopes = frozenset(scopes)
        self._routes = routes
        self._equipment = {route.name: route for route in routes.values()}
        self._wakes = {name: asyncio.Event() for name in self._equipment}
        self._decided = asyncio.Event()
        self._poll_interval_s = poll_interval_s
        self._look_interval_s = look_interval_s
        self._monotonic = monotonic
        self._tries: dict[_Key, SafingTries] = {}
        self._connection_counts = {name: port.connection_count for name, port in self._equipment.items()}
        self._clock = clock
        self._started_at = clock()
        self._log = LogThrottle(logger, _LOG_INTERVAL_S, clock=monotonic)
        runs.listeners.append(self._note_decision)

    async def run(self) -> None:
        """Poll and send until cancelled."""
        async with TaskGroup() as tasks:
            tasks.create_task(
                poll_store(self._store.defects, "safing", self.refresh, self._poll_interval_s),
                name="poll safing commands",
            )
            tasks.create_task(self._follow_decisions(), name="safing commands of decisions")
            for equipment in self._equipment.values():
                tasks.create_task(self._keep_sending(equipment), name=f"safing of {equipment.name}")

    def open_at(self, equipment: EquipmentPort) -> Sequence[OpenSafing]:
        """Return what a piece of equipment has not confirmed: stops and resets, the oldest first, and its release."""
        commands = self._commands_of(equipment)
        open_safings = [
            self._tries[_key(command)].described(command.phase.value, command.command_id) for command in commands
        ]
        release = release_of(equipment)
        return (*open_safings, release) if release else open_safings

    async def refresh(self) -> None:
        """Read the open commands, and remove those that an operator has released."""
        served = [
            safing_command
            for safing_command in await equipment_memory.load_all_safing(self._store)
            if safing_command.scope in self._scopes
        ]
        for command in served:
            if command.released_by:
                await self._remove_released(command)
        # The stop of a command without a job is kept before its start, and is due later.
        now = self._clock()
        self.open_commands = tuple(
            safing_command
            for safing_command in served
            if not safing_command.released_by and safing_command.since <= now
        )
        before, self._tries = (
            self._tries,
            {_key(safing_command): self._tries_of(safing_command) for safing_command in self.open_commands},
        )
        for key in before.keys() - self._tries.keys():
            self._report_closed(key, before[key])
        for type_id in {safing_command.type_id for safing_command in self.open_commands} & self._routes.keys():
            self._wakes[self._routes[type_id].name].set()

    def _tries_of(self, command: SafingCommand) -> SafingTries:
        """Return the tries of a command; those of one that this process has decided begin with its first sending."""
        tries = self._tries.get(_key(command))
        if tries is None:
            tries = SafingTries(command.since)
            equipment = self._routes.get(command.type_id)
            if command.since >= self._started_at and equipment is not None and equipment.connected is not False:
                tries = tries.tried(self._monotonic() - (self._clock() - command.since) / 1000)
        return replace(tries, reason=command.error_text or command.error or tries.reason)

    def _report_closed(self, key: _Key, tries: SafingTries) -> None:
        if tries.reason or tries.count > 1:
            logger.info("safing command confirmed", command=key[1], phase=key[0].value, tries=tries.count)

    def _note_decision(self, progress: Progress) -> None:
        if any(request.phase is not Phase.START for request in progress.requests):
            self._decided.set()

    async def _follow_decisions(self) -> None:
        """Read the open commands after each decision with a stop or a reset: the next poll would be late."""
        while True:
            await self._decided.wait()
            self._decided.clear()
            with Isolated(logger, "safing commands cannot be read"):
                await retry_while_unavailable("safing commands of decisions", self.refresh)

    def _commands_of(self, equipment: EquipmentPort) -> list[SafingCommand]:
        return [command for command in self.open_commands if self._routes.get(command.type_id) is equipment]

    async def _keep_sending(self, equipment: EquipmentPort) -> None:
        wake = self._wakes[equipment.name]
        while True:
            wake.clear()
            await self.send_due_to(equipment)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_interval_s if self._commands_of(equipment) else None):
                    await wake.wait()

    async def send_due_to(self, equipment: EquipmentPort) -> None:
        """Send the due commands to connected equipment, at most `_MOST_AT_ONCE`, those that wait longest first."""
        commands = self._commands_of(equipment)
        if equipment.connection_count != self._connection_counts[equipment.name]:
            # However short it was away: it may have forgotten them.
            self._connection_counts[equipment.name] = equipment.connection_count
            self._tries |= {
                _key(safing_command): self._tries[_key(safing_command)].reconnected() for safing_command in commands
            }
        if equipment.connected is False:
            return
        now = self._monotonic()
        due = [safing_command for safing_command in commands if self._tries[_key(safing_command)].due_s <= now]
        due.sort(key=lambda safing_command: self._tries[_key(safing_command)].due_s)
        for command in due[:_MOST_AT_ONCE]:
            await self._send(equipment, command)

    async def _send(self, equipment: EquipmentPort, command: SafingCommand) -> None:
        key = _key(command)
        try:
            # The equipment may have confirmed it since the last poll, and a poll may note that meanwhile.
            is_open = any(
                safing_command.phase is command.phase
                for safing_command in await equipment_memory.load_safing(self._store, command.command_id)
            )
        except Unavailable:
            return
        if not is_open or key not in self._tries:
            return
        tries = self._tries[key] = self._tries[key].tried(self._monotonic())
        try:
            if command.phase is Phase.RESET:
                await equipment.reset(command_of_safing(command))
            else:
                await equipment.stop(command_of_safing(command))
        except Unavailable as error:
            if key in self._tries:
                self._tries[key] = replace(self._tries[key], reason=error.text)
            logger.debug("safing command delayed", command=command.command_id, reason=error.message)
        except Exception:  # a defect in one kind of equipment must not keep the others from being stopped
            logger.exception("safing command failed", command=command.command_id)
        else:
            self._log.warning(
                "safing command sent again",
                f"{command.phase} {command.command_id}",
                equipment=equipment.name,
                command=command.command_id,
                phase=command.phase.value,
                tries=tries.count,
                error=str(tries.reason),
            )

    async def _remove_released(self, command: SafingCommand) -> None:
        """Remove a command that an operator has released, and record it at its job and in the log of the gateway."""
        removal = equipment_memory.remove_safing(self._store.keys, command.command_id)
        error = Text.of("stop released by {by}: {reason}", by=command.released_by, reason=command.release_reason)
        late = Late(command.command_id, error=error)
        is_recorded = False
        with Isolated(logger, "release cannot be recorded", job=command.job_id, command=command.command_id):
            # One commit: a gateway that is killed here records and removes it after its restart.
            outcome = await self._runs.signal(command.job_id, late, also=lambda _: removal)
            is_recorded = isinstance(outcome, Decision)
        if not is_recorded:
            await self._store.commit(removal)
        equipment = self._routes.get(command.type_id)
        logger.warning(
            "stop released",
            audit="equipment.release",
            equipment=equipment.name if equipment else "",
            job=command.job_id,
            command=command.command_id,
            phase=command.phase.value,
            by=command.released_by,
            reason=command.release_reason,
        )


def _key(command: SafingCommand) -> _Key:
    return command.phase, command.command_id


def command_of_safing(command: SafingCommand) -> Command:
    """Return the command as equipment receives it."""
    return Command(
        command_id=command.command_id,
        phase=command.phase,
        type_id=command.type_id,
        scope=command.scope,
        job_id=command.job_id,
        correlation_id=command.correlation_id,
        action=command.action,
        attempt=command.attempt,
        parameters=command.parameters,
        offered_again=True,
        causation_id=command.causation_id,
        trace=command.trace,
    )
