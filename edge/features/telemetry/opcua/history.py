"""HistoryRead of tags and events (OPC 10000-11): pages from the files, in slices that yield to the loop.

HistoryServerCapabilities says what of the history of this server clients can read (OPC 10000-11, 5.4).
"""

import asyncio
import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import structlog
from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.ua.uaprotocol_auto import ReadAtTimeDetails, ReadEventDetails, ReadProcessedDetails, ReadRawModifiedDetails
from msgspec import Struct

from edge.features.telemetry.opcua.history_aggregates import AGGREGATES
from edge.features.telemetry.opcua.history_events import EVENTS_PER_NODE, EventHistory, EventRange
from edge.features.telemetry.opcua.history_values import (
    VALUES_PER_NODE,
    AtTime,
    HistoryPart,
    PartRoom,
    Processed,
    Raw,
    history_data,
)
from edge.features.telemetry.opcua.tag_nodes import tag_of
from edge.foundation.errors import Unavailable
from edge.model.instant import milliseconds_of
from edge.opcua.server_core import ServerCore
from edge.opcua.server_session import ServerSession
from edge.opcua.time_slices import Turn
from edge.uaserver.new_nodes import standard_id, standard_object, standard_property
from edge.uaserver.node_parts import scalar
from edge.uaserver.own_types import add_nodes

if TYPE_CHECKING:
    from edge.features.telemetry.opcua.tag_history import TagHistory

logger = structlog.get_logger(__name__)

_S: Final = ua.StatusCodes
CONTINUATION_POINTS: Final = 20
"""Open continuation points of one session; the oldest of former requests is released for a new one."""
VALUES_PER_ANSWER: Final = 20_000
"""Values and events of one answer; the nodes after them get continuation points."""
POINT_BYTES: Final = 8 << 20
"""Memory of all continuation points of the server; beyond it the session that has the most of it loses its oldest."""
BYTES_PER_ANSWER: Final = 1 << 20
"""The answer is encoded at once; the nodes after these bytes get continuation points."""
SECONDS_PER_ANSWER: Final = 3.0
"""A node that is reached later gets a continuation point: a request of many nodes does not run for an hour."""
REQUESTED_TIMES: Final = 1_000


_POINT: Final = 1_000
"""Bytes of a continuation point without what its request brings."""

Rest: TypeAlias = Raw | Processed | AtTime | EventRange


class _Point(Struct, frozen=True):
    """A continuation point: its node, and what is left to read, as a cursor."""

    node_id: ua.NodeId
    rest: Rest

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        match self.rest:
            case EventRange(asked=asked):
                return _POINT + len(asked)
            case AtTime(times=times):
                return _POINT + times.itemsize * len(times)
            case _:
                return _POINT


class _Points:
    """The continuation points of each session, the oldest first. They end with the session."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[ServerSession, dict[bytes, _Point]] = WeakKeyDictionary()

    def take(self, session: ServerSession, name: bytes | None) -> _Point | None:
        """Return a point and release it; None for an unknown one."""
        return self._of.get(session, {}).pop(name or b"", None)

    def add(self, session: ServerSession, point: _Point) -> bytes:
        """Keep a point, and return its name; release the oldest ones that go beyond a limit."""
        name = token_bytes(16)
        points = self._of.setdefault(session, {})
        points[name] = point
        if len(points) > CONTINUATION_POINTS:
            del points[next(iter(points))]
        sizes = {session: sum(point.size for point in points.values()) for session, points in self._of.items()}
        while sum(sizes.values()) > POINT_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            oldest = next(iter(self._of[largest]))
            sizes[largest] -= self._of[largest].pop(oldest).size
        return name


class History:
    """The HistoryRead service; without files of history it reads events only."""

    def __init__(self, knows: Callable[[ua.NodeId], bool], events: EventHistory, tags: "TagHistory | None") -> None:
        self._knows = knows
        self._events = events
        self._tags = tags
        self._points = _Points()

    async def read(
        self, params: ua.HistoryReadParameters, session: ServerSession, turn: Turn
    ) -> list[ua.HistoryReadResult]:
        """Read the history of nodes. Raises ServiceError for a request that is invalid as a whole."""
        if params.ReleaseContinuationPoints:
            return [self._release(session, value.ContinuationPoint) for value in params.NodesToRead]
        details = params.HistoryReadDetails
        wanted = ua.TimestampsToReturn
        if not isinstance(details, ReadEventDetails) and params.TimestampsToReturn not in {
            wanted.Source,
            wanted.Server,
            wanted.Both,
        }:
            raise ServiceError(_S.BadTimestampsToReturnInvalid)
        if isinstance(details, ReadProcessedDetails) and len(details.AggregateType or ()) != len(params.NodesToRead):
            raise ServiceError(_S.BadAggregateListMismatch)
        left, bytes_left = VALUES_PER_ANSWER, BYTES_PER_ANSWER
        loop = asyncio.get_running_loop()
        until = loop.time() + SECONDS_PER_ANSWER
        results, made = [], 0
        for number, node in enumerate(params.NodesToRead):
            rest = self._start(details, number, node, session)
            if isinstance(rest, int):
                results.append(_failed(rest))
                await turn.step()
                continue
            has_room = bytes_left > 0 and loop.time() < until
            room = PartRoom(left if has_room else 0, bytes_left)
            part = await self._part(rest, room, params.TimestampsToReturn, turn)
            left -= part.count
            bytes_left -= part.size
            if part.rest is not None and made == CONTINUATION_POINTS:
                # No point of this answer is released for another one; the client asks for this node again.
                results.append(_failed(int(_S.BadNoContinuationPoints)))
            else:
                results.append(self._result(part, node.NodeId, session))
                made += part.rest is not None
            await turn.step()
        return results

    def _release(self, session: ServerSession, name: bytes | None) -> ua.HistoryReadResult:
        point = self._points.take(session, name)
        return ua.HistoryReadResult() if point else _failed(_S.BadContinuationPointInvalid)

    def _start(self, details: Any, number: int, node: ua.HistoryReadValueId, session: ServerSession) -> Rest | int:
        """Return what is to be read of a node, or the status that refuses it."""
        if not session.may_read(node.NodeId):
            return int(_S.BadUserAccessDenied)
        if node.ContinuationPoint:
            point = self._points.take(session, node.ContinuationPoint)
            return point.rest if point and point.node_id == node.NodeId else int(_S.BadContinuationPointInvalid)
        if not self._knows(node.NodeId):
            return int(_S.BadNodeIdUnknown)
        if node.IndexRange:
            return int(_S.BadIndexRangeInvalid)
        if node.DataEncoding is not None and node.DataEncoding.Name:
            return int(_S.BadDataEncodingInvalid)
        if isinstance(details, ReadEventDetails):
            return self._events.start(node.NodeId, details)
        tag = tag_of(node.NodeId)
        if tag is None or self._tags is None:
            return int(_S.BadHistoryOperationUnsupported)
        return _start_of_tag(tag, details, number)

    async def _part(self, rest: Rest, room: PartRoom, timestamps: ua.TimestampsToReturn, turn: Turn) -> HistoryPart:
        if room.values <= 0:
            return HistoryPart((), 0, rest)
        try:
            if isinstance(rest, EventRange):
                return await self._events.read(rest, room, turn)
            if self._tags is not None:
                return await self._tags.read(rest, room, timestamps, turn)
        except (OSError, Unavailable) as error:
            logger.warning("history not read", reason=str(error))
            return HistoryPart((), 0, None, int(_S.BadResourceUnavailable))
        return HistoryPart((), 0, None, int(_S.BadHistoryOperationUnsupported))

    def _result(self, part: HistoryPart, node_id: ua.NodeId, session: ServerSession) -> ua.HistoryReadResult:
        status = part.status
        if not status and not part.count and part.rest is None:
            status = int(_S.GoodNoData)
        result = ua.HistoryReadResult(StatusCode=ua.StatusCode(status))
        if not ua.StatusCode(status).is_bad():
            result.HistoryData = part.events if part.events is not None else history_data(part.values)
        if part.rest is not None:
            result.ContinuationPoint = self._points.add(session, _Point(node_id, part.rest))
        return result


def _start_of_tag(tag: str, details: Any, number: int) -> Raw | Processed | AtTime | int:
    match details:
        case ReadRawModifiedDetails(IsReadModified=True):
            return int(_S.BadHistoryOperationUnsupported)
        case ReadRawModifiedDetails():
            start, end = milliseconds_of(details.StartTime), milliseconds_of(details.EndTime)
            if (start is None) + (end is None) + (not details.NumValuesPerNode) > 1:
                return int(_S.BadHistoryOperationInvalid)
            return Raw(tag, start, end, details.NumValuesPerNode, bounds=details.ReturnBounds)
        case ReadProcessedDetails():
            start, end = milliseconds_of(details.StartTime), milliseconds_of(details.EndTime)
            aggregate = AGGREGATES.get(details.AggregateType[number])
            if aggregate is None:
                return int(_S.BadAggregateNotSupported)
            if start is None or end is None or start == end or not details.ProcessingInterval >= 0:
                return int(_S.BadInvalidArgument)
            asked = details.AggregateConfiguration
            is_strict = bool(asked and not asked.UseServerCapabilitiesDefaults and asked.TreatUncertainAsBad)
            interval = max(1, round(min(details.ProcessingInterval or math.inf, abs(end - start))))
            return Processed(tag, start, end, interval, aggregate, uncertain_is_bad=is_strict)
        case ReadAtTimeDetails():
            times = [milliseconds_of(time_) for time_ in details.ReqTimes or ()]
            if not times or None in times:
                return int(_S.BadInvalidTimestampArgument)
            if len(times) > REQUESTED_TIMES:
                return int(_S.BadTooManyOperations)
            return AtTime(tag, array("q", (time_ for time_ in times if time_ is not None)))
        case _:
            return int(_S.BadHistoryOperationUnsupported)


def _failed(status: int) -> ua.HistoryReadResult:
    return ua.HistoryReadResult(StatusCode=ua.StatusCode(status))


_ROOT: Final = "HistoryServerCapabilities"
_LIMITS: Final = "Server_ServerCapabilities_OperationLimits"
_CAPABILITIES: Final = ua.NodeId(ua.ObjectIds.Server_ServerCapabilities)
_OF_SERVER: Final = ua.NodeId(ua.ObjectIds.Server_ServerCapabilities_AggregateFunctions)
_ORGANIZES: Final = ua.NodeId(ua.ObjectIds.Organizes)
T: Final = ua.VariantType

_ABSENT: Final[Mapping[str, str]] = {
    "InsertDataCapability": "Whether clients may insert values.",
    "ReplaceDataCapability": "Whether clients may replace values.",
    "UpdateDataCapability": "Whether clients may insert or replace values.",
    "DeleteRawCapability": "Whether clients may delete values.",
    "DeleteAtTimeCapability": "Whether clients may delete the values at instants.",
    "InsertEventCapability": "Whether clients may insert events.",
    "ReplaceEventCapability": "Whether clients may replace events.",
    "UpdateEventCapability": "Whether clients may insert or replace events.",
    "DeleteEventCapability": "Whether clients may delete events.",
    "InsertAnnotationCapability": "Whether clients may annotate values.",
}
"""History is read only."""


_AGGREGATE_TEXTS: Final[Mapping[str, str]] = {
    "Average": "The mean of the good values of an interval.",
    "TimeAverage": "The mean of an interval, each value for as long as it holds.",
    "Minimum": "The least good value of an interval.",
    "Maximum": "The largest good value of an interval.",
    "Count": "The number of good values of an interval.",
}
"""The node set of namespace 0 leaves their descriptions out."""


def add_capabilities(core: ServerCore, *, has_values: bool) -> None:
    """Add the nodes that state what clients can read of the history; `has_values`: samples of tags are kept."""
    add_nodes(core, _items(has_values=has_values))
    for kind in ("Data", "Events") if has_values else ("Events",):
        most = ua.Variant(core.limits.nodes_per_read, T.UInt32)
        name = f"{_LIMITS}_MaxNodesPerHistoryRead{kind}"
        add_nodes(core, [standard_property(name, standard_id(_LIMITS), most, "The most nodes of one HistoryRead.")])
    if has_values:
        for parent in (_OF_SERVER, standard_id(f"{_ROOT}_AggregateFunctions")):
            _organize(core, parent)
        for node_id, name in AGGREGATES.items():
            text = ua.LocalizedText(_AGGREGATE_TEXTS[name], "en")
            core.aspace[node_id].attributes[ua.AttributeIds.Description] = scalar(text, T.LocalizedText)


def _items(*, has_values: bool) -> Iterator[ua.AddNodesItem]:
    root = standard_id(_ROOT)
    yield standard_object(_ROOT, _CAPABILITIES, "HistoryServerCapabilitiesType", "What history clients can read.")
    for name, (value, kind, description) in {
        "AccessHistoryDataCapability": (has_values, T.Boolean, "Whether the history of values can be read."),
        "AccessHistoryEventsCapability": (True, T.Boolean, "Whether the history of events can be read."),
        "MaxReturnDataValues": (
            VALUES_PER_NODE if has_values else 0,
            T.UInt32,
            "The most values of a node in one answer.",
        ),
        "MaxReturnEventValues": (EVENTS_PER_NODE, T.UInt32, "The most events of a node in one answer."),
        # The time at which the server received a value is not kept.
        "ServerTimestampSupported": (False, T.Boolean, "Whether server timestamps of values are kept."),
        **{name: (False, T.Boolean, description) for name, description in _ABSENT.items()},
    }.items():
        yield standard_property(f"{_ROOT}_{name}", root, ua.Variant(value, kind), description)
    aggregates = "The aggregates that can be read."
    yield standard_object(f"{_ROOT}_AggregateFunctions", root, "FolderType", aggregates)


def _organize(core: ServerCore, parent: ua.NodeId) -> None:
    asked = [
        ua.AddReferencesItem(
            parent, _ORGANIZES, IsForward=True, TargetNodeId=value, TargetNodeClass=ua.NodeClass.Object
        )
        for value in AGGREGATES
    ]
    for status in core.node_mgt_service.add_references(asked):
        status.check()
