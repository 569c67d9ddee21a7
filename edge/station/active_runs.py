"""Follows the active runs of our scopes and the holders of their locks, counts decisions, pauses for maintenance.

Own decisions are known at once. For the decisions of others the store is polled for the revisions of all runs, which
takes two round trips, and the runs with a new revision are read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping

import structlog

from edge.access.mode import ModeWatch
from edge.foundation.listeners import notify
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick
from edge.model.isa95 import LocalizedText
from edge.model.job_state import Cause, JobState
from edge.model.plant import MaintenanceKind
from edge.sfc.run import STATE_FIELD, Outcome
from edge.sfc.signal import Pause, Phase
from edge.station.decision import Decision, LoadedJob, MethodRequest
from edge.station.runs import Progress, Runs, lock_holders
from edge.store.background import poll_store, restart_on_outage
from edge.store.client import Store
from edge.store.runs import revisions

logger = structlog.get_logger(__name__)

RunListener = Callable[[LoadedJob | None, LoadedJob | None], None]
"""Receives the previous and the present state of a run: None before it was known, and after it was removed."""

POLL_INTERVAL_S = 5.0
"""The poll interval while runs are only counted, in seconds."""
LISTENED_POLL_INTERVAL_S = 1.0
"""The poll interval while a listener follows the runs, in seconds."""
_PAUSE_S = 0.02  # a thousand runs that others move cost us fifty readings a second, and are late


class ActiveRuns:
    """The active runs of our scopes by job, as decided or read last; `listeners` are called for each move.

    A run is active until it has ended and its commands are sent. An unreadable run is left out, or remains as it was
    read last.
    """

    def __init__(
        self,
        runs: Runs,
        scopes: Collection[str],
        poll_interval_s: float = POLL_INTERVAL_S,
        listened_poll_interval_s: float = LISTENED_POLL_INTERVAL_S,
    ) -> None:
        self.loaded: dict[str, LoadedJob] = {}
        self.listeners: list[RunListener] = []
        self._runs = runs
        self._scopes = scopes
        self._poll_interval_s = poll_interval_s
        self._listened_poll_interval_s = listened_poll_interval_s
        self._revisions: dict[str, int] = {}
        self._elsewhere: set[str] = set()
        runs.listeners.append(self._note)

    @property
    def count(self) -> int:
        """The number of active runs in the store, including those of other scopes."""
        return len(self._revisions)

    async def follow(self) -> None:
        """Poll until cancelled, more often with listeners."""
        await restart_on_outage("active runs", self._follow)

    async def _follow(self) -> None:
        while True:
            await next_tick(self._listened_poll_interval_s if self.listeners else self._poll_interval_s)
            await self.look(_PAUSE_S)

    async def look(self, pause_s: float = 0.0) -> None:
        """Read the runs that other instances have started, changed or ended; pause after each reading."""
        before = tuple(self._revisions)  # what starts here from now on may not be among those read below
        there = await revisions(self._runs.store)
        for job_id in before:
            if job_id not in there:
                self._drop(job_id)
        for job_id, revision in there.items():
            if job_id in self._elsewhere or self._revisions.get(job_id) == revision:
                continue
            if loaded := await self._runs.load_readable(job_id):
                self._learn(loaded)
            else:
                self._revisions[job_id] = revision  # an unreadable run is read again after its next move
            await asyncio.sleep(pause_s)

    def _note(self, progress: Progress) -> None:
        self._learn(progress.loaded)

    def _learn(self, loaded: LoadedJob) -> None:
        if loaded.job.ended_at is not None and not loaded.stored.outbox:
            self._drop(loaded.job.job_id)
        else:
            self._take(loaded)

    def _take(self, loaded: LoadedJob) -> None:
        job_id = loaded.job.job_id
        self._revisions[job_id] = loaded.stored.revision
        if loaded.job.scope not in self._scopes:
            self._elsewhere.add(job_id)
            return
        before = self.loaded.get(job_id)
        self.loaded[job_id] = loaded
        self._notify(before, loaded)

    def _drop(self, job_id: str) -> None:
        self._revisions.pop(job_id, None)
        self._elsewhere.discard(job_id)
        if before := self.loaded.pop(job_id, None):
            self._notify(before, None)

    def _notify(self, before: LoadedJob | None, now: LoadedJob | None) -> None:
        notify(self.listeners, before, now)


EVERY_S = 1.0


class LockHolders:
    """`named` says who holds each lock for which an active run waits; without such a run the store is not asked."""

    def __init__(self, store: Store, active_runs: ActiveRuns, every_s: float = EVERY_S) -> None:
        self.named: Mapping[str, Text] = {}
        self._store = store
        self._active_runs = active_runs
        self._every_s = every_s

    async def follow(self) -> None:
        """Read them at each interval until cancelled; retry while the store is unavailable."""
        await restart_on_outage("lock holders", self._follow)

    async def _follow(self) -> None:
        while True:
            missing = {name for job in self._active_runs.loaded.values() for name in job.stored.run.locks.missing}
            self.named = await lock_holders(self._store, sorted(missing)) if missing else {}
            await next_tick(self._every_s)


class Activity:
    """Counts of the decisions of this process since it started.

    `steps` counts step activations by scope, `commands` requested commands by type and phase, `ended` ended runs by
    scope and outcome.
    """

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.commands: Counter[tuple[str, Phase]] = Counter()
        self.ended: Counter[tuple[str, Outcome]] = Counter()

    def watch(self, progress: Progress) -> None:
        """Count the effects of a decision."""
        run = progress.loaded.stored.run
        for change in progress.steps:
            if change.active:
                self.steps[run.scope] += 1
        for request in progress.requests:
            self.commands[request.type_id, request.phase] += 1
        # After its end a run only changes by answers to resets and by late results.
        if run.ended and STATE_FIELD in run.touched:
            self.ended[run.scope, run.outcome] += 1


MODE_INTERVAL_S = 1.0


class MaintenancePause:
    """Pauses jobs as the MES would; they stay paused after the maintenance until a person resumes them."""

    def __init__(
        self, runs: Runs, active: Mapping[str, LoadedJob], mode: ModeWatch, poll_interval_s: float = MODE_INTERVAL_S
    ) -> None:
        """Pause the runs of `active`, which the owner keeps up to date."""
        self._runs = runs
        self._active = active
        self._mode = mode
        self._poll_interval_s = poll_interval_s

    async def run(self) -> None:
        """Pause until cancelled; retry while the store is unavailable."""
        await poll_store(self._runs.store.defects, "maintenance pause", self.pause_running, self._poll_interval_s)

    async def pause_running(self) -> None:
        """Pause every job that runs, if the mode asks for it. Raises Unavailable when the store is gone."""
        mode = self._mode.in_force
        if mode is None or mode.kind is not MaintenanceKind.NOW:
            return
        running = [job_id for job_id, job in self._active.items() if job.job.status.state is JobState.RUNNING]
        for job_id in running:
            comment = (LocalizedText(text=self._mode.message(())),)
            if isinstance(await self._runs.signal(job_id, Pause(), MethodRequest(Cause.PAUSE, comment)), Decision):
                logger.info("job paused for maintenance", job=job_id, by=mode.by)
