"""Sends a command to the equipment that takes its type."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

import structlog
from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.sfc.command_id import parse_command_id
from edge.sfc.net import Net, request_of
from edge.sfc.run import find_command, is_outstanding, is_too_late
from edge.sfc.signal import Answer, Phase
from edge.sfc.view import next_deadline
from edge.station.decision import LoadedJob
from edge.station.equipment import Command, EquipmentPort, NotSent, PausableEquipment, Repetition, withdraw
from edge.station.runs import Runs
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.runs import Outgoing

logger = structlog.get_logger(__name__)


class Performed(Enum):
    """What became of a command that was to be sent."""

    SENT = auto()
    ENDED = auto()
    """It was answered or stopped meanwhile, and not sent."""
    TOO_LATE = auto()
    """It was not sent: a time limit of its run has passed, and the timers of the run come first."""


class Dispatch:
    """Sends commands to the equipment that takes their type; `routes` maps each type to its equipment."""

    def __init__(
        self,
        runs: Runs,
        routes: Mapping[str, EquipmentPort],
        is_busy: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Send no start to equipment, by name, for which `is_busy`: it executes a command without a job."""
        self._runs = runs
        self._is_busy = is_busy
        self.routes = routes

    def unrouted(self, net: Net) -> list[str]:
        """Return the command types of a recipe that no equipment takes."""
        return sorted(net.command_types - self.routes.keys())

    async def perform(self, loaded: LoadedJob, outgoing: Outgoing) -> Performed:
        """Send one command of a committed decision; a repetition has the same id.

        Raises Unavailable when the equipment cannot be reached now.
        """
        command_id = outgoing.command_id
        if not is_outstanding(loaded.stored.run, command_id):
            # The cached run may be older than the work, which another process may have added.
            newest = await self._runs.load(loaded.job.job_id)
            if newest is None or not is_outstanding(newest.stored.run, command_id):
                return Performed.ENDED
            loaded = newest
        phase = outgoing.phase
        if phase is Phase.START and self._is_too_late(loaded, outgoing):
            return Performed.TOO_LATE
        command = command_of(loaded, phase, command_id, outgoing.step, offered_again=outgoing.again)
        equipment = self.routes.get(command.type_id)
        if equipment is None:
            reason = f"no equipment takes commands of type {command.type_id}"
            logger.error(
                "command without equipment", job=loaded.job.job_id, action=command.action, type=command.type_id
            )
            await self._runs.signal(loaded.job.job_id, Answer(command_id, ok=False, data=None, error=reason))
            return Performed.SENT
        match phase:
            case Phase.RESET:
                await equipment.reset(command)
            case Phase.PAUSE | Phase.RESUME:
                if isinstance(equipment, PausableEquipment) and equipment.can_pause:
                    await equipment.pause(command)
            case _ if self._is_busy(equipment.name):
                raise NotSent(f"{equipment.name} executes a command of a flow")
            case _:
                permit_start(self._runs.store)
                await equipment.send(command)
        return Performed.SENT

    def _is_too_late(self, loaded: LoadedJob, outgoing: Outgoing) -> bool:
        """Return whether a start must wait for the timers of its run, which may end it.

        The command of an earlier process also waits for the others: its step may have been left meanwhile.
        """
        run, now = loaded.stored.run, self._runs.clock()
        if is_too_late(run, outgoing.command_id, now):
            return True
        due = next_deadline(loaded.net, run) if outgoing.again else None
        return due is not None and due <= now

    async def never_left(self, start: Outgoing, job_id: str) -> bool:
        """Return whether a start that may have been sent before certainly was not: it is sent once, after its mark."""
        equipment = self.routes.get(start.type_id)
        if equipment is None or equipment.repetition_of(start.type_id) is not Repetition.ONCE:
            return False
        return await self._begun_by(start, job_id) == ""

    async def has_begun(self, start: Outgoing, job_id: str) -> bool:
        """Return whether another gateway may have found a start in the store and sent it.

        A start that is sent once has its begun mark then; a command that is gone from its run may have had one. Any
        other start needs no mark: it may have been sent where several gateways are registered for its scope.
        """
        equipment = self.routes.get(start.type_id)
        if equipment is None or equipment.repetition_of(start.type_id) is Repetition.ONCE:
            return await self._begun_by(start, job_id) != ""
        loaded = await self._runs.load(job_id)
        return loaded is not None and await instance_leases.has_several(self._runs.store, loaded.job.scope)

    async def _begun_by(self, start: Outgoing, job_id: str) -> str | None:
        """Return the process that has begun a command, empty where none has; None when the command is gone."""
        loaded = await self._runs.load(job_id)
        attempts = loaded.stored.run.associations.values() if loaded else ()
        return next((attempt.begun for attempt in attempts if attempt.command_id == start.command_id), None)

    async def withdraw(self, stop: Outgoing, job_id: str) -> bool:
        """Drop the start of a command that is to be stopped; return False when it may have left the gateway.

        A start that is sent once leaves after its begun mark; while the equipment is not connected, none is on its way.
        """
        equipment = self.routes.get(stop.type_id)
        if equipment is None:
            return False
        if withdraw(equipment, stop.command_id):
            return not await self.has_begun(stop, job_id)
        return equipment.connected is False and await self.never_left(stop, job_id)

    def obstacle_of(self, type_id: str) -> str:
        """Return why the equipment of a type cannot take commands now; empty when it can."""
        equipment = self.routes.get(type_id)
        if equipment is None:
            return ""
        return equipment.problem or (equipment.connection.text if equipment.connected is False else "")

    async def stop(self, scope: str, command_id: str, type_id: str) -> None:
        """Stop a command, even if its job was removed meanwhile: its id and type are sufficient.

        Raises Unavailable when the equipment cannot be reached now.
        """
        key = parse_command_id(command_id)
        equipment = self.routes.get(type_id)
        if key is None or equipment is None:
            logger.error("stop without equipment", command=command_id, type=type_id)
            return
        command = Command(
            command_id=command_id,
            phase=Phase.STOP,
            type_id=type_id,
            scope=scope,
            job_id=key.job_id,
            # The run holds the correlation id of its job.
            correlation_id=key.run_id,
            action=key.action,
            attempt=key.attempt,
            parameters={},
        )
        await equipment.stop(await self._with_cause(command))

    async def _with_cause(self, command: Command) -> Command:
        """Return a stop with the event that stored its job; without it while the job cannot be read."""
        try:
            loaded = self._runs.cached(command.job_id) or await self._runs.load_readable(command.job_id)
        except Unavailable:
            return command
        if loaded is None or loaded.job.correlation_id != command.correlation_id:
            return command
        return replace(command, causation_id=loaded.job.causation_id, trace=loaded.job.trace)


def permit_start(store: Store) -> None:
    """Raise NotSent while the primary is not confirmed: another gateway may work on another one, and start it, too."""
    if reason := store.unconfirmed:
        raise NotSent(f"the primary of the store is not confirmed: {reason}")


def command_of(loaded: LoadedJob, phase: Phase, command_id: str, step: str, *, offered_again: bool = False) -> Command:
    """Return a command that a committed decision asks for; only its flags differ between repetitions."""
    request = request_of(loaded.net, loaded.stored.run, phase, command_id, step)
    found = find_command(loaded.stored.run, command_id)
    begun = found is not None and found.begun != ""
    return Command(
        command_id=command_id,
        phase=phase,
        type_id=request.type_id,
        scope=loaded.job.scope,
        job_id=loaded.job.job_id,
        correlation_id=loaded.job.correlation_id,
        action=request.action,
        attempt=request.attempt,
        parameters=request.parameters,
        begun=begun,
        offered_again=offered_again or begun,
        expires_at=found.deadline if found else None,
        causation_id=loaded.job.causation_id,
        trace=loaded.job.trace,
    )


def routes_of(equipment: Iterable[tuple[EquipmentPort, Iterable[str]]]) -> dict[str, EquipmentPort]:
    """Map each command type to its equipment; the settings allow one piece of equipment for each type."""
    return {type_id: device for device, type_ids in equipment for type_id in type_ids}
