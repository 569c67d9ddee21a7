"""Shows how history is kept: as steps, and with which fields of events (OPC 10000-11, 5.3 and 5.7)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from asyncua import ua

from edge.features.telemetry.opcua.condition_fields import fields_of_conditions
from edge.opcua.server_core import ServerCore
from edge.uaserver.events import EVENT_FIELDS, JOB_FIELDS, SERVER
from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import standard_item, standard_object, standard_property
from edge.uaserver.own_types import add_nodes

_ROOT: Final = "DefaultHAConfiguration"
_ORGANIZES: Final = ua.NodeId(ua.ObjectIds.Organizes)
_HAS_PROPERTY: Final = ua.NodeId(ua.ObjectIds.HasProperty)
T: Final = ua.VariantType

_AGGREGATES: Final[Mapping[str, tuple[ua.Variant, str]]] = {
    "TreatUncertainAsBad": (ua.Variant(False, T.Boolean), "Whether uncertain values count as bad ones."),
    "PercentDataBad": (ua.Variant(100, T.Byte), "The percent of bad values at which a result is bad."),
    "PercentDataGood": (ua.Variant(100, T.Byte), "The percent of good values at which a result is good."),
    "UseSlopedExtrapolation": (ua.Variant(False, T.Boolean), "Whether values are extrapolated along a slope."),
}


def add_default_configuration(core: ServerCore) -> None:
    """Add the configuration of all tags with history: a value holds until the next one."""
    add_nodes(core, _default_items())


def _default_items() -> Iterator[ua.AddNodesItem]:
    attributes = ua.ObjectAttributes()
    description = "How the history of all tags is kept."
    root = standard_item(_ROOT, SERVER, _ORGANIZES, ua.NodeClass.Object, attributes, description)
    root.TypeDefinition = ua.NodeId(ua.ObjectIds.HistoricalDataConfigurationType)
    yield root
    stepped = ua.Variant(True, T.Boolean)
    yield standard_property(
        f"{_ROOT}_Stepped", root.RequestedNewNodeId, stepped, "Whether a value holds until the next one."
    )
    aggregates = standard_object(
        f"{_ROOT}_AggregateConfiguration",
        root.RequestedNewNodeId,
        "AggregateConfigurationType",
        "How results of intervals are computed where a client does not say it.",
    )
    yield aggregates
    for name, (value, meaning) in _AGGREGATES.items():
        yield standard_property(f"{_ROOT}_AggregateConfiguration_{name}", aggregates.RequestedNewNodeId, value, meaning)


def add_event_filters(core: ServerCore, results: Iterable[ua.NodeId], sources: Iterable[ua.NodeId]) -> None:
    """Add the fields that past events have to the nodes with such events.

    `results` have the events of jobs, `sources` are the machines and the gateway, which have those of conditions.
    """
    conditions = [*EVENT_FIELDS, *((0, path) for path in sorted(fields_of_conditions()))]
    everything = [*conditions, *JOB_FIELDS]
    fields = {node_id: [*EVENT_FIELDS, *JOB_FIELDS] for node_id in results}
    for source in sources:
        fields[source] = everything if source.NamespaceIndex == Namespace.MACHINES else conditions
    fields[SERVER] = everything
    add_nodes(core, (_filter_item(node_id, dict.fromkeys(paths)) for node_id, paths in fields.items()))


def _filter_item(node_id: ua.NodeId, paths: Iterable[tuple[int, str]]) -> ua.AddNodesItem:
    clauses = [
        ua.SimpleAttributeOperand(
            ua.NodeId(ua.ObjectIds.BaseEventType),
            [ua.QualifiedName(name, index) for name in path.split("/")],
            ua.AttributeIds.Value,
        )
        for index, path in paths
    ]
    attributes = ua.VariableAttributes()
    attributes.DisplayName = ua.LocalizedText("HistoricalEventFilter")
    attributes.Description = ua.LocalizedText("The fields that past events have.", "en")
    attributes.DataType = ua.NodeId(ua.ObjectIds.EventFilter)
    attributes.ValueRank = ua.ValueRank.Scalar
    attributes.Value = ua.Variant(ua.EventFilter(SelectClauses=clauses), T.ExtensionObject)
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    name = "Server" if node_id == SERVER else node_id.Identifier
    index = Namespace.APPLICATION if node_id == SERVER else node_id.NamespaceIndex
    return ua.AddNodesItem(
        RequestedNewNodeId=ua.NodeId(f"{name}/HistoricalEventFilter", index),
        BrowseName=ua.QualifiedName("HistoricalEventFilter"),
        NodeClass=ua.NodeClass.Variable,
        ParentNodeId=node_id,
        ReferenceTypeId=_HAS_PROPERTY,
        NodeAttributes=attributes,
        TypeDefinition=ua.NodeId(ua.ObjectIds.PropertyType),
    )
