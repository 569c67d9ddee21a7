"""Adds HistoryServerCapabilities: what of the history of this server clients can read (OPC 10000-11, 5.4).

The functions are named there and in the folder AggregateFunctions of ServerCapabilities.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from asyncua import ua

from edge.features.telemetry.opcua.history_aggregates import AGGREGATES
from edge.features.telemetry.opcua.history_events import EVENTS_PER_NODE
from edge.features.telemetry.opcua.history_parts import VALUES_PER_NODE
from edge.opcua.server_core import ServerCore
from edge.uaserver.own_types import add_nodes
from edge.uaserver.standard_nodes import standard_id, standard_object, standard_property

_ROOT: Final = "HistoryServerCapabilities"
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


def add_capabilities(core: ServerCore, *, has_values: bool) -> None:
    """Add the nodes that state what clients can read of the history; `has_values`: samples of tags are kept."""
    add_nodes(core, _items(has_values=has_values))
    if has_values:
        for parent in (_OF_SERVER, standard_id(f"{_ROOT}_AggregateFunctions")):
            _organize(core, parent)


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
