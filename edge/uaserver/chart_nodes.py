"""Builds the nodes of one running chart from its view; their values are computed on every read.

A chart has some hundred nodes: the variables of one specification share their constant attributes.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.sfc.identifiers import quote
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
from edge.uaserver.node_parts import (
    HAS_COMPONENT,
    make_reference,
    object_attributes,
    reference_to,
    reference_to_type,
    scalar,
    variable_attributes,
)
from edge.uaserver.own_types import VariableSpec, type_name, type_node
from edge.uaserver.view import ChartView, ViewReader

Part = Callable[[ChartView], Any]

FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
METHODS = MappingProxyType({type_node("RunningChartType", name): name for name in CHART_METHODS})
"""The methods of every chart: all charts share the method nodes of the type."""

_DESCRIPTIONS = MappingProxyType(
    {CHART_TYPE: "A running job.", STEP_TYPE: "A step of the chart.", ACTION_TYPE: "An action of a step."}
)
_VARIABLE_TYPE = ua.NodeId(ua.ObjectIds.BaseDataVariableType)

A = ua.AttributeIds
T = ua.VariantType


def chart_node_id(*path: str) -> ua.NodeId:
    """Return the NodeId for a path in the namespace of the running charts."""
    return ua.NodeId("/".join(path), Namespace.CHARTS)


def object_node(node_id: ua.NodeId, name: ua.QualifiedName, type_id: ua.NodeId, parent: NodeData) -> NodeData:
    """Create an object below a parent; the references of the parent stay unchanged."""
    node = NodeData(node_id)
    node.attributes = object_attributes(node_id, name, describe(name.Name, _DESCRIPTIONS.get(type_id, "")).Text or "")
    node.references = [reference_to_type(type_id), reference_to(parent, HAS_COMPONENT, is_forward=False)]
    return node


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
        root.references.append(reference_to(group, HAS_COMPONENT))
        yield group
        for member in members:
            below = f"{path}/{kind}/{quote(member)}"
            node = object_node(chart_node_id(below), ua.QualifiedName(member, Namespace.CHARTS), type_id, group)
            group.references.append(reference_to(node, HAS_COMPONENT))
            yield node
            yield from _variables(below, node, shown, read_view, _part(kind, member))


def _part(kind: str, name: str) -> Part:
    if kind == "Steps":
        return lambda view: view.steps[name]
    return lambda view: view.actions[name]


def _variables(
    path: str, owner: NodeData, variables: tuple[VariableSpec, ...], read_view: ViewReader, part: Part
) -> Iterator[NodeData]:
    back = reference_to(owner, HAS_COMPONENT, is_forward=False)
    for shown in variables:
        node = NodeData(chart_node_id(path, shown.name))
        value = AttributeValue(ua.DataValue())
        value.value_callback = _reader(shown, read_view, part)
        node.attributes = {**_OF_VARIABLES[shown], A.NodeId: scalar(node.nodeid, T.NodeId), A.Value: value}
        node.references = [reference_to_type(_VARIABLE_TYPE, ua.NodeClass.VariableType), back]
        owner.references.append(reference_to(node, HAS_COMPONENT))
        yield node


def _reader(
    shown: VariableSpec, read_view: ViewReader, part: Part
) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
    def read(_node_id: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        now = datetime.now(UTC)
        return ua.DataValue(shown.value(part(read_view())), SourceTimestamp=now, ServerTimestamp=now)

    return read


_OF_VARIABLES = MappingProxyType(
    {
        shown: variable_attributes(type_name(shown.name), shown.data_type, shown.description, is_array=shown.is_array)
        for shown in (*CHART, *STEP, *ACTION)
    }
)
_TO_METHODS = tuple(
    make_reference(HAS_COMPONENT, node_id, type_name(name), ua.NodeClass.Method) for node_id, name in METHODS.items()
)
