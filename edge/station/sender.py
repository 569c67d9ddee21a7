"""Sends the commands of committed decisions: in order per job, jobs in parallel, with retries."""

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto

import msgspec
import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from edge.foundation.backoff import MOST_TRIES, delay_after_defects
from edge.foundation.errors import Unavailable
from edge.foundation.fault_points import FaultPoint, fault_point
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.sfc.action import unsent_reason
from edge.sfc.identifiers import parse_command_id
from edge.sfc.net import Net, request_of
from edge.sfc.run import Association, is_too_late, outstanding
from edge.sfc.signal import Answer, Phase, Withdrawn
from edge.sfc.view import next_deadline
from edge.station.dead_letter_writer import DeadLetterWriter
from edge.station.decision import Decision, LoadedJob
from edge.station.equipment import Command, EquipmentPort, NotSent, PausableEquipment, Repetition, withdraw
from edge.station.own_starts import OwnStarts
from edge.station.runs import Runs
from edge.store import equipment_memory, instance_leases
from edge.store import runs as run_store
from edge.store.background import RETRY_INTERVAL_S, Isolated, retry_while_unavailable
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.runs import NO_CONSUMER, Outgoing
from edge.store.version import DocumentTooNew

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
        association = outstanding(loaded.stored.run, command_id)
        if association is None:
            # The cached run may be older than the work, which another process may have added.
            newest = await self._runs.load(loaded.job.job_id)
            if newest is None or (association := outstanding(newest.stored.run, command_id)) is None:
                return Performed.ENDED
            loaded = newest
        phase = outgoing.phase
        if phase is Phase.START and self._is_too_late(loaded, association, is_again=outgoing.again):
            return Performed.TOO_LATE
        held = self._runs.own_starts
        command = command_of(loaded, phase, association, outgoing.step, held, offered_again=outgoing.again)
        equipment = self.routes.get(command.type_id)
        if equipment is None:
            reason = Text.of("no equipment takes commands of type {type_id}", type_id=command.type_id)
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
                raise NotSent(Text.of("{equipment} executes a command of a flow", equipment=equipment.name))
            case _:
                permit_start(self._runs.store)
                await equipment.send(command)
        return Performed.SENT

    def _is_too_late(self, loaded: LoadedJob, association: Association, *, is_again: bool) -> bool:
        """Return whether a start must wait for the timers of its run, which may end it.

        The command of an earlier process also waits for the others: its step may have been left meanwhile.
        """
        run, now = loaded.stored.run, self._runs.clock()
        if is_too_late(run, association, now):
            return True
        due = next_deadline(loaded.net, run) if is_again else None
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
        """Return the mark of a start that may have left, empty where it has not; None when the command is gone."""
        loaded, command_id = await self._runs.load(job_id), start.command_id
        attempts = loaded.stored.run.associations.values() if loaded else ()
        mark = next((attempt.begun for attempt in attempts if attempt.command_id == command_id), None)
        return "" if mark is not None and not self._runs.own_starts.may_have_left(mark, command_id) else mark

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

    def obstacle_of(self, type_id: str) -> str | Text:
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
        raise NotSent(Text.of("the primary of the store is not confirmed: {reason}", reason=reason))


def command_of(
    loaded: LoadedJob,
    phase: Phase,
    association: Association,
    step: str,
    own_starts: OwnStarts,
    *,
    offered_again: bool = False,
) -> Command:
    """Return a command that a committed decision asks for; only its flags differ between repetitions."""
    request = request_of(loaded.net, loaded.stored.run, phase, association, step)
    begun = own_starts.may_have_left(association.begun, association.command_id)
    return Command(
        command_id=association.command_id,
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
        expires_at=association.deadline,
        causation_id=loaded.job.causation_id,
        trace=loaded.job.trace,
    )


def routes_of(equipment: Iterable[tuple[EquipmentPort, Iterable[str]]]) -> dict[str, EquipmentPort]:
    """Map each command type to its equipment; the settings allow one piece of equipment for each type."""
    return {type_id: device for device, ids in equipment for type_id in ids}


_REMOVE_DELAY_S = 0.5


class SendQueue(Struct, frozen=True):
    """The commands of one job that are being sent: how often each met a defect, and why it was not sent last time.

    `never_sent` are the ids of commands that ended before they were sent, each with the reason; `doubtful` are those
    that may have been sent before.
    """

    more: asyncio.Event = field(default_factory=asyncio.Event)
    defects: Counter[Outgoing] = field(default_factory=Counter)
    reasons: dict[Outgoing, Text] = field(default_factory=dict)
    never_sent: dict[str, str | Text] = field(default_factory=dict)
    doubtful: dict[str, str | Text] = field(default_factory=dict)


class Sender:
    """Sends the outboxes of this instance. A command is removed from its outbox after it was sent, never before."""

    def __init__(self, runs: Runs, dispatch: Dispatch, retry_interval_s: float = RETRY_INTERVAL_S) -> None:
        self._runs = runs
        self._outbox = runs.outbox
        self._dispatch = dispatch
        self._retry_interval_s = retry_interval_s
        self._dead_letters = DeadLetterWriter(runs)
        self._delays = LogThrottle(logger)
        self._queues: dict[str, SendQueue] = {}
        self._resumed: set[Outgoing] = set()
        """Commands of an earlier process, which may have sent them."""
        self._uncertain: set[Outgoing] = set()
        """Commands that failed after they may have left the gateway."""
        self._sent_jobs: set[str] = set()
        self._sent_some = asyncio.Event()

    async def run(self) -> None:
        """Send until cancelled; first the commands that this instance left when it ended."""
        try:
            async with TaskGroup() as tasks:
                tasks.create_task(self._check_uncertain(), name="check uncertain commits")
                tasks.create_task(self._remove_sent_forever(), name="remove sent commands")
                # Another reader of the runs may have queued these commands already: know them before any is sent.
                await self._resume()
                while True:
                    self._enqueue(tasks, await self._outbox.queue.get())
        finally:
            # A command that was sent is removed before the process ends; else the next start would send it again.
            with contextlib.suppress(Unavailable):
                await self._remove_sent()

    def _enqueue(self, tasks: TaskGroup, job_id: str) -> None:
        queue = self._queues.get(job_id)
        if queue is not None:
            queue.more.set()
            return
        self._queues[job_id] = SendQueue()
        tasks.create_task(self._empty(job_id), name=f"send for {job_id}")

    async def _empty(self, job_id: str) -> None:
        """Send all commands of a job, with retries; equipment that is away delays no other job."""
        queue = self._queues[job_id]
        tries = 1
        try:
            while await self.send_all(job_id, queue):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(delay_after_defects(tries)):
                        await queue.more.wait()
                queue.more.clear()
                tries += 1
                # Another instance may have ended the job meanwhile: a stopped command must not be sent.
                self._runs.invalidate(job_id)
        finally:
            del self._queues[job_id]
            self._sent_jobs.add(job_id)
            self._sent_some.set()

    async def send_all(self, job_id: str, queue: SendQueue | None = None) -> bool:
        """Try once to send all commands of a job; return whether some are left. Its queue keeps the failures."""
        queue = queue or SendQueue()
        for outgoing in self._outbox.unsent(job_id):
            # The command may count as sent now: the last commit of an ended instance may arrive late.
            if self._outbox.is_unsent(job_id, outgoing):
                await self._send(job_id, outgoing, queue)
        return self._outbox.has_unsent(job_id)

    async def _send(self, job_id: str, outgoing: Outgoing, queue: SendQueue) -> None:
        try:
            if outgoing.phase is Phase.STOP:
                await self._stop(job_id, outgoing, queue)
            elif (loaded := await self._runs.get(job_id)) and self._outbox.is_unsent(job_id, outgoing):
                is_again = outgoing in self._resumed
                given = msgspec.structs.replace(outgoing, again=True) if is_again else outgoing
                match await self._dispatch.perform(loaded, given):
                    case Performed.TOO_LATE:
                        return
                    case Performed.ENDED if outgoing.phase is Phase.START:
                        await self._note_ended(job_id, outgoing, queue)
                    case _:
                        pass
        except (Unavailable, DocumentTooNew) as error:
            if not isinstance(error, NotSent):
                self._uncertain.add(outgoing)
            # Equipment may be away for days: the reason is logged once, and not for each of many jobs that wait for it.
            if queue.reasons.get(outgoing) != error.text:
                command, queue.reasons[outgoing] = outgoing.command_id, error.text
                self._delays.warning(
                    "command delayed", error.message, job=job_id, command=command, reason=error.message
                )
            return
        except Exception as error:
            # A defect in one kind of equipment, or at one command, must not stop the others.
            logger.exception("command cannot be sent", job=job_id, command=outgoing.command_id)
            self._uncertain.add(outgoing)
            queue.defects[outgoing] += 1
            if queue.defects[outgoing] < MOST_TRIES or not await self._give_up(job_id, outgoing, error):
                return
        fault_point(FaultPoint.SENT)
        self._outbox.mark_sent(job_id, outgoing)
        self._resumed.discard(outgoing)
        self._uncertain.discard(outgoing)

    async def _note_ended(self, job_id: str, start: Outgoing, queue: SendQueue) -> None:
        """Remember a start that has ended before this process sent it, for its stop.

        Another gateway may have the stop, as it was the one that ended the start: it cannot know that it was not sent.
        """
        may_have_left = self._may_have_left(start) or await self._dispatch.has_begun(start, job_id)
        never_left = not may_have_left or await self._dispatch.never_left(start, job_id)
        ended = queue.never_sent if never_left else queue.doubtful
        ended[start.command_id] = queue.reasons.get(start, "")
        if never_left and not self._has_stop(job_id, start.command_id):
            await self._record(job_id, Withdrawn(start.command_id, queue.never_sent.pop(start.command_id)), Commit())

    def _has_stop(self, job_id: str, command_id: str) -> bool:
        return any(item.phase is Phase.STOP and item.command_id == command_id for item in self._outbox.unsent(job_id))

    def _may_have_left(self, outgoing: Outgoing) -> bool:
        return outgoing.again or outgoing in self._resumed or outgoing in self._uncertain

    async def _stop(self, job_id: str, stop: Outgoing, queue: SendQueue) -> None:
        """Send a stop; where the start has never left the gateway, record that instead: nothing can be active."""
        command_id = stop.command_id
        never_left = command_id in queue.never_sent or await self._dispatch.withdraw(stop, job_id)
        removal = equipment_memory.remove_safing(self._runs.store.keys, command_id) if never_left else Commit()
        if never_left:
            reason = queue.never_sent.get(command_id) or self._dispatch.obstacle_of(stop.type_id)
            await self._record(job_id, Withdrawn(command_id, reason), removal)
            queue.never_sent.pop(command_id, None)
            return
        if command_id in queue.doubtful:
            await self._record(job_id, Withdrawn(command_id, queue.doubtful[command_id], may_have_left=True), removal)
            del queue.doubtful[command_id]
        await self._dispatch.stop(self._outbox.scope_of(job_id), command_id, stop.type_id)

    async def _record(self, job_id: str, withdrawn: Withdrawn, removal: Commit) -> None:
        """Record that a command was not sent, or may not have been, and no longer require its stop."""
        command_id = withdrawn.command_id
        if not withdrawn.reason and (loaded := await self._runs.get(job_id)):
            withdrawn = replace(withdrawn, reason=unsent_reason(loaded.net, loaded.stored.run, command_id))
        outcome = await self._runs.signal(job_id, withdrawn, also=lambda _: removal)
        if not isinstance(outcome, Decision) and removal.operations:
            await self._runs.store.commit(removal)
        event = "command may have been sent" if withdrawn.may_have_left else "command never sent"
        logger.info(event, job=job_id, command=command_id, reason=str(withdrawn.reason))

    async def _give_up(self, job_id: str, outgoing: Outgoing, error: Exception) -> bool:
        """Write a dead letter for a command; return False when writing must be retried."""
        isolated = Isolated(logger, "dead letter not written", job=job_id, command=outgoing.command_id)
        with contextlib.suppress(Unavailable), isolated:
            await self._dead_letters.command(job_id, self._outbox.scope_of(job_id), outgoing, error)
            return True
        return False

    async def _resume(self) -> None:
        await retry_while_unavailable("resume the outboxes", self._resume_all, self._retry_interval_s)

    async def _resume_all(self) -> None:
        for job_id in await run_store.jobs_with_outbox(self._runs.store, self._runs.context.consumer):
            await self._runs.load_readable(job_id)
            self._resumed |= set(self._outbox.unsent(job_id))
            self._outbox.queue.put_nowait(job_id)

    async def _check_uncertain(self) -> None:
        """Read the jobs whose commit lost its reply, and queue the commands of the commits that were carried out."""
        while True:
            uncertain = {await self._runs.uncertain.get()}
            while not self._runs.uncertain.empty():
                uncertain.add(self._runs.uncertain.get_nowait())
            # A server that did not answer in time may still carry out the commits.
            await asyncio.sleep(self._retry_interval_s)
            load = functools.partial(self._load_all, uncertain)
            await retry_while_unavailable("check uncertain commits", load, self._retry_interval_s)

    async def _load_all(self, job_ids: set[str]) -> None:
        for job_id in tuple(job_ids):
            await self._runs.load_readable(job_id)
            job_ids.discard(job_id)

    async def _remove_sent_forever(self) -> None:
        """Remove the sent commands that no later commit has removed; a delay saves busy jobs a round trip."""
        while True:
            await self._sent_some.wait()
            await asyncio.sleep(_REMOVE_DELAY_S)
            self._sent_some.clear()
            await retry_while_unavailable("remove sent commands", self._remove_sent, self._retry_interval_s)

    async def _remove_sent(self) -> None:
        for job_id in tuple(self._sent_jobs):
            # After a defect the commands of this job may be sent again at the next start.
            with Isolated(logger, "sent commands cannot be removed", job=job_id):
                await remove_sent(self._runs, job_id)
            self._sent_jobs.discard(job_id)


async def remove_sent(active_runs: Runs, job_id: str) -> None:
    """Remove the sent commands of a job from its outbox in the store, unless a commit of the job has done so.

    Raises Unavailable when the store is gone.
    """
    outbox, context = active_runs.outbox, active_runs.context
    while outbox.has_sent(job_id):
        loaded = await active_runs.get(job_id)
        if loaded is None:
            outbox.drop_run(job_id)
            return
        left = outbox.unsent(job_id)
        parts = [run_store.remove_sent(context.keys, loaded.stored, left, context.consumer)]
        if loaded.job.ended_at is not None and not left:
            parts.append(run_store.finish(context.keys, job_id))
        if isinstance(await active_runs.store.commit(join(parts)), Committed):
            active_runs.cache(replace(loaded, stored=msgspec.structs.replace(loaded.stored, outbox=left)))
        else:
            active_runs.invalidate(job_id)


async def take_over(active_runs: Runs, job_id: str, former: str, extra: Commit) -> None:
    """Move the outbox that an ended instance, or a visitor of the store, has left of a job into that of this instance.

    Raises Unavailable when the store is gone.
    """
    store, context = active_runs.store, active_runs.context
    while True:
        loaded = await active_runs.load(job_id)
        theirs = await run_store.load_outbox(store, job_id, former) if loaded else ()
        if loaded is None or not theirs or former == context.consumer:
            await store.commit(extra)
            return
        # A visitor of the store sends nothing; an ended instance may have sent its commands.
        is_visitor = former == NO_CONSUMER
        theirs = tuple(their if is_visitor else msgspec.structs.replace(their, again=True) for their in theirs)
        outbox = (*active_runs.outbox.unsent(job_id), *theirs)
        moved = run_store.take_over(context.keys, loaded.stored, outbox, context.consumer, former)
        if isinstance(await store.commit(join((moved, extra))), Committed):
            await active_runs.load(job_id)
            return
