"""Builds the parts of nodes: attributes, descriptions, references with the name and the class of their target.

A namespace can be computed: its nodes exist only while they are read.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData

from edge.uaserver.official_texts import official_text

HAS_COMPONENT: Final = ua.NodeId(ua.ObjectIds.HasComponent)

_A: Final = ua.AttributeIds
_T: Final = ua.VariantType
_HAS_TYPE_DEFINITION: Final = ua.NodeId(ua.ObjectIds.HasTypeDefinition)


def scalar(value: Any, kind: ua.VariantType) -> AttributeValue:
    """Return a scalar value as the attribute of a node."""
    return AttributeValue(ua.DataValue(ua.Variant(value, kind)))


@lru_cache(maxsize=256, typed=True)
def shared_value(value: int | ua.NodeId, kind: ua.VariantType) -> ua.DataValue:
    """Return a value that many nodes have: they share one object."""
    return ua.DataValue(ua.Variant(value, kind))


def object_attributes(
    node_id: ua.NodeId, name: ua.QualifiedName, description: str
) -> dict[ua.AttributeIds, AttributeValue]:
    """Return the attributes of an object without events; all such objects share those that are equal."""
    return {
        _A.NodeId: scalar(node_id, _T.NodeId),
        _A.BrowseName: scalar(name, _T.QualifiedName),
        _A.DisplayName: scalar(ua.LocalizedText(name.Name), _T.LocalizedText),
        _A.Description: scalar(ua.LocalizedText(description, "en"), _T.LocalizedText),
        **_OF_OBJECTS,
    }


_OF_OBJECTS: Final = MappingProxyType(
    {
        _A.NodeClass: scalar(ua.NodeClass.Object, _T.Int32),
        _A.EventNotifier: scalar(0, _T.Byte),
        _A.WriteMask: scalar(0, _T.UInt32),
        _A.UserWriteMask: scalar(0, _T.UInt32),
    }
)


def variable_attributes(
    name: ua.QualifiedName,
    data_type: ua.NodeId,
    description: str,
    access_level: int = 1 << ua.AccessLevel.CurrentRead,
    *,
    is_array: bool = False,
) -> dict[ua.AttributeIds, AttributeValue]:
    """Return the attributes of a variable except NodeId and Value; history makes it historizing."""
    rank = ua.ValueRank.OneDimension if is_array else ua.ValueRank.Scalar
    dimensions = ua.Variant([0] if is_array else None, _T.UInt32, is_array=True)
    return {
        _A.BrowseName: scalar(name, _T.QualifiedName),
        _A.NodeClass: scalar(ua.NodeClass.Variable, _T.Int32),
        _A.DisplayName: scalar(ua.LocalizedText(name.Name), _T.LocalizedText),
        _A.Description: scalar(ua.LocalizedText(description, "en"), _T.LocalizedText),
        _A.DataType: scalar(data_type, _T.NodeId),
        _A.ValueRank: scalar(rank, _T.Int32),
        _A.ArrayDimensions: AttributeValue(ua.DataValue(dimensions)),
        _A.AccessLevel: scalar(access_level, _T.Byte),
        _A.UserAccessLevel: scalar(access_level, _T.Byte),
        _A.Historizing: scalar(bool(access_level & 1 << ua.AccessLevel.HistoryRead), _T.Boolean),
        _A.WriteMask: scalar(0, _T.UInt32),
        _A.UserWriteMask: scalar(0, _T.UInt32),
    }


def make_reference(
    reference_type: ua.NodeId,
    target: ua.NodeId,
    name: ua.QualifiedName,
    node_class: ua.NodeClass,
    type_id: ua.NodeId | None = None,
    *,
    is_forward: bool = True,
) -> ua.ReferenceDescription:
    """Return a reference to a node that is shown by its browse name."""
    shown = ua.LocalizedText(name.Name)
    return ua.ReferenceDescription(reference_type, is_forward, target, name, shown, node_class, type_id or ua.NodeId())


def reference_to(node: NodeData, reference_type: ua.NodeId, *, is_forward: bool = True) -> ua.ReferenceDescription:
    """Return a reference to a node, with the type of an object or variable."""
    name, shown, node_class = (
        node.attributes[value].value.Value.Value for value in (_A.BrowseName, _A.DisplayName, _A.NodeClass)
    )
    types = (
        reference.NodeId
        for reference in node.references
        if reference.IsForward and reference.ReferenceTypeId == _HAS_TYPE_DEFINITION
    )
    has_type = node_class in {ua.NodeClass.Object, ua.NodeClass.Variable}
    type_id = next(types, ua.NodeId()) if has_type else ua.NodeId()
    return ua.ReferenceDescription(reference_type, is_forward, node.nodeid, name, shown, node_class, type_id)


@cache
def reference_to_type(
    type_id: ua.NodeId, node_class: ua.NodeClass = ua.NodeClass.ObjectType
) -> ua.ReferenceDescription:
    """Return the reference to a type without its node, which can have hundreds of references.

    The type is of namespace 0, or one of our own, whose identifiers are browse names.
    """
    name = type_id.Identifier if type_id.NamespaceIndex else ua.ObjectIdNames[type_id.Identifier]
    # Equal NodeIds can have several encodings: the shortest, whichever was asked first.
    shortest = ua.NodeId(type_id.Identifier, type_id.NamespaceIndex)
    return make_reference(_HAS_TYPE_DEFINITION, shortest, ua.QualifiedName(name, type_id.NamespaceIndex), node_class)


def compute_namespace(aspace: AddressSpace, namespace: int, node: Callable[[ua.NodeId], NodeData]) -> None:
    """Read the nodes of a namespace from `node`, which raises KeyError for an unknown one; the others as before."""
    aspace._nodes = _ComputedNodes(aspace._nodes, namespace, node)  # noqa: SLF001 - as asyncua's own loaders do


class _ComputedNodes(MutableMapping[ua.NodeId, NodeData]):
    """All nodes of an address space. Iteration yields those that are not computed."""

    def __init__(
        self, others: MutableMapping[ua.NodeId, NodeData], namespace: int, node: Callable[[ua.NodeId], NodeData]
    ) -> None:
        self._others = others
        self._namespace = namespace
        self._node = node

    def __getitem__(self, key: ua.NodeId) -> NodeData:
        return self._node(key) if key.NamespaceIndex == self._namespace else self._others[key]

    def __setitem__(self, key: ua.NodeId, value: NodeData) -> None:
        self._others[key] = value

    def __delitem__(self, key: ua.NodeId) -> None:
        del self._others[key]

    def __iter__(self) -> Iterator[ua.NodeId]:
        return iter(self._others)

    def __len__(self) -> int:
        return len(self._others)


_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        # machines and jobs (OPC 40001-1, 40001-3, 10031-4)
        "MachineryBuildingBlocks": "The building blocks of the machine.",
        "JobManagement": "The job orders of the machine and their responses.",
        "JobOrderControl": "Receives job orders and lists them.",
        "JobOrderResults": "Provides the responses of job orders, and their events.",
        "JobOrderResponseList": "The response of each job order that has started.",
        "MaxDownloadableJobOrders": "The most job orders that the machine stores; 65535: no limit.",
        "CurrentState": "The current state.",
        "Id": "The NodeId of the current state.",
        "Store": "Store a job order; it may not start yet.",
        "StoreAndStart": "Store a job order that may start.",
        "Start": "Allow a stored job order to start.",
        "RevokeStart": "Withdraw the permission to start.",
        "Update": "Replace a job order that has not started.",
        "Pause": "Interrupt a running job.",
        "Resume": "Continue an interrupted job.",
        "Stop": "End a job; it is not completed.",
        "Abort": "Abort a job in any state before its end.",
        "Cancel": "Remove a job order that has not started.",
        "Clear": "Remove a job order that has ended, with its response.",
        "RequestJobResponseByJobOrderID": "Return the response of one job order.",
        "RequestJobResponseByJobOrderState": "Return the responses of the job orders in a state.",
        # types of our own
        "JobOrderStatusEventType": "A job order has changed its state.",
        "RunningChartType": "A running job: its recipe as a sequential function chart.",
        "ChartStepType": "A step of a running chart.",
        "ChartActionType": "An action of a step of a running chart.",
        "RunningCharts": "The jobs that run on the machine now.",
        "Steps": "The steps of the chart.",
        "<Step>": "A step of the chart.",
        "Actions": "The actions of all steps of the chart.",
        "<Action>": "An action of a step.",
        "GatewayType": "The state of a gateway with its store and equipment.",
        "EquipmentType": "The state of one piece of equipment.",
        "Gateway": "The state of this gateway.",
        "Equipment": "The equipment of the gateway.",
        "<Name>": "A piece of equipment.",
        "EnterPromptType": "A question to the people at the station that asks for values.",
        "FlowType": "A flow: cyclic work next to the jobs.",
        "Flows": "The flows of the store.",
        "<Flow>": "A flow.",
        "MaintenanceType": "The maintenance mode of a gateway.",
        "Maintenance": "The maintenance mode: while it is on, no work is started.",
        "MachineryItemState": "Whether the machine works (OPC 40001-1, 12.2).",
        "MachineryOperationMode": "What the machine is used for (OPC 40001-1, 12.3).",
    }
)


def describe(name: str, otherwise: str = "") -> ua.LocalizedText:
    """Return the description of a node by its browse name; `otherwise` for a name chosen by a site."""
    return ua.LocalizedText(_TEXTS.get(name) or official_text(name) or otherwise, "en")
