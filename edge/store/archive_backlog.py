"""The documents of ended jobs on their way to an archive: of jobs that are stored, and of removed ones that wait.

A job that is removed before the archive has it leaves its documents in the backlog of its scope, which is bounded.
"""

import base64
import zlib
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from edge.model.job_state import JobState
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, join, operation, spread
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.reads import Entry, entries

logger = structlog.get_logger(__name__)

MOST_REMOVED: Final = 10_000
"""The most removed jobs of a scope whose documents wait for the archive."""
LOST: Final = "jobs_lost_to_archive"
"""The counter of jobs that were removed and could not wait for the archive."""
_ENDED: Final = frozenset({JobState.ENDED.name, JobState.ABORTED.name})


class JobDocuments(Struct, frozen=True):
    """The stored documents of a job as they are; the response and the run are empty where it never started."""

    job: dict[str, str]
    response: dict[str, str]
    run: dict[str, str]
    decisions: tuple[tuple[str, dict[str, str]], ...]
    """The entries of its history: the id and the fields of each."""

    @property
    def entries(self) -> list[Entry]:
        """The entries of its history."""
        return [Entry(entry_id, fields) for entry_id, fields in self.decisions]


class EndedJob(Struct, frozen=True):
    """What says whether a stored job that has ended is to be archived."""

    job_id: str
    correlation_id: str
    revision: int
    archived: int
    """The revision that the archive has."""


async def ended_among(store: Store, scope: str, job_ids: Sequence[str]) -> list[EndedJob]:
    """Return the jobs among these that have ended, in one round trip."""
    names = ("scope", "state", "correlation_id", "rev", "archived")
    replies = await store.read([("HMGET", store.keys.joborder(job_id), *names) for job_id in job_ids])
    return [
        EndedJob(job_id, correlation_id, int(revision), int(archived or 0))
        for job_id, (of_scope, state, correlation_id, revision, archived) in zip(job_ids, replies, strict=True)
        if of_scope == scope and state in _ENDED
    ]


async def load_documents(store: Store, job_id: str, correlation_id: str) -> JobDocuments | None:
    """Read the documents of a job, in one round trip; None when it is gone."""
    keys = store.keys
    job, response, run, history = await store.read(
        [
            ("HGETALL", keys.joborder(job_id)),
            ("HGETALL", keys.jobresponse(correlation_id)),
            ("HGETALL", keys.sfc_execution(job_id)),
            ("XRANGE", keys.sfc_history(job_id), "-", "+"),
        ]
    )
    if not job or job["correlation_id"] != correlation_id:
        return None
    return JobDocuments(job, response, run, tuple((entry.entry_id, entry.fields) for entry in entries(history)))


async def plan_keeping(store: Store, job: Job) -> Commit:
    """Return the commit that keeps the documents of a job that is removed before the archive has it.

    Beyond the bound of the backlog the job is lost to the archive: that is counted and logged. Raises Unavailable.
    """
    if job.ended_at is None or job.archived == job.revision:
        return NOTHING
    keys, scope = store.keys, job.scope
    archives, many = await store.read([("EXISTS", keys.archive_gateway(scope)), ("HLEN", keys.archive_backlog(scope))])
    if not int(archives):
        return NOTHING
    documents = await load_documents(store, job.job_id, job.correlation_id)
    if documents is None:
        return NOTHING
    if int(many) >= MOST_REMOVED:
        logger.error("job lost to the archive", scope=scope, job=job.job_id, advice="Examine it: edge doctor")
        return operation("INCR", keys.counter(LOST))
    return operation("HSET", keys.archive_backlog(scope), job.correlation_id, _text(documents))


def _text(documents: JobDocuments) -> str:
    return base64.b64encode(zlib.compress(msgspec.json.encode(documents))).decode()


def read_backlog_text(text: str) -> JobDocuments:
    """Return the documents that an entry of the backlog holds. Raises ValueError for a damaged one."""
    try:
        return msgspec.json.decode(zlib.decompress(base64.b64decode(text)), type=JobDocuments)
    except zlib.error as error:
        raise ValueError(str(error)) from error


async def load_backlog(store: Store, scope: str, many: int) -> dict[str, str]:
    """Read some entries of the backlog of a scope, by their correlation ids."""
    _, found = await store.execute("HSCAN", store.keys.archive_backlog(scope), 0, "COUNT", many)
    if isinstance(found, dict):
        return dict(list(found.items())[:many])
    return dict(list(zip(found[::2], found[1::2], strict=True))[:many])


async def count_backlog(store: Store, scope: str) -> int:
    """Count the removed jobs of a scope that wait for the archive."""
    return int(await store.execute("HLEN", store.keys.archive_backlog(scope)))


async def count_lost(store: Store) -> int:
    """Count the jobs that were lost to the archive since the store began."""
    return int(await store.execute("GET", store.keys.counter(LOST)) or 0)


def discard_backlog(keys: Keys, scope: str, correlation_ids: Sequence[str]) -> Commit:
    """Remove the entries of the backlog that the archive has."""
    return spread("HDEL", (keys.archive_backlog(scope),), correlation_ids)


def announce(keys: Keys, scope: str, gateway: str) -> Commit:
    """Record that a gateway archives the jobs of a scope: from now on removed ones wait for it."""
    return operation("SET", keys.archive_gateway(scope), gateway)


async def plan_withdrawal(store: Store, scope: str, gateway: str) -> Commit:
    """Return the commit after which no job waits for an archive, if it was this gateway that had one."""
    keys = store.keys
    if await store.execute("GET", keys.archive_gateway(scope)) != gateway:
        return NOTHING
    return join((operation("DEL", keys.archive_gateway(scope)), operation("DEL", keys.archive_backlog(scope))))
