"""Builds the nodes of one running chart from its view; their values are computed on every read.

A chart has some hundred nodes: the variables of one specification share their constant attributes.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.sfc.command_id import quote
from edge.uaserver.chart_types import (
    ACTION,
    ACTION_TYPE,
    CHART,
    CHART_METHODS,
    CHART_TYPE,
    STEP,
    STEP_TYPE,
)
from edge.uaserver.descriptions import describe
from edge.uaserver.namespaces import Namespace
from edge.uaserver.own_types import HAS_COMPONENT, VariableSpec, type_name, type_node, variable_attributes
from edge.uaserver.view import ChartView

ViewReader = Callable[[], ChartView]
Part = Callable[[ChartView], Any]

FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
METHODS = MappingProxyType({type_node("RunningChartType", name): name for name in CHART_METHODS})
"""The methods of every chart: all charts share the method nodes of the type."""

_DESCRIPTIONS = MappingProxyType(
    {CHART_TYPE: "A running job.", STEP_TYPE: "A step of the chart.", ACTION_TYPE: "An action of a step."}
)
_HAS_TYPE_DEFINITION = ua.NodeId(ua.ObjectIds.HasTypeDefinition)
_VARIABLE_TYPE = ua.NodeId(ua.ObjectIds.BaseDataVariableType)

A = ua.AttributeIds
T = ua.VariantType


def chart_node_id(*path: str) -> ua.NodeId:
    """Return the NodeId for a path in the namespace of the running charts."""
    return ua.NodeId("/".join(path), Namespace.CHARTS)


def object_node(node_id: ua.NodeId, name: ua.QualifiedName, type_id: ua.NodeId, parent: NodeData) -> NodeData:
    """Create an object below a parent; the references of the parent stay unchanged."""
    node = NodeData(node_id)
    node.attributes |= {
        A.NodeId: _held(node_id, T.NodeId),
        A.BrowseName: _held(name, T.QualifiedName),
        A.DisplayName: _held(ua.LocalizedText(name.Name), T.LocalizedText),
        **_OF_OBJECTS,
        A.Description: _held(describe(name.Name, _DESCRIPTIONS.get(type_id, "")), T.LocalizedText),
    }
    node.references = [_is_a(type_id), _from(parent)]
    return node


def reference_to(node: NodeData, type_id: ua.NodeId) -> ua.ReferenceDescription:
    """Return the HasComponent reference from a parent to a node of a type."""
    name, display_name, node_class = (
        node.attributes[attribute].value.Value.Value for attribute in (A.BrowseName, A.DisplayName, A.NodeClass)
    )
    return ua.ReferenceDescription(HAS_COMPONENT, True, node.nodeid, name, display_name, node_class, type_id)  # noqa: FBT003


def nodes_of(path: str, name: str, folder: NodeData, read_view: ViewReader) -> Iterator[NodeData]:
    """Yield all nodes of a chart, its own object first."""
    view = read_view()
    root = object_node(chart_node_id(path), ua.QualifiedName(name, Namespace.CHARTS), CHART_TYPE, folder)
    root.references += _TO_METHODS
    yield root
    yield from _variables(path, root, CHART, read_view, lambda drawn: drawn)
    parts: tuple[tuple[str, ua.NodeId, tuple[VariableSpec, ...], Mapping[str, Any]], ...] = (
        ("Steps", STEP_TYPE, STEP, view.steps),
        ("Actions", ACTION_TYPE, ACTION, view.actions),
    )
    for kind, type_id, shown, members in parts:
        group = object_node(chart_node_id(path, kind), type_name(kind), FOLDER_TYPE, root)
        root.references.append(reference_to(group, FOLDER_TYPE))
        yield group
        for member in members:
            below = f"{path}/{kind}/{quote(member)}"
            node = object_node(chart_node_id(below), ua.QualifiedName(member, Namespace.CHARTS), type_id, group)
            group.references.append(reference_to(node, type_id))
            yield node
            yield from _variables(below, node, shown, read_view, _part(kind, member))


def _part(kind: str, name: str) -> Part:
    if kind == "Steps":
        return lambda view: view.steps[name]
    return lambda view: view.actions[name]


def _variables(
    path: str, owner: NodeData, variables: tuple[VariableSpec, ...], read_view: ViewReader, part: Part
) -> Iterator[NodeData]:
    back = _from(owner)
    for shown in variables:
        node = NodeData(chart_node_id(path, shown.name))
        value = AttributeValue(ua.DataValue())
        value.value_callback = _reader(shown, read_view, part)
        node.attributes |= {**_OF_VARIABLES[shown], A.NodeId: _held(node.nodeid, T.NodeId), A.Value: value}
        node.references = [_IS_A_VARIABLE, back]
        owner.references.append(reference_to(node, _VARIABLE_TYPE))
        yield node


def _reader(
    shown: VariableSpec, read_view: ViewReader, part: Part
) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
    def read(_node_id: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        now = datetime.now(UTC)
        return ua.DataValue(shown.value(part(read_view())), SourceTimestamp=now, ServerTimestamp=now)

    return read


def _held(value: Any, kind: ua.VariantType) -> AttributeValue:
    return AttributeValue(ua.DataValue(ua.Variant(value, kind)))


def _is_a(type_id: ua.NodeId) -> ua.ReferenceDescription:
    is_ours = type_id.NamespaceIndex == Namespace.TYPES
    name = type_name(type_id.Identifier) if is_ours else ua.QualifiedName(ua.ObjectIdNames[type_id.Identifier])
    kind = ua.NodeClass.VariableType if type_id == _VARIABLE_TYPE else ua.NodeClass.ObjectType
    return ua.ReferenceDescription(_HAS_TYPE_DEFINITION, True, type_id, name, ua.LocalizedText(name.Name), kind)  # noqa: FBT003


def _from(parent: NodeData) -> ua.ReferenceDescription:
    name, display_name = (parent.attributes[attribute].value.Value.Value for attribute in (A.BrowseName, A.DisplayName))
    return ua.ReferenceDescription(
        HAS_COMPONENT,
        False,  # noqa: FBT003
        parent.nodeid,
        name,
        display_name,
        ua.NodeClass.Object,
    )


def _shared(shown: VariableSpec) -> dict[ua.AttributeIds, AttributeValue]:
    attributes = variable_attributes(shown)
    return {
        A.BrowseName: _held(type_name(shown.name), T.QualifiedName),
        A.NodeClass: _held(ua.NodeClass.Variable, T.Int32),
        A.DisplayName: _held(attributes.DisplayName, T.LocalizedText),
        A.Description: _held(attributes.Description, T.LocalizedText),
        A.DataType: _held(attributes.DataType, T.NodeId),
        A.ValueRank: _held(attributes.ValueRank, T.Int32),
        A.ArrayDimensions: AttributeValue(
            ua.DataValue(ua.Variant(attributes.ArrayDimensions, T.UInt32, is_array=True))
        ),
        A.AccessLevel: _held(attributes.AccessLevel, T.Byte),
        A.UserAccessLevel: _held(attributes.UserAccessLevel, T.Byte),
        A.Historizing: _held(False, T.Boolean),  # noqa: FBT003
        A.WriteMask: _held(0, T.UInt32),
        A.UserWriteMask: _held(0, T.UInt32),
    }


_OF_VARIABLES = MappingProxyType({shown: _shared(shown) for shown in (*CHART, *STEP, *ACTION)})
_OF_OBJECTS = MappingProxyType(
    {
        A.NodeClass: _held(ua.NodeClass.Object, T.Int32),
        A.EventNotifier: _held(0, T.Byte),
        A.WriteMask: _held(0, T.UInt32),
        A.UserWriteMask: _held(0, T.UInt32),
    }
)
_IS_A_VARIABLE = _is_a(_VARIABLE_TYPE)
_TO_METHODS = tuple(
    ua.ReferenceDescription(
        HAS_COMPONENT,
        True,  # noqa: FBT003
        node_id,
        type_name(name),
        ua.LocalizedText(name),
        ua.NodeClass.Method,
    )
    for node_id, name in METHODS.items()
)
