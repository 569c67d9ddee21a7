"""The runs this instance works on: load, decide, commit; decide again when somebody else was faster."""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import structlog

from edge.errors import Defect
from edge.sfc.net import Net, compile_recipe
from edge.sfc.signal import CommandRequest, Ignored, Signal, StepChange
from edge.station.decision import Asked, Decision, Held, NotAllowed, decide
from edge.store import jobs, runs, work
from edge.store.client import Store
from edge.store.commit import Commit, CommitResult, Committed, Stale, join
from edge.store.jobs import Job
from edge.store.work import Work

logger = structlog.get_logger(__name__)

Clock = Callable[[], int]
"""Gives the present instant, in milliseconds since the epoch."""

_HELD_AT_MOST = 10_000


@dataclass(frozen=True, slots=True)
class NoRun:
    """There is no such job, or it has not started."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What one decision did, for those who watch; a watcher may miss some, the store misses nothing.

    `held` is the job with its run after it; `due` is the instant at which the job wants attention next, in milliseconds
    since the epoch.
    """

    job: Job
    held: Held
    at: int
    steps: tuple[StepChange, ...]
    requests: tuple[CommandRequest, ...]
    due: int | None


def _nothing(_: Decision) -> Commit:
    return Commit()


class Runs:
    """Turns signals into committed decisions. What it holds is a copy that the guards of a commit prove."""

    def __init__(self, store: Store, clock: Clock, keep_ended_ms: int) -> None:
        self.taken: asyncio.Queue[Work] = asyncio.Queue()
        self.in_doubt = asyncio.Event()
        """Set when a commit may have taken work that we were never told of."""
        self.watchers: list[Callable[[Progress], None]] = []
        self.clock = clock
        self.keep_ended_ms = keep_ended_ms
        self._store = store
        self._held: dict[str, Held] = {}
        self._done: defaultdict[str, list[str]] = defaultdict(list)

    async def signal(
        self,
        job_id: str,
        signal: Signal,
        asked: Asked | None = None,
        also: Callable[[Decision], Commit] = _nothing,
    ) -> Decision | Ignored | NotAllowed | NoRun | Stale:
        """Give a signal to a run and write what follows, together with what `also` adds to the decision.

        Stale comes back only when a guard of that addition fails; a run that moved meanwhile is decided again.
        Raises Unavailable when the store is gone; the signal can then be given again.
        """
        while True:
            known = self._held.get(job_id)
            held = known or await self.load(job_id)
            if held is None:
                return NoRun()
            decision = decide(self._store.keys, held, signal, asked, self.clock(), self.keep_ended_ms)
            if not isinstance(decision, Decision):
                if known is None:
                    return decision
                # What we hold may be old, another instance may have moved the run: a refusal must rest on the store.
                self.forget(job_id)
                continue
            result = await self.commit(decision, also(decision))
            if isinstance(result, Committed):
                return decision
            self.forget(job_id)
            if result.key not in self._own_keys(job_id):
                return result

    async def commit(self, decision: Decision, extra: Commit) -> Committed | Stale:
        """Write a decision; acknowledgements of finished work ride along."""
        job = decision.held.job
        done = self._done.pop(job.scope, [])
        acknowledged = work.acknowledge(self._store.keys, job.scope, done)
        try:
            result = await self.write(join((decision.commit, extra, acknowledged)))
        except BaseException:
            self._done[job.scope] += done
            raise
        if isinstance(result, Stale):
            self._done[job.scope] += done
            return result
        self._hold(decision.held)
        progress = Progress(job, decision.held, self.clock(), decision.steps, decision.requests, decision.due)
        for watch in self.watchers:
            watch(progress)
        return result

    async def write(self, commit: Commit) -> CommitResult:
        """Write a commit; the work that it takes is handed to the worker of this instance."""
        try:
            result = await self._store.commit(commit)
        except BaseException:
            # A commit whose reply is lost may have been carried out all the same.
            self.in_doubt.set()
            raise
        if isinstance(result, Committed):
            for each in work.read(result.taken):
                self.taken.put_nowait(each)
        return result

    async def load(self, job_id: str) -> Held | None:
        """Read a job with its run; None when it has none."""
        stored = await runs.load(self._store, job_id)
        job = await jobs.load(self._store, job_id) if stored else None
        if stored is None or job is None:
            return None
        held = Held(job, stored, net_of(stored.recipe))
        self._hold(held)
        return held

    async def held(self, job_id: str) -> Held | None:
        """Give a job with its run as last known."""
        return self._held.get(job_id) or await self.load(job_id)

    def forget(self, job_id: str) -> None:
        """Let go of what is held of a job: it may be old."""
        self._held.pop(job_id, None)

    def done(self, finished: Work) -> None:
        """Note that work is done: the next commit of its scope acknowledges it, or the next flush."""
        self._done[finished.scope].append(finished.entry_id)

    async def flush(self) -> None:
        """Acknowledge all work that is done and that no commit has acknowledged yet."""
        for scope in [scope for scope, ids in self._done.items() if ids]:
            ids = self._done.pop(scope)
            try:
                await self._store.commit(work.acknowledge(self._store.keys, scope, ids))
            except BaseException:
                self._done[scope] += ids
                raise

    def _hold(self, held: Held) -> None:
        job_id = held.job.job_id
        self._held.pop(job_id, None)
        if held.job.ended_at is None:
            self._held[job_id] = held
            if len(self._held) > _HELD_AT_MOST:
                del self._held[next(iter(self._held))]

    def _own_keys(self, job_id: str) -> tuple[str, str]:
        return self._store.keys.joborder(job_id), self._store.keys.sfc_execution(job_id)


@functools.lru_cache(maxsize=64)
def net_of(recipe: str) -> Net:
    """Compile the recipe that a run has pinned; it was sound when the run started."""
    net = compile_recipe(msgspec.json.decode(recipe))
    if not isinstance(net, Net):
        raise Defect(f"a stored run has an unsound recipe: {'; '.join(net.faults)}", "Report this with the recipe.")
    return net
