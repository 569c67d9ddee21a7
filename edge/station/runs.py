"""The runs this instance works on: load, decide, commit; decide again when somebody else was faster."""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import structlog

from edge.errors import Defect, Unavailable
from edge.instant import Clock
from edge.sfc.compiler import Rejected, compile_recipe
from edge.sfc.net import Net
from edge.sfc.signal import CommandRequest, Ignored, Phase, Signal, StepChange
from edge.station.decision import Decision, InstanceContext, LoadedJob, MethodRequest, NotAllowed, decide
from edge.store import jobs, runs
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Stale, join
from edge.store.runs import NO_CONSUMER, Outbox, Outgoing, StoredRun

logger = structlog.get_logger(__name__)

Compiler = Callable[[str], Net | Rejected]
"""Compiles the JSON text of a recipe."""

_MAX_CACHED = 10_000


@dataclass(frozen=True, slots=True)
class NoRun:
    """There is no such job, or it has not started."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one decision did, for those who watch; a watcher may miss some, the store misses nothing.

    `loaded` is the job with its run after it; `due` is the instant of its next timer, in
    milliseconds since the epoch.
    """

    loaded: LoadedJob
    at: int
    steps: tuple[StepChange, ...]
    requests: tuple[CommandRequest, ...]
    due: int | None


@dataclass(slots=True)
class _Outbox:
    """What the store holds to be sent by us of a run at a revision, in order, and whether it was sent."""

    scope: str
    run_id: str
    revision: int
    commands: dict[Outgoing, bool]

    def stops(self) -> dict[Outgoing, bool]:
        """Give what is to be stopped yet, even if the run is gone or another one has come in its place."""
        return {each: sent for each, sent in self.commands.items() if each.phase is Phase.STOP and not sent}

    def is_newer(self, stored: StoredRun) -> bool:
        """Tell whether we know of a later state of the run: replies may overtake each other."""
        return self.run_id == stored.run.run_id and self.revision > stored.revision


def _nothing(_: Decision) -> Commit:
    return Commit()


@functools.lru_cache(maxsize=64)
def compiled(recipe: str) -> Net | Rejected:
    """Compile the JSON text of a recipe; job after job runs the same few."""
    return compile_recipe(msgspec.json.decode(recipe))


class Runs:
    """Turns signals into committed decisions. What it holds is a copy that the guards of a commit prove."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        keep_ended_ms: int,
        compiler: Compiler = compiled,
        keep_letters_ms: int = 30 * 86_400_000,
        max_cached: int = _MAX_CACHED,
    ) -> None:
        self.outgoing: asyncio.Queue[str] = asyncio.Queue()
        """The jobs of which something is to be sent."""
        self.uncertain: asyncio.Queue[str] = asyncio.Queue()
        """The jobs of whose last commit we do not know whether it was carried out."""
        self.listeners: list[Callable[[Progress], None]] = []
        self.clock = clock
        self.compiled = compiler
        self.context = InstanceContext(store.keys, store.consumer, keep_ended_ms, keep_letters_ms)
        self.store = store
        self._max_cached = max_cached
        self._loaded: dict[str, LoadedJob] = {}
        self._outboxes: dict[str, _Outbox] = {}

    async def signal(
        self,
        job_id: str,
        signal: Signal,
        request: MethodRequest | None = None,
        also: Callable[[Decision], Commit] = _nothing,
    ) -> Decision | Ignored | NotAllowed | NoRun | Stale:
        """Give a signal to a run and write what follows, together with what `also` adds to the decision.

        Stale comes back only when a guard of that addition fails; a run that moved meanwhile is decided again.
        Raises Unavailable when the store is gone; the signal can then be given again.
        """
        while True:
            known = self._loaded.get(job_id)
            loaded = known or await self.load(job_id)
            if loaded is None:
                return NoRun()
            decision = decide(self.context, loaded, self.unsent(job_id), signal, request, self.clock())
            if not isinstance(decision, Decision):
                if known is None:
                    return decision
                # What we hold may be old, another instance may have moved the run: a refusal must rest on the store.
                self.invalidate(job_id)
                continue
            result = await self.commit(decision, also(decision))
            if isinstance(result, Committed):
                return decision
            self.invalidate(job_id)
            if result.key not in self._own_keys(job_id):
                return result

    async def commit(self, decision: Decision, extra: Commit) -> Committed | Stale:
        """Write a decision, hold what it made of the job, and have sent what it asks for."""
        loaded = decision.loaded
        job_id = loaded.job.job_id
        try:
            result = await self.store.commit(join((decision.commit, extra)))
        except BaseException:
            # A commit whose reply is lost may have been carried out all the same.
            self.invalidate(job_id)
            self.uncertain.put_nowait(job_id)
            raise
        if isinstance(result, Stale):
            return result
        self._cache(loaded)
        progress = Progress(loaded, self.clock(), decision.steps, decision.requests, decision.due)
        self._notify(progress)
        return result

    def _notify(self, progress: Progress) -> None:
        for watch in self.listeners:
            try:
                watch(progress)
            except Exception:
                # What is committed stands: a defect in who watches concerns neither the others nor who decided.
                logger.exception("watcher failed", job=progress.loaded.job.job_id)

    async def load(self, job_id: str) -> LoadedJob | None:
        """Read a job with its run; None when it has none. What we have to send and did not know of is sent."""
        while True:
            known = self._outboxes.get(job_id)
            stored = await runs.load(self.store, job_id)
            job = await jobs.load(self.store, job_id) if stored else None
            if stored is None or job is None:
                self._keep_stops(job_id)
                return None
            loaded = LoadedJob(job, stored, net_of(stored.recipe, self.compiled))
            if self._cache(loaded):
                return loaded
            # A later state that we have learnt of meanwhile overtook this reply: the next one tells of it. What we
            # knew before we asked cannot have: the store has lost it.
            if known and self._outboxes.get(job_id) is known:
                await self._go_back(loaded, known)

    async def load_readable(self, job_id: str) -> LoadedJob | None:
        """Read a job as `load` does; None also for one that nobody can read, which must not keep others waiting."""
        try:
            return await self.load(job_id)
        except Unavailable:
            raise
        except Exception:
            # A newer release may have written it, or a hand.
            logger.exception("run cannot be read", job=job_id)
            return None

    async def get(self, job_id: str) -> LoadedJob | None:
        """Give a job with its run as last known."""
        return self._loaded.get(job_id) or await self.load(job_id)

    def cached(self, job_id: str) -> LoadedJob | None:
        """Give what we hold of a job; it may be old, and is nothing where we have not worked on it yet."""
        return self._loaded.get(job_id)

    def invalidate(self, job_id: str) -> None:
        """Let go of what is held of a job: it may be old."""
        self._loaded.pop(job_id, None)

    def invalidate_all(self) -> None:
        """Let go of all that is held: others may have taken over what is to be sent. What is left to us is sent."""
        self._loaded.clear()
        for job_id, known in self._outboxes.items():
            if known.commands:
                self.outgoing.put_nowait(job_id)

    def unsent(self, job_id: str) -> Outbox:
        """Give what is still to be sent of a job, in order."""
        known = self._outboxes.get(job_id)
        return tuple(each for each, was_sent in known.commands.items() if not was_sent) if known else ()

    def scope_of(self, job_id: str) -> str:
        """Give the scope of a job of which something is to be sent."""
        return self._outboxes[job_id].scope

    def sent(self, job_id: str, outgoing: Outgoing) -> None:
        """Note that a command has left us: the next commit of the job takes it off the outbox, or `tidy` does."""
        known = self._outboxes.get(job_id)
        if known and outgoing in known.commands:
            known.commands[outgoing] = True

    async def tidy(self, job_id: str) -> None:
        """Take what was sent off the outbox in the store, where no commit of the job has done so yet."""
        while (known := self._outboxes.get(job_id)) and any(known.commands.values()):
            loaded = await self.get(job_id)
            if loaded is None:
                self._keep_stops(job_id)
                return
            left = self.unsent(job_id)
            parts = [runs.remove_sent(self.context.keys, loaded.stored, left, self.context.consumer)]
            if loaded.job.ended_at is not None and not left:
                parts.append(runs.finish(self.context.keys, job_id))
            if isinstance(await self.store.commit(join(parts)), Committed):
                self._cache(replace(loaded, stored=msgspec.structs.replace(loaded.stored, outbox=left)))
            else:
                self.invalidate(job_id)

    async def take_over(self, job_id: str, former: str, extra: Commit) -> None:
        """Make ours what another instance, that lives no more, or a visitor has left to be sent of a job."""
        while True:
            loaded = await self.load(job_id)
            theirs = await runs.load_outbox(self.store, job_id, former) if loaded else ()
            if loaded is None or not theirs or former == self.context.consumer:
                await self.store.commit(extra)
                return
            outbox = (*self.unsent(job_id), *theirs)
            moved = runs.take_over(self.context.keys, loaded.stored, outbox, self.context.consumer, former)
            if isinstance(await self.store.commit(join((moved, extra))), Committed):
                await self.load(job_id)
                return

    async def left_to_send(self) -> list[str]:
        """Give the jobs of which this instance had something to send when it ended: to load one is to send it."""
        return await runs.jobs_with_outbox(self.store, self.context.consumer)

    def _cache(self, loaded: LoadedJob) -> bool:
        """Hold what is known of a job, and have sent what is to be sent by us; False when we know better already."""
        job_id, stored = loaded.job.job_id, loaded.stored
        known = self._outboxes.get(job_id)
        if known and known.is_newer(stored):
            return False
        self.invalidate(job_id)
        if loaded.job.ended_at is None:
            self._loaded[job_id] = loaded
            if len(self._loaded) > self._max_cached:
                del self._loaded[next(iter(self._loaded))]
        if self.context.consumer != NO_CONSUMER:
            # What was sent while it was written, or read, stays sent.
            before = known.commands if known else {}
            older = known.stops() if known and known.run_id != stored.run.run_id else {}
            commands = older | {each: before.get(each, False) for each in stored.outbox}
            # The one that changed last comes last.
            self._outboxes.pop(job_id, None)
            self._outboxes[job_id] = _Outbox(loaded.job.scope, stored.run.run_id, stored.revision, commands)
            if any(not was_sent and each not in before for each, was_sent in commands.items()):
                # What was known before is in somebody's hands: to wake them would cut short their wait for equipment.
                self.outgoing.put_nowait(job_id)
            self._drop_an_old_outbox()
        return True

    async def _go_back(self, loaded: LoadedJob, known: _Outbox) -> None:
        """Follow a store that has lost a later state of a run: have it go on from what is stored, beyond that state.

        All that the run waits for is asked again, for the answer may be lost; what was to be stopped yet, is.
        """
        job_id, stored = loaded.job.job_id, loaded.stored
        logger.warning(
            "the store went back to an older state of the job: it goes on from there, and asks again for what it needs",
            job=job_id,
            stored=stored.revision,
            lost=known.revision,
        )
        known.commands = {each: False for each, was_sent in known.commands.items() if not was_sent}
        outbox = tuple(dict.fromkeys((*known.stops(), *stored.outbox, *loaded.unanswered())))
        keys, consumer = self.context.keys, self.context.consumer
        # Stale when somebody has moved it meanwhile: either way the next reading tells.
        await self.store.commit(runs.resume_after_loss(keys, known.revision, stored, outbox, consumer))

    def _drop_an_old_outbox(self) -> None:
        """Make room: of a job of which nothing is left to us we know the revision only, which the store knows, too."""
        if len(self._outboxes) > self._max_cached:
            empty = (job_id for job_id, known in self._outboxes.items() if not known.commands)
            if (oldest := next(empty, None)) is not None:
                del self._outboxes[oldest]

    def _keep_stops(self, job_id: str) -> None:
        """Forget what was to be sent of a run that is gone, but for its stops: equipment goes on until it is told."""
        known = self._outboxes.pop(job_id, None)
        if known and (stops := known.stops()):
            self._outboxes[job_id] = replace(known, commands=stops)

    def _own_keys(self, job_id: str) -> tuple[str, str]:
        return self.context.keys.joborder(job_id), self.context.keys.sfc_execution(job_id)


def net_of(recipe: str, compiler: Compiler = compiled) -> Net:
    """Give the net of the recipe that a run has pinned; it was sound when the run started."""
    net = compiler(recipe)
    if not isinstance(net, Net):
        raise Defect(f"a stored run has an unsound recipe: {'; '.join(net.faults)}", "Report this with the recipe.")
    return net
