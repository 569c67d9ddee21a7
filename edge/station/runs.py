"""Loads the run of a job, decides about a signal and commits the decision; decides again when the commit is stale."""

import asyncio
import functools
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.access.lock_queue import acquire, is_held_by, release
from edge.foundation.errors import Defect
from edge.foundation.instant import Clock
from edge.foundation.listeners import notify
from edge.foundation.text import Text, join_texts
from edge.model.lock import LockClaim, LockKind
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import NO_LOCK_CHANGE, LockChange
from edge.sfc.signal import NO_MIRRORS, CommandRequest, Ignored, Mirrors, Phase, Signal, StepChange
from edge.station.decision import (
    NO_SECOND,
    Decision,
    InstanceContext,
    LoadedJob,
    MethodRequest,
    NotAllowed,
    decide,
)
from edge.station.equipment import EquipmentEvent, Task
from edge.station.own_starts import OwnStarts
from edge.store import jobs, locks, runs
from edge.store.background import Isolated
from edge.store.client import Store
from edge.store.commit import Commit, CommitResult, Committed, Stale, join
from edge.store.runs import MOST_DECISIONS, NO_CONSUMER, Outbox, Outgoing, StoredRun
from edge.store.server_time import server_time


class JobOutbox(Struct):
    """The commands of a run at a revision, in order, each with whether it was sent."""

    scope: str
    run_id: str
    revision: int
    commands: dict[Outgoing, bool]

    def unsent_stops(self) -> dict[Outgoing, bool]:
        """Return the stops that were not sent, which remain due when the run is gone or replaced."""
        return {command: sent for command, sent in self.commands.items() if command.phase is Phase.STOP and not sent}

    def is_newer(self, stored: StoredRun) -> bool:
        """Return whether this copy is of a later state of the run: replies may arrive out of order."""
        return self.run_id == stored.run.run_id and self.revision > stored.revision

    def is_as_new(self, stored: StoredRun) -> bool:
        """Return whether this copy is of the same or a later state of the run."""
        return self.run_id == stored.run.run_id and self.revision >= stored.revision


class OutboxCache:
    """The commands to be sent and those already sent; `queue` names the jobs with new commands.

    A command is queued when the decision that asks for it is committed, and removed when it was sent: by the next
    commit of its job, or by `remove_sent` of the sender.
    """

    def __init__(self, max_cached: int) -> None:
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        self._max_cached = max_cached
        self._jobs: dict[str, JobOutbox] = {}

    def get(self, job_id: str) -> JobOutbox | None:
        """Return the copy of a job's outbox."""
        return self._jobs.get(job_id)

    def unsent(self, job_id: str) -> Outbox:
        """Return the commands of a job that are to be sent, in order."""
        job_outbox = self._jobs.get(job_id)
        return tuple([command for command, sent in job_outbox.commands.items() if not sent]) if job_outbox else ()

    def is_unsent(self, job_id: str, outgoing: Outgoing) -> bool:
        """Return whether this command of a job is to be sent."""
        job_outbox = self._jobs.get(job_id)
        return job_outbox is not None and job_outbox.commands.get(outgoing) is False

    def has_unsent(self, job_id: str) -> bool:
        """Return whether a command of a job is to be sent."""
        job_outbox = self._jobs.get(job_id)
        return job_outbox is not None and False in job_outbox.commands.values()

    def has_sent(self, job_id: str) -> bool:
        """Return whether a command of a job was sent and is not removed from the store."""
        job_outbox = self._jobs.get(job_id)
        return job_outbox is not None and True in job_outbox.commands.values()

    def scope_of(self, job_id: str) -> str:
        """Return the scope of a job with commands."""
        return self._jobs[job_id].scope

    def mark_sent(self, job_id: str, outgoing: Outgoing) -> None:
        """Record that a command was sent."""
        job_outbox = self._jobs.get(job_id)
        if job_outbox and outgoing in job_outbox.commands:
            job_outbox.commands[outgoing] = True

    def update(self, loaded: LoadedJob) -> None:
        """Replace the copy by the outbox of a stored run; queue the job when it has new commands."""
        job_id, stored_run = loaded.job.job_id, loaded.stored
        job_outbox = self._jobs.pop(job_id, None)
        # A command that was sent while the run was written, or read, remains sent.
        before = job_outbox.commands if job_outbox else {}
        older = job_outbox.unsent_stops() if job_outbox and job_outbox.run_id != stored_run.run.run_id else {}
        commands = older | {outgoing: before.get(outgoing, False) for outgoing in stored_run.outbox}
        self._jobs[job_id] = JobOutbox(loaded.job.scope, stored_run.run.run_id, stored_run.revision, commands)
        if any(not sent and command not in before for command, sent in commands.items()):
            # A command that was known before is being sent: queueing the job would end its wait for the equipment.
            self.queue.put_nowait(job_id)
        self._evict()

    def drop_run(self, job_id: str) -> None:
        """Remove the commands of a removed run, except for its stops: the equipment may still work."""
        job_outbox = self._jobs.pop(job_id, None)
        if job_outbox and (stops := job_outbox.unsent_stops()):
            self._jobs[job_id] = replace(job_outbox, commands=stops)

    def queue_all(self) -> None:
        """Queue every job with commands."""
        for job_id, job_outbox in self._jobs.items():
            if job_outbox.commands:
                self.queue.put_nowait(job_id)

    def _evict(self) -> None:
        """Remove the oldest copy without commands: its revision is known to the store as well."""
        if len(self._jobs) > self._max_cached:
            empty = (job_id for job_id, job_outbox in self._jobs.items() if not job_outbox.commands)
            if (oldest := next(empty, None)) is not None:
                del self._jobs[oldest]


def owner_of(job_id: str) -> str:
    """Return the name of a job as the owner of locks."""
    return f"job {job_id}"


def claim_of(job_id: str, scope: str, reason: str | Text, now: int) -> LockClaim:
    """Return the claim of a job, which lasts until the job releases it."""
    return LockClaim(owner=owner_of(job_id), reason=reason, since=now, job_id=job_id, scope=scope)


async def plan_locks(store: Store, job_id: str, scope: str, change: LockChange) -> Commit | None:
    """Return the commit that applies `change`; None when another owner took a lock that `change` grants.

    Locks are claimed in the order of their ids, up to the first one that is not free: a job waits for one lock at a
    time.
    """
    now = await server_time(store)
    claim = claim_of(job_id, scope, change.reason, now)
    waits = False
    parts = []
    for before in await locks.load(store, LockKind.EQUIPMENT, change.names):
        after, name = before.lock, before.object_id
        if name in change.released:
            after = release(after, claim.owner, now)
        if name in change.granted or (name in change.claimed and not waits):
            after = acquire(after, claim)
            if name in change.granted and not is_held_by(after, claim.owner):
                return None
            waits = waits or not is_held_by(after, claim.owner)
        parts.append(locks.save(store.keys, before, after))
    return join(parts)


async def lock_holders(store: Store, names: Iterable[str]) -> Mapping[str, Text]:
    """Return who holds each of these locks, as text."""
    texts: dict[str, Text] = {}
    now = await server_time(store)
    for stored_lock in await locks.load(store, LockKind.EQUIPMENT, names):
        if stored_lock.lock:
            holder, waiting = stored_lock.lock.holder, len(stored_lock.lock.waiters)
            owner = holder.owner_text
            text = Text.of(
                "held by {owner} for {seconds:.0f} s",
                owner=Text.of("{owner} ({reason})", owner=owner, reason=holder.reason) if holder.reason else owner,
                seconds=max(0, now - holder.since) / 1000,
            )
            texts[stored_lock.object_id] = (
                Text.of("{held}, {count} waiting", held=text, count=waiting) if waiting > 1 else text
            )
    return texts


logger = structlog.get_logger(__name__)

Compiler = Callable[[str], Net | RejectedRecipe]
"""A function that compiles the JSON text of a recipe."""

_MAX_CACHED = 10_000
_MAX_OUTBOXES = 2_000
"""The outboxes that are kept, those of ended jobs too: a store that restarts may have lost the last second of a run."""


_BUSY_S = 0.02
"""Time after a decision in which the next one is likely."""


class NoRun(Struct, frozen=True):
    """The result for a job that does not exist, or has not started."""


class Progress(Struct, frozen=True):
    """The effect of one committed decision, for listeners; a listener may miss some, the store holds all of them.

    `loaded` is the job with its run after the decision; `due` is the instant of its next timer, in milliseconds since
    the epoch.
    """

    loaded: LoadedJob
    at: int
    steps: tuple[StepChange, ...]
    requests: tuple[CommandRequest, ...]
    due: int | None


def _nothing(_: Decision) -> Commit:
    return Commit()


@functools.lru_cache(maxsize=64)
def compiled(recipe: str) -> Net | RejectedRecipe:
    """Compile the JSON text of a recipe; the cache serves the jobs that run the same recipe."""
    return compile_recipe(msgspec.json.decode(recipe))


EventTaker: TypeAlias = Callable[[str, EquipmentEvent], Awaitable[Task | None]]
"""Uses an event of the equipment with a name; returns what it was used for, None when it was not. Raises Unavailable.

core.runs.event_takers.append(answers.take)
"""


class Runs:
    """Turns signals into committed decisions. Its cache is a copy that the guards of each commit check."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        keep_ended_ms: int,
        compiler: Compiler = compiled,
        keep_letters_ms: int = 30 * 86_400_000,
        max_cached: int = _MAX_CACHED,
        most_decisions: int = MOST_DECISIONS,
        second_person: Mapping[str, int] = NO_SECOND,
        own_starts: OwnStarts | None = None,
    ) -> None:
        self.own_starts = own_starts or OwnStarts()
        """Those of this process: they outlive the store, which is over with its primary."""
        self.outbox = OutboxCache(min(max_cached, _MAX_OUTBOXES))
        """The commands to send: a commit puts them there, the sender takes them."""
        self.uncertain: asyncio.Queue[str] = asyncio.Queue()
        """The jobs whose last commit may or may not have been carried out."""
        self.listeners: list[Callable[[Progress], None]] = []
        self.additions: list[Callable[[Decision], Commit]] = []
        """Each returns an addition to the commit of every decision."""
        self.event_takers: list[EventTaker] = []
        """Each may use an event that no job waits for."""
        self.mirrors: Callable[[], Mirrors] = lambda: NO_MIRRORS
        """Returns the copies of mirrored sets that decisions see."""
        self.clock = clock
        self.compiled = compiler
        self.context = InstanceContext(
            store.keys, store.consumer, keep_ended_ms, keep_letters_ms, most_decisions, second_person
        )
        self.store = store
        self._lock_key = store.keys.locks(LockKind.EQUIPMENT)
        self._max_cached = max_cached
        self._loaded: dict[str, LoadedJob] = {}
        self._decided_at = -math.inf

    def is_busy(self) -> bool:
        """Return whether jobs make decisions now: work that may wait rests."""
        return time.monotonic() - self._decided_at < _BUSY_S

    async def signal(
        self,
        job_id: str,
        signal: Signal,
        request: MethodRequest | None = None,
        also: Callable[[Decision], Commit] = _nothing,
    ) -> Decision | Ignored | NotAllowed | NoRun | Stale:
        """Decide about a signal and commit the decision together with the addition `also`.

        Returns Stale only when a guard of that addition fails; a run that was changed meanwhile is decided again.
        Raises Unavailable when the store is gone; the signal can then be repeated.
        """
        while True:
            loaded_job = self._loaded.get(job_id)
            loaded = loaded_job or await self.load(job_id)
            if loaded is None:
                return NoRun()
            unsent, mirrors = self.outbox.unsent(job_id), self.mirrors_for(loaded.net)
            decision = decide(self.context, loaded, unsent, signal, request, self.clock(), mirrors)
            if not isinstance(decision, Decision):
                if loaded_job is None:
                    return decision
                # The cache may be old because another instance decided: a refusal must be based on the store.
                self.invalidate(job_id)
                continue
            result = await self.commit(decision, also(decision))
            if isinstance(result, Committed):
                return decision
            self.invalidate(job_id)
            if result.key not in self._own_keys(job_id):
                return result

    async def commit(self, decision: Decision, extra: Commit) -> Committed | Stale:
        """Commit the decision, cache the new state, queue its commands."""
        loaded = decision.loaded
        self._decided_at = time.monotonic()
        parts = (decision.commit, extra, *(addition(decision) for addition in self.additions))
        if decision.locks is NO_LOCK_CHANGE:
            result = await self._write(loaded.job.job_id, join(parts))
        else:
            result = await self._write_with_locks(decision, parts)
        if isinstance(result, Committed):
            self.cache(loaded)
            progress = Progress(loaded, self.clock(), decision.steps, decision.requests, decision.due)
            notify(self.listeners, progress)
        return result

    async def _write_with_locks(self, decision: Decision, parts: Sequence[Commit]) -> CommitResult:
        """Write a decision that changes locks; plan their change again when they were changed meanwhile."""
        job, stale = decision.loaded.job, Stale(self._lock_key)
        while True:
            # None: a person has deleted a lock that was granted.
            locks = await plan_locks(self.store, job.job_id, job.scope, decision.locks)
            if locks is None:
                return stale
            result = await self._write(job.job_id, join((*parts, locks)))
            if result != stale:
                return result

    async def _write(self, job_id: str, commit: Commit) -> CommitResult:
        try:
            return await self.store.commit(commit)
        except BaseException:
            # A commit whose reply is lost may have been carried out.
            self.invalidate(job_id)
            self.uncertain.put_nowait(job_id)
            raise

    def mirrors_for(self, net: Net) -> Mirrors:
        """Return the copies of mirrored sets for the decisions of a recipe."""
        return self.mirrors() if net.mirrors else NO_MIRRORS

    async def load(self, job_id: str) -> LoadedJob | None:
        """Read a job with its run, and queue its new commands; None when it has no run."""
        while True:
            job_outbox = self.outbox.get(job_id)
            stored_run = await runs.load(self.store, job_id)
            job = await jobs.load(self.store, job_id) if stored_run else None
            if stored_run is None or job is None:
                self.outbox.drop_run(job_id)
                return None
            loaded = LoadedJob(job, stored_run, net_of(stored_run.recipe, self.compiled))
            current = self.outbox.get(job_id)
            if current is not job_outbox and current is not None and current.is_as_new(stored_run):
                # A state that became known meanwhile may be newer than this reply, also at the same revision: sent
                # commands were removed from the outbox. The next reply has it.
                continue
            if self.cache(loaded):
                return loaded
            if current:
                # A state that was known before the request cannot have overtaken it: the store has lost it.
                await self._resume_after_loss(loaded, current)

    async def load_readable(self, job_id: str) -> LoadedJob | None:
        """Read a job as `load` does; return None also for one that cannot be read, which must not delay others."""
        # A newer release, or a person, may have written it.
        with Isolated(logger, "run cannot be read", job=job_id):
            return await self.load(job_id)
        return None

    async def get(self, job_id: str) -> LoadedJob | None:
        """Return a job with its run, from the cache where it is cached."""
        return self._loaded.get(job_id) or await self.load(job_id)

    def cached(self, job_id: str) -> LoadedJob | None:
        """Return the cached state of a job, which may be old; None where it is not cached."""
        return self._loaded.get(job_id)

    def cache(self, loaded: LoadedJob) -> bool:
        """Cache a state of a job and queue its new commands; return False when a later state is known."""
        job_id = loaded.job.job_id
        job_outbox = self.outbox.get(job_id)
        if job_outbox and job_outbox.is_newer(loaded.stored):
            return False
        self.invalidate(job_id)
        if loaded.job.ended_at is None:
            self._loaded[job_id] = loaded
            if len(self._loaded) > self._max_cached:
                del self._loaded[next(iter(self._loaded))]
        if self.context.consumer != NO_CONSUMER:
            self.outbox.update(loaded)
        return True

    def invalidate(self, job_id: str) -> None:
        """Remove a job from the cache: it may be old."""
        self._loaded.pop(job_id, None)

    def invalidate_all(self) -> None:
        """Invalidate the cache: others may have taken over the commands. Queue those that are still ours."""
        self._loaded.clear()
        self.outbox.queue_all()

    async def _resume_after_loss(self, loaded: LoadedJob, known: JobOutbox) -> None:
        """Resume a run from the older state in the store, with a revision beyond the state that the store lost.

        Every command without an answer is sent again, for the answer may be lost; a stop that was due is still due.
        """
        job_id, stored_run = loaded.job.job_id, loaded.stored
        logger.warning("run resumed from an older state", job=job_id, stored=stored_run.revision, lost=known.revision)
        known.commands = {command: False for command, sent in known.commands.items() if not sent}
        again = (msgspec.structs.replace(outgoing, again=True) for outgoing in loaded.unanswered())
        outbox = tuple(dict.fromkeys((*known.unsent_stops(), *stored_run.outbox, *again)))
        keys, consumer = self.context.keys, self.context.consumer
        # Stale when another instance has moved it meanwhile: either way the next reading shows the result.
        await self.store.commit(runs.resume_after_loss(keys, known.revision, stored_run, outbox, consumer))

    def _own_keys(self, job_id: str) -> tuple[str, str]:
        return self.context.keys.joborder(job_id), self.context.keys.sfc_execution(job_id)


def net_of(recipe: str, compiler: Compiler = compiled) -> Net:
    """Return the compiled recipe that is pinned to the run; it was valid when the run started."""
    net = compiler(recipe)
    if not isinstance(net, Net):
        raise Defect(
            Text.of("a stored run has an unsound recipe: {faults}", faults=join_texts("; ", net.texts)),
            "Report this with the recipe.",
        )
    return net
