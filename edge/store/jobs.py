"""Job orders with their state."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.foundation.text import Text
from edge.model.instant import milliseconds
from edge.model.isa95 import JobOrder, LocalizedText
from edge.model.job_state import Cause, JobState, JobStatus, SubState, has_ended, has_response
from edge.model.recipe_name import NO_RECIPE_NAME, RecipeName, read_recipe_name
from edge.sfc.run import KeptEvent
from edge.store import changes, ended_jobs, version
from edge.store.changes import ResponseChange
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Fewer, HashField, at_revision, fields, join, operation
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query
from edge.store.reads import load_readable
from edge.store.version import Document

_JOBS_AT_ONCE = 250
DATASCHEMA = "https://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/ISA95JobOrderAndStateDataType/v2.0.0"


class Job(Struct, frozen=True, kw_only=True):
    """A job order as the station holds it; instants are milliseconds since the epoch.

    `correlation_id` is a UUID, constant for the life of the job: it is on every event about the job and is the
    id of its response. `revision` is that of the stored document, which is `outdated` when it has the form of an older
    version.
    """

    order: JobOrder
    scope: str
    status: JobStatus
    correlation_id: str
    comment: tuple[LocalizedText, ...] = ()
    stored_at: int
    started_at: int | None = None
    ended_at: int | None = None
    error: str | Text | None = None
    verdict: str = ""
    """What the recipe says about its result: `ok`, `not_ok` or a text of its own; empty without one."""
    has_failed: bool = False
    """It is aborted because its run failed: no call aborted it."""
    recipe: RecipeName = NO_RECIPE_NAME
    """What its run goes by; empty before the start, and for a Work Master without revisions."""
    early: tuple[KeptEvent, ...] = ()
    """Events that named the job before it started; its run begins with them."""
    causation_id: str = ""
    """The id of the event that stored the order."""
    trace: Mapping[str, str] = {}
    """The W3C Trace Context of that event: `traceparent`, `tracestate`."""
    delivered_at: int | None = None
    """When the broker delivered the result to a subscriber."""
    confirmed_at: int | None = None
    """When the MES confirmed the result, asked for it, or a person saved it."""
    archived: int = 0
    """The revision that the archive has; 0 before."""
    revision: int = 1
    outdated: bool = False

    @property
    def job_id(self) -> str:
        """The JobOrderID."""
        return self.order.job_order_id

    @property
    def earliest_start(self) -> int:
        """The StartTime of the order; 0 without one: the job may start at any time."""
        return 0 if self.order.start_time is None else max(0, milliseconds(self.order.start_time))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _json_or_empty(value: object) -> str:
    return _json(value) if value else ""


def _text_or_empty(value: object) -> str:
    return str(value or "")


_TEXTS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (
    ("rev", "revision", str),
    ("scope", "scope", str),
    ("state", "status", lambda status: status.state.name),
    ("substate", "status", lambda status: status.substate.name if status.substate else ""),
    ("order", "order", _json),
    ("correlation_id", "correlation_id", str),
    ("comment", "comment", _json),
    ("stored_at", "stored_at", str),
    ("started_at", "started_at", _text_or_empty),
    ("ended_at", "ended_at", _text_or_empty),
    ("error", "error", _text_or_empty),
    ("error_text", "error", lambda error: _json(error) if isinstance(error, Text) else ""),
    ("causation_id", "causation_id", str),
    ("verdict", "verdict", str),
    ("failed", "has_failed", lambda has_failed: "1" if has_failed else ""),
    ("recipe", "recipe", str),
    ("trace", "trace", _json_or_empty),
    ("early", "early", _json_or_empty),
)
"""The fields of a stored job: the name, the attribute that it holds, and how its text is made."""


def _fields(job: Job) -> dict[str, str]:
    head = {"_dataschema": DATASCHEMA, version.FIELD: str(version.current_version(Document.JOB_ORDER))}
    return head | {name: text(getattr(job, attribute)) for name, attribute, text in _TEXTS}


def _changed_fields(before: Job, job: Job) -> dict[str, str]:
    """Return the fields whose text differs; an attribute that is the same object has the same text."""
    written = {}
    for name, attribute, text in _TEXTS:
        old, new = getattr(before, attribute), getattr(job, attribute)
        if new is not old and (changed := text(new)) != text(old):
            written[name] = changed
    return written


def _error(stored: Mapping[str, str]) -> str | Text | None:
    """Return why a job failed: the text with its values, or the string of a device, a person or release 0.9.0."""
    text = stored.get("error_text")
    return msgspec.json.decode(text, type=Text) if text else stored["error"] or None


def read_job(stored: Mapping[str, str]) -> Job:
    """Return the job that a stored document states.

    Raises DocumentTooNew, and ValueError or KeyError for a damaged one.
    """
    fields = version.upgrade_fields(Document.JOB_ORDER, stored)
    return Job(
        order=msgspec.json.decode(fields["order"], type=JobOrder),
        scope=fields["scope"],
        status=JobStatus(JobState[fields["state"]], SubState[fields["substate"]] if fields["substate"] else None),
        correlation_id=fields["correlation_id"],
        comment=msgspec.json.decode(fields["comment"], type=tuple[LocalizedText, ...]),
        stored_at=int(fields["stored_at"]),
        started_at=int(fields["started_at"]) if fields["started_at"] else None,
        ended_at=int(fields["ended_at"]) if fields["ended_at"] else None,
        error=_error(fields),
        # Documents of an earlier version lack the field.
        early=msgspec.json.decode(early, type=tuple[KeptEvent, ...]) if (early := fields.get("early")) else (),
        verdict=fields.get("verdict", ""),
        has_failed=bool(fields.get("failed")),
        recipe=read_recipe_name(fields.get("recipe", "")),
        causation_id=fields.get("causation_id", ""),
        trace=msgspec.json.decode(trace, type=dict[str, str]) if (trace := fields.get("trace")) else {},
        delivered_at=int(delivered) if (delivered := fields.get("delivered_at")) else None,
        confirmed_at=int(confirmed) if (confirmed := fields.get("confirmed_at")) else None,
        archived=int(fields.get("archived") or 0),
        revision=int(fields["rev"]),
        outdated=version.is_outdated(Document.JOB_ORDER, stored),
    )


_MAY_BE_ABSENT: Final = frozenset({"causation_id", "trace", "early", "verdict", "failed", "recipe"})
"""The fields whose absence means the same as an empty text, to this release and to those before."""


def save(keys: Keys, before: Job | None, job: Job, moves: Iterable[tuple[Cause, JobStatus]], now: int) -> Commit:
    """Write the changes of a job, its indexes and each transition; guarded by the revision of `before`."""
    if before is None:
        written = {name: text for name, text in _fields(job).items() if text or name not in _MAY_BE_ABSENT}
    else:
        written = _fields(job) if before.outdated else _changed_fields(before, job)
    parts = [
        unchanged(keys, job.job_id, before),
        operation("HSET", keys.joborder(job.job_id), *fields(written)),
    ]
    moves = tuple(moves)
    if has_response(job.status) and any(cause is not Cause.RESULT_UPDATE for cause, _ in moves):
        # Before the transitions: the last entry of a commit must be one with an event of its own.
        parts.append(changes.append_result_update(keys, job.scope, job.job_id, job.status, now))
    for cause, status in moves:
        parts.append(changes.append_change(keys, job.scope, job.job_id, cause, status, now))
        parts.append(changes.notify_receiver(keys, job.scope, job.job_id, cause, status, now))
    if has_ended(job.status) and any(cause is Cause.RESULT_UPDATE for cause, _ in moves):
        # The MES has the result as it was before.
        parts.append(operation("HDEL", keys.joborder(job.job_id), "delivered_at", "confirmed_at"))
    # A response changes only together with its job.
    parts.append(_notify_responder(keys, job, ResponseChange.UPDATE, now))
    if not before:
        parts.append(operation("SADD", keys.active_scopes(), job.scope))
    if not before or before.order.priority != job.order.priority:
        priority = job.order.priority or 0
        parts.append(operation("ZADD", keys.joborder_list(job.scope), priority, job.job_id))
        parts.append(operation("ZADD", keys.joborder_open(job.scope), priority, job.job_id))
    if has_ended(job.status):
        parts.append(operation("ZREM", keys.joborder_open(job.scope), job.job_id))
    if before:
        parts.append(_dequeue_start(keys, before))
    return join(parts)


_LATEST = 10**15 - 1
"""Beyond the last year that a DateTime can name; instants of so many digits sort as text."""


def _queue_entry(job: Job) -> tuple[int, str]:
    """Return score and member of a job in the queue of starts.

    The higher priority comes first, then the earlier StartTime, the earlier EndTime, the one that was stored before.
    """
    end = _LATEST if job.order.end_time is None else max(0, milliseconds(job.order.end_time))
    start = job.earliest_start or job.stored_at
    return -(job.order.priority or 0), f"{start:015}{end:015}{job.stored_at:015}{job.job_id}"


_ID_AT = 45
"""Where the id begins in a member of the queue of starts."""


def enqueue_start(keys: Keys, job: Job) -> Commit:
    """Put a job that is allowed to start, and whose time has come, in the queue of starts."""
    return operation("ZADD", keys.joborder_startable(job.scope), *_queue_entry(job))


def _dequeue_start(keys: Keys, job: Job) -> Commit:
    """Remove a job from the queue of starts; a writer that keeps the job there adds it again."""
    if job.status.state is not JobState.ALLOWED_TO_START:
        return NOTHING
    return operation("ZREM", keys.joborder_startable(job.scope), _queue_entry(job)[1])


def query_queued_starts(keys: Keys, scope: str, many: int) -> StoreQuery[list[str]]:
    """Return the query of the ids of the first jobs in the queue of starts."""
    return query(_ids, "ZRANGE", keys.joborder_startable(scope), 0, many - 1)


def _ids(members: Sequence[str]) -> list[str]:
    return [member[_ID_AT:] for member in members]


async def queued_starts(store: Store, scope: str, many: int) -> list[str]:
    """Return the ids of the first jobs in the queue of starts."""
    return await store.fetch(query_queued_starts(store.keys, scope, many))


async def plan_dequeue(store: Store, scope: str, job_id: str) -> Commit:
    """Remove an unreadable job from the queue of starts."""
    key = store.keys.joborder_startable(scope)
    members = await store.execute("ZRANGE", key, 0, -1)
    return join(operation("ZREM", key, member) for member in members if member[_ID_AT:] == job_id)


def _notify_responder(keys: Keys, job: Job, change: ResponseChange, now: int) -> Commit:
    if not has_response(job.status):
        return NOTHING
    return changes.notify_responder(keys, job.scope, job.job_id, job.correlation_id, change, job.status, now)


def unchanged(keys: Keys, job_id: str, read: Job | None) -> Commit:
    """Return the guard that the job is unchanged since it was read, or, for None, that it does not exist.

    A job stored later with its id can reach its revision, but has another correlation id.
    """
    key = keys.joborder(job_id)
    if read is None:
        return Commit((at_revision(key, 0),))
    return Commit((at_revision(key, read.revision), HashField(key, "correlation_id", read.correlation_id)))


def require_capacity(keys: Keys, job: Job, limit: int) -> Commit:
    """Require that the scope holds fewer than `limit` jobs that have not ended."""
    return Commit(guards=(Fewer(keys.joborder_open(job.scope), job.job_id, limit),))


def record_delivery(keys: Keys, job: Job, now: int) -> Commit:
    """Record that the result of a job was delivered, provided that the job has not changed since it was read."""
    return join((unchanged(keys, job.job_id, job), operation("HSET", keys.joborder(job.job_id), "delivered_at", now)))


def record_confirmation(keys: Keys, job: Job, now: int) -> Commit:
    """Record that the MES has the result of a job, provided that the job has not changed since it was read."""
    return join((unchanged(keys, job.job_id, job), operation("HSET", keys.joborder(job.job_id), "confirmed_at", now)))


def record_archived(keys: Keys, job_id: str, correlation_id: str, revision: int) -> Commit:
    """Record that the archive has a job, provided that the job still has this revision."""
    key = keys.joborder(job_id)
    guards = (at_revision(key, revision), HashField(key, "correlation_id", correlation_id))
    return join((Commit(guards), operation("HSET", key, "archived", revision)))


def remove(keys: Keys, job: Job, cause: Cause, now: int) -> Commit:
    """Remove a job with its response and run, from every index."""
    scope, job_id, response_id = job.scope, job.job_id, job.correlation_id
    return join(
        (
            unchanged(keys, job_id, job),
            operation("DEL", keys.joborder(job_id), keys.jobresponse(response_id)),
            operation("DEL", keys.sfc_execution(job_id), keys.sfc_history(job_id)),
            operation("ZREM", keys.joborder_list(scope), job_id),
            operation("ZREM", keys.joborder_open(scope), job_id),
            ended_jobs.discard_kept(keys, scope, job_id),
            operation("ZREM", keys.jobresponse_list(scope), response_id),
            operation("ZREM", keys.jobresponse_state(scope, job.status.state.name), response_id),
            operation("ZREM", keys.sfc_timers(), job_id),
            _dequeue_start(keys, job),
            _notify_responder(keys, job, ResponseChange.REMOVAL, now),
            operation("SREM", keys.sfc_active_jobs(), job_id),
            changes.append_change(keys, scope, job_id, cause, job.status, now),
        )
    )


def query_job(keys: Keys, job_id: str) -> StoreQuery[Job | None]:
    """Return the query of a job; its value is None when there is none."""
    return query(_job_if_any, "HGETALL", keys.joborder(job_id))


def _job_if_any(stored: Mapping[str, str]) -> Job | None:
    return read_job(stored) if stored else None


async def load(store: Store, job_id: str) -> Job | None:
    """Read a job; None when there is none."""
    return await store.fetch(query_job(store.keys, job_id))


async def missing(store: Store, job_ids: Sequence[str]) -> list[str]:
    """Return which of these jobs are not stored, in one round trip."""
    found = await store.read([("EXISTS", store.keys.joborder(job_id)) for job_id in job_ids])
    return [job_id for job_id, exists in zip(job_ids, found, strict=True) if not exists]


def query_open_count(keys: Keys, scope: str) -> StoreQuery[int]:
    """Return the query of the number of jobs of a scope that have not ended."""
    return query(int, "ZCARD", keys.joborder_open(scope))


async def count_open(store: Store, scope: str) -> int:
    """Count the jobs of a scope that have not ended."""
    return await store.fetch(query_open_count(store.keys, scope))


async def list_ids(store: Store, scope: str) -> Sequence[str]:
    """Return the ids of all jobs of a scope, the highest priority first."""
    ids: list[str] = await store.execute("ZREVRANGE", store.keys.joborder_list(scope), 0, -1)
    return ids


async def list_open(store: Store, scope: str) -> list[str]:
    """Return the ids of the jobs of a scope that have not ended, the highest priority first."""
    ids: list[str] = await store.execute("ZREVRANGE", store.keys.joborder_open(scope), 0, -1)
    return ids


async def load_allowed(store: Store, job_ids: Sequence[str]) -> list[Job]:
    """Read the jobs among these that are allowed to start; an unreadable one is logged and left out."""
    states = await store.read([("HGET", store.keys.joborder(identifier), "state") for identifier in job_ids])
    allowed = JobState.ALLOWED_TO_START
    ids = [identifier for identifier, state in zip(job_ids, states, strict=True) if state == allowed.name]
    return [job for job in await _load(store, ids) if job.status.state is allowed]


async def load_statuses(store: Store, scope: str) -> dict[str, JobStatus]:
    """Read the state of each job of a scope, the highest priority first, some hundred at a time."""
    job_ids = await list_ids(store, scope)
    found: dict[str, JobStatus] = {}
    for start in range(0, len(job_ids), _JOBS_AT_ONCE):
        read = await _load(store, job_ids[start : start + _JOBS_AT_ONCE])
        found |= {job.job_id: job.status for job in read}
    return found


async def load_all(store: Store, scope: str) -> list[Job]:
    """Read all jobs of a scope, the highest priority first; one that cannot be read is logged and left out."""
    return await _load(store, await list_ids(store, scope))


class JobRank(Struct, frozen=True):
    """What a list of many jobs is sorted by; instants in milliseconds."""

    job_id: str
    state: JobState
    stored_at: int
    ended_at: int


async def load_ranks(store: Store, job_ids: Sequence[str]) -> list[JobRank]:
    """Read what these jobs are sorted by, some hundred at a time; one that is missing or unreadable is left out."""
    job_ranks = []
    for start in range(0, len(job_ids), _JOBS_AT_ONCE):
        ids = job_ids[start : start + _JOBS_AT_ONCE]
        names = ("state", "stored_at", "ended_at")
        replies = await store.read([("HMGET", store.keys.joborder(identifier), *names) for identifier in ids])
        for job_id, (state, stored_at, ended_at) in zip(ids, replies, strict=True):
            with contextlib.suppress(KeyError, ValueError, TypeError):
                job_ranks.append(JobRank(job_id, JobState[state], int(stored_at), int(ended_at or 0)))
    return job_ranks


async def find_orders(store: Store, job_ids: Sequence[str], text: str) -> list[JobOrder]:
    """Read the orders of these jobs that contain a text in any case, some hundred at a time.

    The text may be a part of several values; an order that cannot be read is left out.
    """
    # Most orders do not contain it: they are not decoded.
    needle = msgspec.json.encode(text.casefold()).decode()[1:-1]
    orders = []
    for start in range(0, len(job_ids), _JOBS_AT_ONCE):
        ids = job_ids[start : start + _JOBS_AT_ONCE]
        stored_orders = await store.read([("HGET", store.keys.joborder(identifier), "order") for identifier in ids])
        for stored_order in stored_orders:
            if stored_order and needle in stored_order.casefold():
                with contextlib.suppress(msgspec.DecodeError):
                    orders.append(msgspec.json.decode(stored_order, type=JobOrder))
    return orders


async def load_some(store: Store, job_ids: Sequence[str]) -> list[Job]:
    """Read these jobs; one that cannot be read is logged and left out."""
    return await _load(store, job_ids)


async def _load(store: Store, job_ids: Sequence[str]) -> list[Job]:
    return await load_readable(store, [store.keys.joborder(identifier) for identifier in job_ids], read_job)
