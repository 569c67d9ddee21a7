"""Reads past events: those of several sources in order of time, in pages (OPC 10000-11, 6.4.2)."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import structlog
from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.server.address_space import AddressSpace
from asyncua.ua.ua_binary import struct_from_binary, struct_to_binary
from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.opcua.condition_view import ConditionKind, ConditionPlace, ConditionView, follow_change
from edge.features.telemetry.opcua.conditions import Conditions
from edge.features.telemetry.opcua.history_values import HistoryPart, PartRoom
from edge.model.instant import milliseconds_of, utc
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent
from edge.model.job_state import has_response, is_transition, state_entries
from edge.opcua.event_filter import EventRecord, event_filter_status, matches, select_fields
from edge.opcua.time_slices import Turn
from edge.store import changes, jobs, responses
from edge.store import kept_alarms as alarms
from edge.store.background import Isolated
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.kept_alarms import AlarmChange
from edge.store.reads import StreamPage
from edge.uaserver.condition_nodes import member_id
from edge.uaserver.events import SERVER, JobEventPublisher

_S: Final = ua.StatusCodes
EVENTS_PER_NODE: Final = 1_000
_CHANGES_PER_READ: Final = 200
_LAST: Final = (1 << 63) - 1
_ENCODING: Final = ua.NodeId(ua.ObjectIds.HistoryEvent_Encoding_DefaultBinary)


class EventRange(Struct, frozen=True):
    """The events of a node from `start` to before `end`, backwards when `end` is the earlier one; None is open."""

    node_id: ua.NodeId
    start: int | None
    end: int | None
    limit: int
    asked: bytes
    """The EventFilter as it came: decoded it takes much more memory, and a continuation point keeps it."""
    selects_job: bool = False
    """Whether the filter needs more of a job than its id."""
    after: Mapping[str, str | None] | None = None
    """The position of the last change that was read of each source, None for a source that has ended."""

    @property
    def is_backward(self) -> bool:
        """Return whether the newest event comes first."""
        return self.start is None or (self.end is not None and self.end < self.start)

    def bounds(self, after: str) -> tuple[str, str]:
        """Return the first and the last position of what is left behind a position; empty for the beginning."""
        if self.is_backward:
            newest = self.start if self.start is not None else self.end
            oldest = self.end if self.start is not None else None
            first = str(_LAST if newest is None else newest)
            last = str(oldest + 1 if oldest is not None else 0)
        else:
            first = str(self.start or 0)
            last = str(_LAST if self.end is None else max(0, self.end - (self.end != self.start)))
        return f"({after}" if after else first, last


class Positioned(Protocol):
    """A change of a stream with its position, which begins with its instant in milliseconds."""

    @property
    def position(self) -> str:
        """The position in the stream."""


class EventSource(Protocol):
    """A stream of changes that are events of some nodes."""

    @property
    def name(self) -> str:
        """A name of its own among the sources."""

    def serves(self, node_id: ua.NodeId) -> bool:
        """Return whether a node can have events of this source."""

    async def page(self, first: str, last: str, count: int, *, is_backward: bool) -> StreamPage[Any]:
        """Return a page of changes. Raises Unavailable."""

    async def record(self, change: Any, rest: EventRange, turn: Turn) -> EventRecord | None:
        """Return the event of a change; None when it is none of the node; end the turn while reading the store.

        Raises Unavailable.
        """


class EventHistory:
    """The past events of all sources."""

    def __init__(self, sources: Sequence[EventSource], aspace: AddressSpace) -> None:
        self._sources = sources
        self._aspace = aspace

    def start(self, node_id: ua.NodeId, details: Any) -> EventRange | int:
        """Return what is to be read of a node, or the status that refuses it."""
        if not any(source.serves(node_id) for source in self._sources):
            return int(_S.BadHistoryOperationUnsupported)
        start, end = milliseconds_of(details.StartTime), milliseconds_of(details.EndTime)
        if (start is None) + (end is None) + (not details.NumValuesPerNode) > 1:
            return int(_S.BadHistoryOperationInvalid)
        status = event_filter_status(details.Filter, self._aspace)
        if status.is_bad():
            return int(status.value)
        asked = struct_to_binary(details.Filter)
        return EventRange(node_id, start, end, details.NumValuesPerNode, asked, _selects_job(details.Filter))

    async def read(self, rest: EventRange, room: PartRoom, turn: Turn) -> HistoryPart:
        """Read the next events. Raises Unavailable."""
        size = min(rest.limit or EVENTS_PER_NODE, EVENTS_PER_NODE, room.values)
        asked = struct_from_binary(ua.EventFilter, Buffer(rest.asked))
        feeds = [_Feed(source, rest) for source in self._sources if source.serves(rest.node_id)]
        found: list[bytes] = []
        bytes_left = room.size
        while len(found) < size and bytes_left > 0:
            feed = await _next(feeds, turn, is_backward=rest.is_backward)
            if feed is None:
                break
            record = await feed.take(turn)
            if record is not None and matches(asked.WhereClause, record):
                selected = select_fields(record, asked.SelectClauses)
                found.append(struct_to_binary(ua.HistoryEventFieldList(EventFields=selected)))
                bytes_left -= len(found[-1])
            await turn.step()
        has_more = await _next(feeds, turn, is_backward=rest.is_backward) is not None
        body = len(found).to_bytes(4, "little") + b"".join(found)
        events = ua.ExtensionObject(TypeId=_ENCODING, Body=body)
        after = {feed.source.name: feed.after for feed in feeds}
        return HistoryPart((), len(found), replace(rest, after=after) if has_more else None, events=events)


class _Feed:
    """The changes of one source that are left; `after` is the position to continue from, None at the end."""

    def __init__(self, source: EventSource, rest: EventRange) -> None:
        self.source = source
        self.after: str | None = rest.after.get(source.name) if rest.after is not None else ""
        self._rest = rest
        self._waiting: deque[Positioned] = deque()
        self._next: str | None = self.after

    async def at(self, turn: Turn) -> int | None:
        """Return the instant of the next change in milliseconds; None at the end."""
        while not self._waiting and self._next is not None:
            turn.end()
            try:
                bounds = self._rest.bounds(self._next)
                page = await self.source.page(*bounds, _CHANGES_PER_READ, is_backward=self._rest.is_backward)
            finally:
                await turn.begin()
            self._waiting.extend(page.items)
            self._next = page.next or None
        if not self._waiting:
            self.after = None
            return None
        return int(self._waiting[0].position.partition("-")[0])

    async def take(self, turn: Turn) -> EventRecord | None:
        """Return the event of the next change."""
        change = self._waiting.popleft()
        self.after = change.position
        return await self.source.record(change, self._rest, turn)


async def _next(feeds: Sequence[_Feed], turn: Turn, *, is_backward: bool) -> _Feed | None:
    """Return the source of the next event; None when all have ended. In one millisecond, sources follow each other."""
    waiting = [(at, number) for number, feed in enumerate(feeds) if (at := await feed.at(turn)) is not None]
    if not waiting:
        return None
    return feeds[(max(waiting) if is_backward else min(waiting))[1]]


class AlarmEvents:
    """The events of conditions at the Server object, the machines and the gateway."""

    name = "alarms"

    def __init__(self, store: Store, conditions: Conditions, places: Mapping[str, ConditionPlace], own: str) -> None:
        self._store = store
        self._conditions = conditions
        self._other = places[own]
        self._notifiers = {SERVER, *(place.source for place in places.values())}

    def serves(self, node_id: ua.NodeId) -> bool:
        """Return whether a node can have events of conditions."""
        return node_id in self._notifiers

    async def page(self, first: str, last: str, count: int, *, is_backward: bool) -> StreamPage[AlarmChange]:
        """Return a page of changes of alarms. Raises Unavailable."""
        return await alarms.page(self._store, first, last, count, is_backward=is_backward)

    async def record(self, change: AlarmChange, rest: EventRange, turn: Turn) -> EventRecord | None:
        """Return the event of a change; None when its alarm belongs to another node."""
        del turn  # it reads nothing: a new turn for each event would begin a new time slice
        condition_view = self._conditions.view_of(change.alarm.id)
        place, kind = (condition_view.place, condition_view.kind) if condition_view else (self._other, ConditionKind())
        if rest.node_id not in {SERVER, place.source}:
            return None
        view = ConditionView(follow_change(None, change), kind, place, member_id(change.alarm.id, ""))
        return self._conditions.event_of(view)


logger = structlog.get_logger(__name__)

_OF_JOB = frozenset({"JobOrder", "JobResponse"})


class JobEvents:
    """The events of one machine at its JobOrderResults and at the Server object."""

    def __init__(self, store: Store, scope: str, events: JobEventPublisher) -> None:
        self._store = store
        self._scope = scope
        self._events = events

    @property
    def name(self) -> str:
        """A name of its own among the sources."""
        return f"jobs/{self._scope}"

    def serves(self, node_id: ua.NodeId) -> bool:
        """Return whether a node has the events of this machine."""
        return self._events.is_notifier(node_id)

    async def page(self, first: str, last: str, count: int, *, is_backward: bool) -> StreamPage[Change]:
        """Return a page of changes of jobs. Raises Unavailable."""
        return await changes.page(self._store, self._scope, first, last, count, is_backward=is_backward)

    async def record(self, change: Change, rest: EventRange, turn: Turn) -> EventRecord | None:
        """Return the event of a transition; storing and removing a job are none. Raises Unavailable.

        JobOrder is the present one, or its id alone when the job is removed. JobResponse is there for the
        present state.
        """
        if not is_transition(change.cause):
            return None
        job, response = None, None
        if rest.selects_job:
            turn.end()
            try:
                job, response = await self._job(change)
            finally:
                await turn.begin()
        at = utc(change.at)
        order = job.order if job else JobOrder(job_order_id=change.job_order_id)
        status_event = JobStatusEvent(job_order=order, job_state=state_entries(change.status), job_response=response)
        return self._events.record(status_event, at, at)

    async def _job(self, change: Change) -> tuple[Job | None, JobResponse | None]:
        """Return the job as it is now, and its response when the change led to its present state."""
        with Isolated(logger, "job not in history", scope=self._scope, job=change.job_order_id):
            job = await jobs.load(self._store, change.job_order_id)
            if job is None or job.status != change.status or not has_response(job.status):
                return job, None
            return job, await responses.load(self._store, job)
        return None, None


def _selects_job(asked: ua.EventFilter) -> bool:
    """Return whether a filter needs more of a job than its id."""
    return any(name.Name in _OF_JOB for clause in asked.SelectClauses or () for name in clause.BrowsePath or ())
