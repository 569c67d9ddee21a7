"""The change streams: every change of a job, in order, for all views of jobs."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial

import structlog
from msgspec import Struct

from edge.model.job_state import Cause, JobState, JobStatus, SubState, is_transition
from edge.store.client import Store, block_ms
from edge.store.commit import NOTHING, Commit, join, operation
from edge.store.generation import GENERATION, generation_fields
from edge.store.keys import Keys
from edge.store.reads import BEGINNING, Entry, StreamPage, entries, page_of, position_key, reachable

logger = structlog.get_logger(__name__)

STREAM_LENGTH = 5000
BATCH = 100
"""The changes of a scope that are read at once."""
_FOLLOWED_BY = "followed_by"
_NUMBER = re.compile(r"[0-9]{1,18}")


class Change(Struct, frozen=True):
    """One change of a job at an instant, in milliseconds since the epoch; `status` is the state right after it.

    `position` orders the changes of a scope; `generation` is that of the store behind Sentinel in which it was written.
    """

    position: str
    scope: str
    job_order_id: str
    cause: Cause
    status: JobStatus
    at: int
    generation: str = ""

    @property
    def event_id(self) -> str:
        """Return the id under which the change is published, the same each time."""
        return "/".join(filter(None, (self.scope, self.generation, self.position)))

    @property
    def is_removal(self) -> bool:
        """Whether the change removed the job."""
        return self.cause in {Cause.CANCEL, Cause.CLEAR, Cause.EXPIRE}


def append_change(keys: Keys, scope: str, job_id: str, cause: Cause, status: JobStatus, now: int) -> Commit:
    """Append a change to the stream of its scope; for other programs also to that of all scopes."""
    what, of = ("change_type", cause.value), (scope, job_id, status, now)
    own = _append(keys.joborder_changes(scope), (*what, *generation_fields(keys)), of)
    return join((own, _append(keys.joborder_changes_global(), what, of))) if keys.host_streams else own


def append_result_update(keys: Keys, scope: str, job_id: str, status: JobStatus, now: int) -> Commit:
    """Append the change of a job response for other programs to the streams of changes, as MicroDCS does.

    Our own readers skip it by its field `followed_by`: the move of its job comes next, in the same commit.
    """
    if not keys.host_streams:
        return NOTHING
    what = ("change_type", ResponseChange.UPDATE.value, _FOLLOWED_BY, "move")
    streams = (keys.joborder_changes(scope), keys.joborder_changes_global())
    return join(_append(stream, what, (scope, job_id, status, now)) for stream in streams)


def notify_receiver(keys: Keys, scope: str, job_id: str, cause: Cause, status: JobStatus, now: int) -> Commit:
    """Append a transition of a job order to the stream for consumers on this host; other changes have no event."""
    if not keys.host_streams or not is_transition(cause):
        return NOTHING
    return _append(keys.event_receiver_list(), ("event", cause.value), (scope, job_id, status, now))


class ResponseChange(StrEnum):
    """What happened to a job response."""

    UPDATE = "ResultUpdate"
    REMOVAL = "ResultRemoval"


def notify_responder(
    keys: Keys, scope: str, job_id: str, response_id: str, change: ResponseChange, status: JobStatus, now: int
) -> Commit:
    """Append a change of a job response to the stream for consumers on this host."""
    if not keys.host_streams:
        return NOTHING
    what = ("event", change.value, "job_response_id", response_id)
    return _append(keys.event_responder_list(), what, (scope, job_id, status, now))


def _append(stream: str, what: tuple[str, ...], of: tuple[str, str, JobStatus, int]) -> Commit:
    """Append an entry about a job: its scope, its id, its status and the instant."""
    scope, job_id, status, now = of
    fields = (
        *(*what, "job_order_id", job_id, "scope", scope),
        *("ts", datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds")),
        *("state", status.state.name, "substate", status.substate.name if status.substate else ""),
    )
    return operation("XADD", stream, "MAXLEN", "~", STREAM_LENGTH, "*", *fields)


async def cursors(store: Store, scopes: Iterable[str]) -> dict[str, str]:
    """Return how far the changes of each scope have been published."""
    known = await store.execute("HGETALL", store.keys.publisher_cursors())
    return {scope: _valid_cursor(scope, known.get(scope, BEGINNING)) for scope in scopes}


def _valid_cursor(scope: str, cursor: str) -> str:
    """Return a cursor, or the beginning for an invalid one: then all events are published again under the same ids."""
    try:
        position_key(cursor)
    except ValueError:
        logger.error("cursor unreadable, publishing all changes again", scope=scope, cursor=cursor)
        return BEGINNING
    return cursor


async def start_position(store: Store, scope: str) -> str:
    """Return the position from which the changes of a scope are published; never one that would skip a change."""
    stored = (await cursors(store, [scope]))[scope]
    position = await reachable(store, store.keys.joborder_changes(scope), stored)
    if position != stored:
        logger.warning("cursor is ahead of the changes", scope=scope, cursor=stored, newest=position)
    return position


def save_cursor(keys: Keys, change: Change, events: str | None) -> Commit:
    """Write that a change and all before it in its scope were published.

    `events` is the last change whose event was published; None leaves it as it is.
    """
    positions = (change.scope, change.position, *((_event_cursor_field(change.scope), events) if events else ()))
    return operation("HSET", keys.publisher_cursors(), *positions)


async def event_cursor(store: Store, scope: str) -> str:
    """Return the last change whose event was published: behind the cursor while a broker refuses events."""
    position: str | None = await store.execute("HGET", store.keys.publisher_cursors(), _event_cursor_field(scope))
    return (await cursors(store, [scope]))[scope] if position is None else _valid_cursor(scope, position)


def save_event_cursor(keys: Keys, scope: str, position: str) -> Commit:
    """Write the last change whose event was published."""
    return operation("HSET", keys.publisher_cursors(), _event_cursor_field(scope), position)


def _event_cursor_field(scope: str) -> str:
    # A scope contains no slash.
    return f"{scope}/events"


async def scopes_with_gaps(store: Store, positions: Mapping[str, str]) -> list[str]:
    """Return the scopes whose stream may have lost changes after the given position."""
    replies = await store.read(
        [("XRANGE", store.keys.joborder_changes(scope), "-", "+", "COUNT", 1) for scope in positions]
    )
    firsts = {scope: str(reply[0][0]) for scope, reply in zip(positions, replies, strict=True) if reply}
    behind = [scope for scope, first in firsts.items() if position_key(positions[scope]) < position_key(first)]
    return [scope for scope in behind if await _is_trimmed(store, scope)]


async def _is_trimmed(store: Store, scope: str) -> bool:
    event_cursor = await store.execute("XINFO", "STREAM", store.keys.joborder_changes(scope))
    return bool(event_cursor["entries-added"] != event_cursor["length"])


def add_retained_job(keys: Keys, scope: str, job_id: str) -> Commit:
    """Add a job to those with retained topics."""
    return operation("SADD", keys.publisher_topics(scope), job_id)


def remove_retained_job(keys: Keys, scope: str, job_id: str) -> Commit:
    """Remove a job from those with retained topics."""
    return operation("SREM", keys.publisher_topics(scope), job_id)


async def retained_jobs(store: Store, scope: str) -> set[str]:
    """Return the jobs whose topics are retained, also those that are not stored any more."""
    members: set[str] = await store.execute("SMEMBERS", store.keys.publisher_topics(scope))
    return members


async def next_index(store: Store, scope: str) -> int:
    """Return the number of the state index that is published next."""
    return int(await store.execute("INCR", store.keys.pubseq(scope)))


async def last_index(store: Store, scope: str) -> int:
    """Return the number of the last published state index; 0 for none.

    An invalid number is deleted.
    """
    key = store.keys.pubseq(scope)
    event_cursor = await store.execute("GET", key) or "0"
    if _NUMBER.fullmatch(event_cursor):
        return int(event_cursor)
    logger.error("state index number cannot be read, starting again", scope=scope, number=event_cursor)
    await store.execute("DEL", key)
    return 0


async def latest(store: Store, scopes: Iterable[str]) -> dict[str, str]:
    """Return the position of the newest change of each scope, `0-0` where there is none."""
    scopes = tuple(scopes)
    replies = await store.read(
        [("XREVRANGE", store.keys.joborder_changes(scope), "+", "-", "COUNT", 1) for scope in scopes]
    )
    return {scope: str(reply[0][0]) if reply else BEGINNING for scope, reply in zip(scopes, replies, strict=True)}


async def read_between(store: Store, scope: str, after: str, last: str) -> AsyncIterator[Change]:
    """Yield the changes of a scope between two positions that the stream still holds."""
    stream = store.keys.joborder_changes(scope)
    while position_key(after) < position_key(last):
        raw = await store.execute("XRANGE", stream, f"({after}", last, "COUNT", BATCH)
        if not raw:
            return
        await store.settle()
        for entry in entries(raw):
            after = entry.entry_id
            if change := _parse_change(scope, entry):
                yield change


async def page(
    store: Store, scope: str, first: str, last: str, count: int, *, is_backward: bool = False
) -> StreamPage[Change]:
    """Return a page of changes between two positions; backwards `first` is the newest. `(` excludes a position."""
    command = "XREVRANGE" if is_backward else "XRANGE"
    reply = await store.execute(command, store.keys.joborder_changes(scope), first, last, "COUNT", count)
    return page_of(reply, count, partial(_parse_change, scope))


async def changed_jobs(store: Store, scope: str, after: str, last: str) -> list[str]:
    """Return the jobs of a scope that changed between two positions, each once."""
    return list(dict.fromkeys([change.job_order_id async for change in read_between(store, scope, after, last)]))


async def follow(store: Store, positions: Mapping[str, str]) -> AsyncIterator[Change]:
    """Yield every change after the given position of each scope as it happens, without end.

    Raises Unavailable when the store is unavailable: follow again from the last position seen.
    """
    async for batch in follow_in_batches(store, positions):
        for change in batch:
            yield change


async def follow_in_batches(store: Store, positions: Mapping[str, str]) -> AsyncIterator[list[Change]]:
    """Yield the changes as `follow` does, those together that happened since the last ones were asked for."""
    cursors = dict(positions)
    scope_of = {store.keys.joborder_changes(scope): scope for scope in cursors}
    while True:
        streams = (*scope_of, *(cursors[scope] for scope in scope_of.values()))
        reply = await store.wait("XREAD", "COUNT", BATCH, "BLOCK", block_ms(), "STREAMS", *streams)
        batch = []
        for stream, raw in (reply or {}).items():
            scope = scope_of[stream]
            for entry in entries(raw[0]):
                cursors[scope] = entry.entry_id
                if change := _parse_change(scope, entry):
                    batch.append(change)
        if batch:
            await store.settle()
            yield batch


def _parse_change(scope: str, entry: Entry) -> Change | None:
    """Return a change; None for one that cannot be read, which is logged and skipped."""
    if _FOLLOWED_BY in entry.fields:
        return None
    try:
        return _change(scope, entry.entry_id, entry.fields)
    except (KeyError, ValueError) as error:
        logger.error("change cannot be read", position=entry.entry_id, fields=entry.fields, reason=repr(error))
        return None


def _change(scope: str, position: str, fields: Mapping[str, str]) -> Change:
    if fields["scope"] != scope:
        raise ValueError(f"it is none of {scope}")
    substate = fields["substate"]
    return Change(
        position=position,
        scope=scope,
        job_order_id=fields["job_order_id"],
        cause=Cause(fields["change_type"]),
        status=JobStatus(JobState[fields["state"]], SubState[substate] if substate else None),
        at=round(datetime.fromisoformat(fields["ts"]).timestamp() * 1000),
        generation=fields.get(GENERATION, ""),
    )


async def keep_published(store: Store, scope: str, position: str, text: str, lifetime_s: int) -> str:
    """Keep an event for a time; return the form that was kept first, which may be this one."""
    key = store.keys.publisher_event(scope, position)
    _, kept = await store.read([("SET", key, text, "NX", "EX", lifetime_s), ("GET", key)])
    return text if kept is None else str(kept)
