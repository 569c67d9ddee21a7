"""Builds the nodes of a machine: its jobs and their methods (OPC 40001-1, 40001-3, 10031-4).

Objects / Machines / <scope> / Identification
/ MachineryBuildingBlocks / JobManagement / JobOrderControl
/ JobOrderResults
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from asyncua import ua
from asyncua.server.address_space import AttributeValue
from asyncua.server.internal_server import InternalServer
from msgspec import Struct

from edge.model.acceptance import ResourceKind
from edge.model.job_state import METHODS, RESPONSE_METHODS, SUBSTATE_MACHINE
from edge.uaserver.chart_types import RETURN_STATUS
from edge.uaserver.declarations import (
    IDENTIFICATION_TYPE,
    ITEM_STATE_TYPE,
    JOB_MANAGEMENT_TYPE,
    NAMESPACE_METADATA_TYPE,
    OPERATION_MODE_TYPE,
    RECEIVER_TYPE,
    Declaration,
    Declarations,
    member_references,
    renamed,
)
from edge.uaserver.events import HAS_NOTIFIER, MACHINES, SERVER
from edge.uaserver.intervention_methods import INTERVENTION_METHODS
from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import Place, add_node, add_reference, place_node, value_attribute
from edge.uaserver.node_parts import HAS_COMPONENT, describe, scalar
from edge.uaserver.own_types import add_nodes, method_items

JOB_ORDER_STATUS_EVENT = ua.NodeId("JobOrderStatusEventType", Namespace.TYPES)

_PROVIDER_TYPE = ua.NodeId(1003, Namespace.ISA95)
_ABSTRACT_EVENT_TYPE = ua.NodeId(1006, Namespace.ISA95)

_SERVER_NAMESPACES = ua.NodeId(ua.ObjectIds.Server_Namespaces)

_ORGANIZES = ua.NodeId(ua.ObjectIds.Organizes)
_HAS_ADD_IN = ua.NodeId(ua.ObjectIds.HasAddIn)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_GENERATES_EVENT = ua.NodeId(ua.ObjectIds.GeneratesEvent)
_FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
_BASE_OBJECT_TYPE = ua.NodeId(ua.ObjectIds.BaseObjectType)

_RESOURCES: Mapping[ResourceKind, str] = MappingProxyType(
    {
        ResourceKind.EQUIPMENT: "EquipmentID",
        ResourceKind.MATERIAL_CLASS: "MaterialClassID",
        ResourceKind.MATERIAL_DEFINITION: "MaterialDefinitionID",
        ResourceKind.PERSONNEL: "PersonnelID",
        ResourceKind.PHYSICAL_ASSET: "PhysicalAssetID",
    }
)


class MachineDescription(Struct, frozen=True):
    """A machine in the address space: one scope of the station; 65535 job orders mean no limit."""

    scope: str
    max_downloadable_job_orders: int = 65535


class Nameplate(Struct, frozen=True):
    """The mandatory values of MachineIdentificationType (OPC 40001-1, 8.4); the URI is unique worldwide."""

    manufacturer: str
    serial_number: str
    product_instance_uri: str


class MachineNodes(Struct, frozen=True):
    """The nodes of a machine that are read, written or called: its lists, its values, its objects with methods.

    A client can call a method by two NodeIds, its own and that of the type (OPC 10000-4, 5.12.2): `methods` maps both
    to the name, for each object.
    """

    machine: ua.NodeId
    building_blocks: ua.NodeId
    job_order_list: ua.NodeId
    work_master: ua.NodeId
    job_order_response_list: ua.NodeId
    job_order_results: ua.NodeId
    allowed: Mapping[ResourceKind, ua.NodeId]
    max_job_orders: ua.NodeId
    methods: Mapping[ua.NodeId, Mapping[ua.NodeId, str]]


def add_event_type(iserver: InternalServer) -> None:
    """Add the event type of the job events, as the official one is abstract."""
    attributes = ua.ObjectTypeAttributes()
    attributes.DisplayName = ua.LocalizedText("JobOrderStatusEventType")
    attributes.Description = describe("JobOrderStatusEventType")
    attributes.IsAbstract = False
    item = ua.AddNodesItem(
        RequestedNewNodeId=JOB_ORDER_STATUS_EVENT,
        BrowseName=ua.QualifiedName("JobOrderStatusEventType", Namespace.TYPES),
        NodeClass=ua.NodeClass.ObjectType,
        ParentNodeId=_ABSTRACT_EVENT_TYPE,
        ReferenceTypeId=_HAS_SUBTYPE,
        NodeAttributes=attributes,
    )
    add_node(iserver.aspace, item)


def add_namespace_metadata(
    iserver: InternalServer, declared: Declarations, uri: str, version: str, published: datetime, *, is_static: bool
) -> None:
    """Add the metadata of an own namespace (OPC 10000-5, 6.3.13); `is_static`: all servers have the same nodes."""
    values = {
        "NamespaceUri": ua.Variant(uri, ua.VariantType.String),
        "NamespaceVersion": ua.Variant(version, ua.VariantType.String),
        "NamespacePublicationDate": ua.Variant(published, ua.VariantType.DateTime),
        "IsNamespaceSubset": ua.Variant(False, ua.VariantType.Boolean),
        "StaticNodeIdTypes": ua.Variant([ua.IdType.String] if is_static else [], ua.VariantType.Int32, is_array=True),
        "StaticNumericNodeIdRange": ua.Variant([], ua.VariantType.String, is_array=True),
        "StaticStringNodeIdPattern": ua.Variant(".*" if is_static else "", ua.VariantType.String),
    }
    metadata = renamed(declared[NAMESPACE_METADATA_TYPE], ua.QualifiedName(uri, Namespace.MACHINES))
    place = Place(_node_id(uri), _SERVER_NAMESPACES, HAS_COMPONENT, metadata.browse_name)
    _instantiate(iserver, metadata, place, values)


def make_notifier_of_machines(iserver: InternalServer) -> None:
    """Connect the folder of all machines to the root of the notifiers (OPC 10000-3, 7.17)."""
    add_reference(iserver.aspace, SERVER, HAS_NOTIFIER, MACHINES)


async def add_machine(
    iserver: InternalServer, declared: Declarations, machine: MachineDescription, nameplate: Nameplate
) -> MachineNodes:
    """Add a machine with all nodes below it. Their NodeIds depend on the scope only."""
    name = ua.QualifiedName(machine.scope, Namespace.MACHINES)
    root = Place(_node_id(machine.scope), MACHINES, _ORGANIZES, name)
    _add_object(iserver, root, _BASE_OBJECT_TYPE)
    identification = _instantiate_below(
        iserver,
        declared[IDENTIFICATION_TYPE],
        root,
        {
            "Manufacturer": ua.Variant(ua.LocalizedText(nameplate.manufacturer), ua.VariantType.LocalizedText),
            "SerialNumber": ua.Variant(nameplate.serial_number, ua.VariantType.String),
            "ProductInstanceUri": ua.Variant(nameplate.product_instance_uri, ua.VariantType.String),
        },
    )
    blocks = _below(root, HAS_COMPONENT, ua.QualifiedName("MachineryBuildingBlocks", Namespace.MACHINERY))
    _add_object(iserver, blocks, _FOLDER_TYPE)
    add_reference(iserver.aspace, blocks.node_id, _HAS_ADD_IN, identification)
    for state_machine in (ITEM_STATE_TYPE, OPERATION_MODE_TYPE):
        _instantiate_below(iserver, declared[state_machine], blocks, {})
    most = ua.Variant(machine.max_downloadable_job_orders, ua.VariantType.UInt16)
    management = _instantiate_below(
        iserver, declared[JOB_MANAGEMENT_TYPE], blocks, {"MaxDownloadableJobOrders": most}
    ).Identifier

    control, results = f"{management}/JobOrderControl", f"{management}/JobOrderResults"
    add_reference(iserver.aspace, _node_id(results), _GENERATES_EVENT, JOB_ORDER_STATUS_EVENT)
    for above, below in ((MACHINES, root.node_id), (root.node_id, _node_id(results))):
        add_reference(iserver.aspace, above, HAS_NOTIFIER, below)
    for node_id in (root.node_id, _node_id(results)):
        _enable_event_subscription(iserver, node_id)
    await _invalidate_current_state(iserver, control)
    decide = {_node_id(control, name): name for name in INTERVENTION_METHODS}
    for node_id, name in decide.items():
        description, arguments = INTERVENTION_METHODS[name]
        add_nodes(iserver, method_items(node_id, _node_id(control), description, arguments, RETURN_STATUS))
    return MachineNodes(
        machine=root.node_id,
        building_blocks=blocks.node_id,
        job_order_list=_node_id(control, "JobOrderList"),
        work_master=_node_id(control, "WorkMaster"),
        job_order_response_list=_node_id(results, "JobOrderResponseList"),
        job_order_results=_node_id(results),
        allowed={kind: _node_id(control, name) for kind, name in _RESOURCES.items()},
        max_job_orders=_node_id(control, "MaxDownloadableJobOrders"),
        methods={
            _node_id(control): _methods(iserver, control, RECEIVER_TYPE, METHODS) | decide,
            _node_id(results): _methods(iserver, results, _PROVIDER_TYPE, RESPONSE_METHODS),
        },
    )


def _methods(iserver: InternalServer, path: str, type_id: ua.NodeId, names: Sequence[str]) -> dict[ua.NodeId, str]:
    own = {_node_id(path, name): name for name in names}
    of_type = {member.NodeId: member.BrowseName.Name for member in member_references(iserver.aspace[type_id])}
    return own | {node_id: name for node_id, name in of_type.items() if name in names}


def _enable_event_subscription(iserver: InternalServer, node_id: ua.NodeId) -> None:
    notifier = ua.Variant(1 << ua.EventNotifier.SubscribeToEvents, ua.VariantType.Byte)
    iserver.aspace[node_id].attributes[ua.AttributeIds.EventNotifier].value = ua.DataValue(notifier)


async def _invalidate_current_state(iserver: InternalServer, control: str) -> None:
    # The receiver and its sub-state machines describe the states of a job and have none (10031-4, 6.2.1.2).
    bad = ua.DataValue(ua.Variant(), StatusCode=ua.StatusCode(ua.StatusCodes.BadStateNotActive))
    text = ua.LocalizedText("Bad: the state machine describes jobs and is in no state itself.", "en")
    for machine in (control, *(f"{control}/{name}" for name in SUBSTATE_MACHINE.values())):
        for node_id in (_node_id(machine, "CurrentState"), _node_id(machine, "CurrentState", "Id")):
            (await iserver.aspace.write_attribute_value(node_id, ua.AttributeIds.Value, bad)).check()
            iserver.aspace[node_id].attributes[ua.AttributeIds.Description] = scalar(text, ua.VariantType.LocalizedText)


def _instantiate_below(
    iserver: InternalServer, declaration: Declaration, place: Place, values: Mapping[str, ua.Variant]
) -> ua.NodeId:
    """Add an instance as an add-in (OPC 10000-3, 7.16); values as in `_instantiate`."""
    below = _below(place, _HAS_ADD_IN, declaration.browse_name)
    return _instantiate(iserver, declaration, below, values)


def _instantiate(
    iserver: InternalServer, declaration: Declaration, place: Place, values: Mapping[str, ua.Variant]
) -> ua.NodeId:
    """Add an instance with all nested members.

    `values` are the values of variables by name; other variables keep the value of their declaration.
    """
    attributes = {attribute: AttributeValue(value) for attribute, value in declaration.attributes.items()}
    if declaration.value is not None:
        attributes[ua.AttributeIds.Value] = value_attribute(values.get(place.browse_name.Name, declaration.value))
    place_node(iserver.aspace, place, attributes, declaration.type_definition)
    for member in declaration.members:
        _instantiate(iserver, member, _below(place, member.reference, member.browse_name), values)
    return place.node_id


def _below(place: Place, reference: ua.NodeId, name: ua.QualifiedName) -> Place:
    return Place(_node_id(place.node_id.Identifier, name.Name), place.node_id, reference, name)


def _add_object(iserver: InternalServer, place: Place, type_definition: ua.NodeId) -> None:
    attributes = ua.ObjectAttributes()
    attributes.DisplayName = ua.LocalizedText(place.browse_name.Name)
    attributes.Description = describe(place.browse_name.Name, "A machine whose jobs this gateway runs.")
    item = ua.AddNodesItem(
        RequestedNewNodeId=place.node_id,
        BrowseName=place.browse_name,
        NodeClass=ua.NodeClass.Object,
        ParentNodeId=place.parent,
        ReferenceTypeId=place.reference,
        NodeAttributes=attributes,
        TypeDefinition=type_definition,
    )
    add_node(iserver.aspace, item)


def _node_id(*path: str) -> ua.NodeId:
    return ua.NodeId("/".join(path), Namespace.MACHINES)
