"""Moves ended jobs from the store into the archive: in one transaction a minute, or for a hundred jobs.

The cursor of the changes of a scope is written in the transaction of the jobs before it, and a job replaces the one of
its id: killed at any point, the writer loses none and doubles none. A job that is removed from the store before waits
in the backlog. The disk is used in threads: no job waits for it,
and a stop waits for a few seconds.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from edge.features.archive.database import ArchiveFault, ArchiveFile, set_aside
from edge.features.archive.record import JobRecord, record_of
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.fault_points import FaultPoint, fault_point
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.threads import end_in_thread, run_in_thread
from edge.foundation.ticks import REST_S
from edge.model.job_state import has_ended
from edge.station.public_job import NO_EQUIPMENT
from edge.station.runs import Progress
from edge.store import archive_backlog, changes, jobs
from edge.store.archive_backlog import EndedJob, JobDocuments
from edge.store.client import Store
from edge.store.reads import BEGINNING, position_key, reachable

logger = structlog.get_logger(__name__)

BATCH: Final = 100
"""The most jobs of one transaction."""
_RETRY_S: Final = 10.0
_THREAD: Final = "archive"


class _Ended(Struct):
    """The jobs of one transaction, in the order in which they ended, and how far the changes are read with them."""

    records: list[JobRecord]
    stored: list[EndedJob]
    """Those that are in the store still."""
    backlog: list[str]
    position: str


class ArchiveWriter:
    """Archives the ended jobs of a scope while it runs."""

    def __init__(
        self,
        store: Store,
        scope: str,
        file: ArchiveFile,
        clock: Clock,
        interval_s: float,
        retry_s: float = _RETRY_S,
        equipment: Mapping[str, str] = NO_EQUIPMENT,
    ) -> None:
        self.fault = ""
        """Why the archive cannot be written; empty while it can."""
        self.archived = 0
        """Jobs that were written since the start."""
        self.waiting = 0
        """Removed jobs that wait in the backlog, after the last write."""
        self.lost = 0
        """Jobs that left the store before they could be archived, since the store began."""
        self._store = store
        self._scope = scope
        self._file = file
        self._clock = clock
        self._interval_s = interval_s
        self._retry_s = retry_s
        self._equipment = equipment
        self._ended = 0
        self._passed = BEGINNING
        self._is_full = asyncio.Event()
        self._faults = LogThrottle(logger)

    def note(self, progress: Progress) -> None:
        """Count an end of a job: many do not wait for the minute."""
        job = progress.loaded.job
        if job.scope == self._scope and has_ended(job.status):
            self._ended += 1
            if self._ended >= BATCH:
                self._is_full.set()

    async def run(self) -> None:
        """Write until cancelled; what ended last is archived at the next start."""
        try:
            while True:
                interval_s = self._interval_s
                try:
                    if await self.flush():
                        continue
                except ArchiveFault as fault:
                    await self._report(fault)
                    interval_s = max(interval_s, self._retry_s)
                except Unavailable as error:
                    logger.debug("store unavailable, retrying", task="archive", reason=error.message)
                with suppress(TimeoutError):
                    async with asyncio.timeout(interval_s):
                        await self._is_full.wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the file; one that hangs is left as it is."""
        await end_in_thread(self._file.close, _THREAD)

    async def flush(self) -> bool:
        """Write a batch of what has ended; return whether there is more.

        Raises Unavailable without the store, and ArchiveFault: then the jobs wait in the store.
        """
        self._ended = 0
        self._is_full.clear()
        cursor = await run_in_thread(partial(self._file.cursor, self._scope), _THREAD)
        batch = await self._read(cursor)
        self._passed = batch.position
        if batch.records:
            fault_point(FaultPoint.ARCHIVING)
            await run_in_thread(partial(self._file.write, batch.records, {self._scope: batch.position}), _THREAD)
            fault_point(FaultPoint.ARCHIVED)
            self.archived += len(batch.records)
            await self._record(batch)
        self.fault = ""
        await run_in_thread(partial(self._file.trim, self._clock()), _THREAD)
        await self._count()
        return len(batch.records) >= BATCH

    async def _count(self) -> None:
        self.waiting = await archive_backlog.count_backlog(self._store, self._scope)
        self.lost = await archive_backlog.count_lost(self._store)

    async def _read(self, cursor: str) -> _Ended:
        """Read the jobs that ended since a position of the changes, and removed ones that wait."""
        store, scope = self._store, self._scope
        key = store.keys.joborder_changes(scope)
        # What was read without an end is not written down: that would wear the flash for nothing.
        position = await reachable(store, key, max(cursor or BEGINNING, self._passed, key=position_key))
        batch = _Ended([], [], [], position)
        for correlation_id, text in (await archive_backlog.load_backlog(store, scope, BATCH)).items():
            batch.backlog.append(correlation_id)
            with suppress(ValueError):
                await self._add(batch, archive_backlog.read_backlog_text(text))
        while len(batch.records) < BATCH:
            page = await changes.page(store, scope, f"({batch.position}", "+", BATCH)
            if not page.items and not page.next:
                break
            job_ids = list(dict.fromkeys(change.job_order_id for change in page.items))
            for job in await archive_backlog.ended_among(store, scope, job_ids):
                # A new file has none of those that a lost one had.
                if job.archived != job.revision or not cursor:
                    documents = await archive_backlog.load_documents(store, job.job_id, job.correlation_id)
                    if documents is not None and await self._add(batch, documents):
                        batch.stored.append(job)
            batch.position = page.next or page.items[-1].position
            if not page.next:
                break
        return batch

    async def _add(self, batch: _Ended, documents: JobDocuments) -> bool:
        """Add a job to a batch; one that cannot be decoded is logged and left out."""
        try:
            batch.records.append(record_of(documents, self._equipment))
        except Refused as refusal:
            self._faults.warning(
                "job not archived", "", job=documents.job.get("order", "")[:200], reason=refusal.message
            )
            return False
        await asyncio.sleep(REST_S)  # a job takes a millisecond: others run between them
        return True

    async def _record(self, batch: _Ended) -> None:
        """Record in the store what the archive has."""
        keys = self._store.keys
        for job in batch.stored:
            # Stale: it has changed meanwhile, and that change is read next.
            await self._store.commit(jobs.record_archived(keys, job.job_id, job.correlation_id, job.revision))
        if batch.backlog:
            await self._store.commit(archive_backlog.discard_backlog(keys, self._scope, batch.backlog))

    async def _report(self, fault: ArchiveFault) -> None:
        self.fault, self._passed = fault.message, BEGINNING
        self._faults.warning("archive not written", "", scope=self._scope, reason=fault.message, advice=fault.advice)
        # Jobs are lost while the archive fails, not once it works again.
        with suppress(Unavailable):
            await self._count()
        if fault.is_damaged:
            with suppress(OSError):
                aside = await run_in_thread(partial(set_aside, self._file.file, self._clock()), _THREAD)
                if aside is not None:
                    logger.error("archive is damaged, a new one is begun", file=str(aside))
