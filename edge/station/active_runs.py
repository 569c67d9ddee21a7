"""Follows the active runs of our scopes as they move on, whichever instance moves them.

What we decide ourselves is known as we decide it. For what others decide we ask the store now and then for the
revisions of all runs, which takes two round trips, and read the runs that have another one than we know.
"""

import asyncio
from collections.abc import Callable, Collection

import structlog

from edge.errors import Unavailable
from edge.station.decision import LoadedJob
from edge.station.runs import Progress, Runs
from edge.store.runs import revisions

logger = structlog.get_logger(__name__)

Watcher = Callable[[LoadedJob | None, LoadedJob | None], None]
"""Takes a run as it was known, and as it is now: None before it was known, and once it is gone."""

LOOK_EVERY_S = 5.0
"""How late we know of what others do, as long as it is only counted."""
WATCHED_EVERY_S = 1.0
"""How late we know of it where somebody is told of each move."""
_PAUSE_S = 0.02  # a thousand runs that others move cost us fifty readings a second, and are late


class ActiveRuns:
    """The active runs of our scopes, by their job, as they were decided or read last; `watchers` are told of each move.

    A run is active until it has ended and all that it asked for is sent. One that nobody can read is not held, or as it
    was when it could be read.
    """

    def __init__(self, runs: Runs, scopes: Collection[str]) -> None:
        self.held: dict[str, LoadedJob] = {}
        self.watchers: list[Watcher] = []
        self._runs = runs
        self._scopes = scopes
        self._revisions: dict[str, int] = {}
        self._elsewhere: set[str] = set()
        runs.watchers.append(self._note)

    @property
    def count(self) -> int:
        """How many runs are active in the store, also in the scopes of others."""
        return len(self._revisions)

    async def follow(self) -> None:
        """Look again and again until cancelled, more often when somebody watches."""
        while True:
            await asyncio.sleep(WATCHED_EVERY_S if self.watchers else LOOK_EVERY_S)
            try:
                await self.look(_PAUSE_S)
            except Unavailable as error:
                logger.warning("following the runs waits for the store", reason=error.message)

    async def look(self, pause_s: float = 0.0) -> None:
        """Learn what others have started, moved on or ended; rest after each run that had to be read."""
        before = tuple(self._revisions)  # what starts here from now on may not be among those read below
        there = await revisions(self._runs.store)
        for job_id in before:
            if job_id not in there:
                self._drop(job_id)
        for job_id, revision in there.items():
            if job_id in self._elsewhere or self._revisions.get(job_id) == revision:
                continue
            if held := await self._runs.load_readable(job_id):
                self._learn(held)
            else:
                self._revisions[job_id] = revision  # one that nobody can read is read again when it has moved
            await asyncio.sleep(pause_s)

    def _note(self, progress: Progress) -> None:
        self._learn(progress.held)

    def _learn(self, held: LoadedJob) -> None:
        if held.job.ended_at is not None and not held.stored.outbox:
            self._drop(held.job.job_id)
        else:
            self._take(held)

    def _take(self, held: LoadedJob) -> None:
        job_id = held.job.job_id
        self._revisions[job_id] = held.stored.revision
        if held.job.scope not in self._scopes:
            self._elsewhere.add(job_id)
            return
        before = self.held.get(job_id)
        self.held[job_id] = held
        self._tell(before, held)

    def _drop(self, job_id: str) -> None:
        self._revisions.pop(job_id, None)
        self._elsewhere.discard(job_id)
        if before := self.held.pop(job_id, None):
            self._tell(before, None)

    def _tell(self, before: LoadedJob | None, now: LoadedJob | None) -> None:
        for watch in self.watchers:
            try:
                watch(before, now)
            except Exception:
                # A defect in who watches concerns neither the others nor who follows.
                logger.exception("watcher of active runs failed")
