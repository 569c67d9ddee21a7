"""Continues the runs that waited for a lock or for a change of a mirrored set, and releases the locks of ended ones."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection

import structlog

from edge.access.lock_queue import release
from edge.access.locks import plan_acquire
from edge.foundation.ticks import until_tick
from edge.model.lock import LockKind
from edge.sfc.advance import advance
from edge.sfc.run import lock_reason
from edge.sfc.signal import NO_MIRRORS, Advanced, Granted, MirrorCopy, Mirrors, Tick
from edge.station.active_runs import ActiveRuns
from edge.station.decision import Decision, LoadedJob
from edge.station.runs import Progress, Runs, claim_of, owner_of
from edge.store import locks
from edge.store import runs as run_store
from edge.store import set_mirrors as mirrors
from edge.store.background import Isolated, poll_store, restart_on_outage
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.locks import StoredLock
from edge.store.server_time import server_time
from edge.store.set_mirrors import Freshness, MirrorState

logger = structlog.get_logger(__name__)

SWEEP_EVERY_S = 10.0


async def continue_with_locks(runs: Runs, job_id: str, done: Commit) -> None:
    """Acquire the next locks of a job that waits, and continue it once it holds all; `done` is part of the commit.

    Raises Unavailable when the store is gone.
    """
    store = runs.store
    while True:
        loaded = await runs.load(job_id)
        missing = loaded.stored.run.locks.missing if loaded else ()
        if loaded is None or not missing:
            await store.commit(done)
            return
        wait = loaded.stored.run.locks
        claim = claim_of(job_id, loaded.job.scope, lock_reason(wait), await server_time(store))
        plan = await plan_acquire(store, LockKind.EQUIPMENT, missing, claim)
        if not plan.is_held:
            unchanged = run_store.unchanged(store.keys, loaded.stored)
            if isinstance(await store.commit(join((plan.commit, unchanged, done))), Committed):
                return
        elif isinstance(await runs.signal(job_id, Granted(missing), also=lambda _: done), Decision):
            return


class LockSweep:
    """Repairs the locks of jobs: releases those of jobs that ended without a decision, continues jobs without work."""

    def __init__(self, runs: Runs, active_runs: ActiveRuns, every_s: float = SWEEP_EVERY_S) -> None:
        self._runs = runs
        self._active_runs = active_runs
        self._every_s = every_s

    async def run(self) -> None:
        """Run a sweep at each interval until cancelled; retry while the store is unavailable."""
        await poll_store(self._runs.store.defects, "locks of jobs", self.sweep, self._every_s)

    async def sweep(self) -> None:
        """Repair every lock, and every run that waits, once."""
        for stored_lock in await locks.load_all(self._runs.store, (LockKind.EQUIPMENT,)):
            claims = (stored_lock.lock.holder, *stored_lock.lock.waiters) if stored_lock.lock else ()
            for job_id in [claim.job_id for claim in claims if claim.job_id]:
                # The lock of a job that cannot be read stays: a newer release may run it.
                with Isolated(logger, "lock cannot be checked", job=job_id, lock=stored_lock.object_id):
                    await self._release_unneeded(stored_lock, job_id)
        for job_id, loaded in tuple(self._active_runs.loaded.items()):
            if loaded.stored.run.locks.missing:
                with Isolated(logger, "lock cannot be acquired", job=job_id):
                    await continue_with_locks(self._runs, job_id, NOTHING)

    async def _release_unneeded(self, stored: StoredLock, job_id: str) -> None:
        store = self._runs.store
        loaded = await self._runs.load(job_id)
        ended = loaded is None or loaded.job.ended_at is not None
        if loaded and not ended and stored.object_id in loaded.stored.run.locks.claimed:
            return
        unchanged = run_store.unchanged(store.keys, loaded.stored) if loaded else NOTHING
        after = release(stored.lock, owner_of(job_id), await server_time(store))
        # Stale: another instance was faster.
        if isinstance(await store.commit(join((locks.save(store.keys, stored, after), unchanged))), Committed):
            logger.warning("lock released", job=job_id, lock=stored.object_id)


INTERVAL_S = 1.0
MAX_AGE_S = 3.0
"""A copy that could not be read again for so long is unknown to conditions."""


class MirrorWatch:
    """Keeps the copies of mirrored sets while runs ask for them; a run that asks for none costs nothing.

    Whichever gateway reads the other system: the copies come from the store.
    """

    def __init__(
        self,
        runs: Runs,
        active_runs: ActiveRuns,
        names: Collection[str],
        interval_s: float = INTERVAL_S,
        max_age_s: float = MAX_AGE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs = runs
        self._active_runs = active_runs
        self._names = names
        self._interval_s = interval_s
        self._max_age_s = max_age_s
        self._monotonic = monotonic
        self._states: dict[str, MirrorState] = {}
        self._copies: dict[str, MirrorCopy] = {}
        self._read_at: float | None = None
        self._wanted = asyncio.Event()
        runs.mirrors = self.copies
        runs.listeners.append(self._note)

    def copies(self) -> Mirrors:
        """Return the copies; none when they are older than the maximum age."""
        is_fresh = self._read_at is not None and self._monotonic() - self._read_at <= self._max_age_s
        return self._copies if is_fresh else NO_MIRRORS

    def _note(self, progress: Progress) -> None:
        # The first run that asks after a while was decided without copies.
        if progress.loaded.net.mirrors and self.copies() is NO_MIRRORS:
            self._wanted.set()

    async def run(self) -> None:
        """Run a look at each interval until cancelled; begin again while the store is unavailable."""
        await restart_on_outage("mirrors of conditions", self._follow)

    async def _follow(self) -> None:
        # What the store holds may be of yesterday: the gateway that reads the mirrors confirms them within a second.
        await self._runs.store.commit(mirrors.forget_states(self._runs.store.keys, self._names))
        self._states.clear()
        while True:
            await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until_tick(asyncio.get_running_loop().time(), self._interval_s)):
                    await self._wanted.wait()
            self._wanted.clear()

    async def look(self) -> None:
        """Read the copies if a run asks for them, and continue the runs that can continue. Raises Unavailable."""
        asking = [job_id for job_id, loaded in self._active_runs.loaded.items() if loaded.net.mirrors]
        if not asking:
            return
        await self._read()
        for job_id in asking:
            # A defect of one run must not keep the others waiting.
            with Isolated(logger, "run cannot be continued", job=job_id):
                # Another gateway may have been faster: look at what is cached, then at what the store holds now.
                if self._can_continue(await self._runs.get(job_id)) and self._can_continue(
                    await self._runs.load(job_id)
                ):
                    await self._runs.signal(job_id, Tick())
            await asyncio.sleep(0)

    def _can_continue(self, loaded: LoadedJob | None) -> bool:
        """Return whether the copies move a run; it is decided on trial, so that a wait writes nothing."""
        if loaded is None:
            return False
        advanced = advance(loaded.net, loaded.stored.run, Tick(), self._runs.clock(), self.copies())
        return isinstance(advanced, Advanced) and bool(advanced.run.touched)

    async def _read(self) -> None:
        """Read the states, and the members of the mirrors whose state has changed."""
        store, asked_at = self._runs.store, self._monotonic()
        states = await mirrors.load_states(store, self._names)
        copies = {}
        for name, state in states.items():
            mirror_copy = self._copies.get(name) if self._states.get(name) == state else None
            is_stale = state.freshness is Freshness.STALE
            copies[name] = mirror_copy or MirrorCopy(await mirrors.load(store, name), is_stale=is_stale)
        self._states, self._copies, self._read_at = states, copies, asked_at
