"""Builds the nodes of a machine: its jobs and their methods (OPC 40001-1, 40001-3, 10031-4).

    Objects / Machines / <scope> / Identification
                                 / MachineryBuildingBlocks / JobManagement / JobOrderControl
                                                                           / JobOrderResults

This module replaces `instantiate` of asyncua, which has four limits. It ignores the type of nested declarations (eleven
methods would be missing). It creates all optional members or none. It leaves mandatory variables empty. It does not
support HasAddIn and Organizes.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import NodeData
from asyncua.server.internal_server import InternalServer
from msgspec import Struct

from edge.errors import Defect
from edge.model.acceptance import ResourceKind
from edge.model.job_state import METHODS, RESPONSE_METHODS, SUBSTATE_MACHINE
from edge.uaserver.chart_types import RETURN_STATUS
from edge.uaserver.descriptions import describe
from edge.uaserver.intervention_methods import INTERVENTION_METHODS
from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import add_node, add_reference
from edge.uaserver.own_types import HAS_COMPONENT, MANDATORY, NO_INSTANT, add_nodes, method_items

JOB_ORDER_STATUS_EVENT = ua.NodeId("JobOrderStatusEventType", Namespace.TYPES)

_STATE_MACHINES: Mapping[str, ua.NodeId] = MappingProxyType(
    {
        "MachineryItemState": ua.NodeId(1002, Namespace.MACHINERY),
        "MachineryOperationMode": ua.NodeId(1008, Namespace.MACHINERY),
    }
)
_RECEIVER_TYPE = ua.NodeId(1002, Namespace.ISA95)
_RECEIVER_SUBSTATES_TYPE = ua.NodeId(1008, Namespace.ISA95)
_PROVIDER_TYPE = ua.NodeId(1003, Namespace.ISA95)
_ABSTRACT_EVENT_TYPE = ua.NodeId(1006, Namespace.ISA95)
_MACHINES = ua.NodeId(1001, Namespace.MACHINERY)
_IDENTIFICATION_TYPE = ua.NodeId(1012, Namespace.MACHINERY)
_JOB_MANAGEMENT_TYPE = ua.NodeId(1003, Namespace.JOBS)

_NAMESPACE_METADATA_TYPE = ua.NodeId(ua.ObjectIds.NamespaceMetadataType)
_SERVER_NAMESPACES = ua.NodeId(ua.ObjectIds.Server_Namespaces)

_ORGANIZES = ua.NodeId(ua.ObjectIds.Organizes)
_HAS_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)
_HAS_ADD_IN = ua.NodeId(ua.ObjectIds.HasAddIn)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_HAS_INTERFACE = ua.NodeId(ua.ObjectIds.HasInterface)
_HAS_TYPE_DEFINITION = ua.NodeId(ua.ObjectIds.HasTypeDefinition)
_HAS_MODELLING_RULE = ua.NodeId(ua.ObjectIds.HasModellingRule)
_GENERATES_EVENT = ua.NodeId(ua.ObjectIds.GeneratesEvent)
_HAS_NOTIFIER = ua.NodeId(ua.ObjectIds.HasNotifier)
_SERVER = ua.NodeId(ua.ObjectIds.Server)
_FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
_BASE_OBJECT_TYPE = ua.NodeId(ua.ObjectIds.BaseObjectType)
_STRING = ua.NodeId(ua.ObjectIds.String)
_WITHOUT_MEMBERS = frozenset(
    {_BASE_OBJECT_TYPE, ua.NodeId(ua.ObjectIds.BaseDataVariableType), ua.NodeId(ua.ObjectIds.PropertyType)}
)
"""The types that nearly every node has: each has a hundred references (OPC 10000-5, 6.2 and 7)."""

_MEMBER_REFERENCES = frozenset({HAS_COMPONENT, _HAS_PROPERTY, _HAS_ADD_IN})

# The optional members of the types that every machine gets.
_OPTIONAL_MEMBERS = frozenset({*METHODS, *SUBSTATE_MACHINE.values(), "JobOrderResponseList"})

# JobManagementType declares the receiver; the instance has its subtype with sub-states (OPC 10031-4, 6.2.5).
_INSTANCE_TYPES: Mapping[ua.NodeId, ua.NodeId] = MappingProxyType({_RECEIVER_TYPE: _RECEIVER_SUBSTATES_TYPE})

_RESOURCES: Mapping[ResourceKind, str] = MappingProxyType(
    {
        ResourceKind.EQUIPMENT: "EquipmentID",
        ResourceKind.MATERIAL_CLASS: "MaterialClassID",
        ResourceKind.MATERIAL_DEFINITION: "MaterialDefinitionID",
        ResourceKind.PERSONNEL: "PersonnelID",
        ResourceKind.PHYSICAL_ASSET: "PhysicalAssetID",
    }
)

_READ = 1 << ua.AccessLevel.CurrentRead


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


class _Placement(Struct, frozen=True):
    """The place of a new node: the path of its NodeId, its parent, the reference from the parent, its browse name."""

    path: str
    parent: ua.NodeId
    reference: ua.NodeId
    browse_name: ua.QualifiedName

    def below(self, parent: ua.NodeId, reference: ua.NodeId, browse_name: ua.QualifiedName) -> "_Placement":
        return _Placement(f"{self.path}/{browse_name.Name}", parent, reference, browse_name)

    def item(self, node_class: ua.NodeClass, attributes: ua.NodeAttributes) -> ua.AddNodesItem:
        return ua.AddNodesItem(
            RequestedNewNodeId=_node_id(self.path),
            BrowseName=self.browse_name,
            NodeClass=node_class,
            ParentNodeId=self.parent,
            ReferenceTypeId=self.reference,
            NodeAttributes=attributes,
        )


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
    iserver: InternalServer, uri: str, version: str = "", published: datetime = NO_INSTANT
) -> None:
    """Add the metadata of an own namespace (OPC 10000-5, 6.3.13); with a version, all servers have the same nodes."""
    is_static = bool(version)
    name = ua.QualifiedName(uri, Namespace.MACHINES)
    values = {
        "NamespaceUri": ua.Variant(uri, ua.VariantType.String),
        "NamespaceVersion": ua.Variant(version, ua.VariantType.String),
        "NamespacePublicationDate": ua.Variant(published, ua.VariantType.DateTime),
        "IsNamespaceSubset": ua.Variant(False, ua.VariantType.Boolean),  # noqa: FBT003
        "StaticNodeIdTypes": ua.Variant([ua.IdType.String] if is_static else [], ua.VariantType.Int32, is_array=True),
        "StaticNumericNodeIdRange": ua.Variant([], ua.VariantType.String, is_array=True),
        "StaticStringNodeIdPattern": ua.Variant(".*" if is_static else "", ua.VariantType.String),
    }
    _instantiate(iserver, _NAMESPACE_METADATA_TYPE, _Placement(uri, _SERVER_NAMESPACES, HAS_COMPONENT, name), values)


async def add_machine(iserver: InternalServer, machine: MachineDescription, nameplate: Nameplate) -> MachineNodes:
    """Add a machine with all nodes below it. Their NodeIds depend on the scope only."""
    place = _Placement(machine.scope, _MACHINES, _ORGANIZES, ua.QualifiedName(machine.scope, Namespace.MACHINES))
    root = _add_object(iserver, place, _BASE_OBJECT_TYPE)
    identification = _instantiate(
        iserver,
        _IDENTIFICATION_TYPE,
        place.below(root, _HAS_ADD_IN, ua.QualifiedName("Identification", Namespace.DI)),
        {
            "Manufacturer": ua.Variant(ua.LocalizedText(nameplate.manufacturer), ua.VariantType.LocalizedText),
            "SerialNumber": ua.Variant(nameplate.serial_number, ua.VariantType.String),
            "ProductInstanceUri": ua.Variant(nameplate.product_instance_uri, ua.VariantType.String),
        },
    )
    place = place.below(root, HAS_COMPONENT, ua.QualifiedName("MachineryBuildingBlocks", Namespace.MACHINERY))
    blocks = _add_object(iserver, place, _FOLDER_TYPE)
    add_reference(iserver.aspace, blocks, _HAS_ADD_IN, identification)
    for name, type_id in _STATE_MACHINES.items():
        _instantiate(
            iserver, type_id, place.below(blocks, _HAS_ADD_IN, ua.QualifiedName(name, Namespace.MACHINERY)), {}
        )
    place = place.below(blocks, _HAS_ADD_IN, ua.QualifiedName("JobManagement", Namespace.JOBS))
    most = ua.Variant(machine.max_downloadable_job_orders, ua.VariantType.UInt16)
    _instantiate(iserver, _JOB_MANAGEMENT_TYPE, place, {"MaxDownloadableJobOrders": most})

    control, results = f"{place.path}/JobOrderControl", f"{place.path}/JobOrderResults"
    add_reference(iserver.aspace, _node_id(results), _GENERATES_EVENT, JOB_ORDER_STATUS_EVENT)
    add_reference(iserver.aspace, _SERVER, _HAS_NOTIFIER, _node_id(results))
    _enable_event_subscription(iserver, _node_id(results))
    await _invalidate_current_state(iserver, control)
    decide = {_node_id(control, name): name for name in INTERVENTION_METHODS}
    for node_id, name in decide.items():
        description, arguments = INTERVENTION_METHODS[name]
        add_nodes(iserver, method_items(node_id, _node_id(control), description, arguments, RETURN_STATUS))
    return MachineNodes(
        machine=root,
        building_blocks=blocks,
        job_order_list=_node_id(control, "JobOrderList"),
        work_master=_node_id(control, "WorkMaster"),
        job_order_response_list=_node_id(results, "JobOrderResponseList"),
        job_order_results=_node_id(results),
        allowed={kind: _node_id(control, name) for kind, name in _RESOURCES.items()},
        max_job_orders=_node_id(control, "MaxDownloadableJobOrders"),
        methods={
            _node_id(control): _methods(iserver, control, _RECEIVER_TYPE, METHODS) | decide,
            _node_id(results): _methods(iserver, results, _PROVIDER_TYPE, RESPONSE_METHODS),
        },
    )


def _methods(iserver: InternalServer, path: str, type_id: ua.NodeId, names: Sequence[str]) -> dict[ua.NodeId, str]:
    own = {_node_id(path, name): name for name in names}
    of_type = {member.NodeId: member.BrowseName.Name for member in _members(iserver.aspace[type_id])}
    return own | {node_id: name for node_id, name in of_type.items() if name in names}


def _enable_event_subscription(iserver: InternalServer, node_id: ua.NodeId) -> None:
    notifier = ua.Variant(1 << ua.EventNotifier.SubscribeToEvents, ua.VariantType.Byte)
    iserver.aspace[node_id].attributes[ua.AttributeIds.EventNotifier].value = ua.DataValue(notifier)


async def _invalidate_current_state(iserver: InternalServer, control: str) -> None:
    # The receiver and its sub-state machines describe the states of a job and have none (10031-4, 6.2.1.2).
    bad = ua.DataValue(ua.Variant(), StatusCode=ua.StatusCode(ua.StatusCodes.BadStateNotActive))
    for machine in (control, *(f"{control}/{name}" for name in SUBSTATE_MACHINE.values())):
        for node_id in (_node_id(machine, "CurrentState"), _node_id(machine, "CurrentState", "Id")):
            (await iserver.aspace.write_attribute_value(node_id, ua.AttributeIds.Value, bad)).check()


def _instantiate(
    iserver: InternalServer, declaration: ua.NodeId, place: _Placement, values: Mapping[str, ua.Variant]
) -> ua.NodeId:
    """Add an instance of a type or of an instance declaration, with all nested members.

    `values` are the values of variables by name; other variables keep the value of their declaration.
    """
    source = iserver.aspace[declaration]
    origins: tuple[NodeData, ...]
    match _value(source, ua.AttributeIds.NodeClass):
        case ua.NodeClass.ObjectType:
            item = place.item(ua.NodeClass.Object, _object_attributes(source, place.browse_name))
            item.TypeDefinition = declaration
            origins = tuple(_with_supertypes(iserver, declaration))
        case ua.NodeClass.Object:
            item = place.item(ua.NodeClass.Object, _object_attributes(source, place.browse_name))
            declared = next(_targets(source, _HAS_TYPE_DEFINITION))
            item.TypeDefinition = _INSTANCE_TYPES.get(declared, declared)
            origins = (source, *_with_supertypes(iserver, item.TypeDefinition))
        case ua.NodeClass.Variable:
            given = values.get(place.browse_name.Name)
            item = place.item(ua.NodeClass.Variable, _variable_attributes(source, given))
            item.TypeDefinition = next(_targets(source, _HAS_TYPE_DEFINITION))
            origins = (source, *_with_supertypes(iserver, item.TypeDefinition))
        case ua.NodeClass.Method:
            item = place.item(ua.NodeClass.Method, _method_attributes(source))
            origins = (source,)
        case other:
            raise Defect(f"{declaration} of class {other} cannot be instantiated")
    node_id = add_node(iserver.aspace, item)
    there: set[str] = set()
    for member in (member for origin in origins for member in _members(origin)):
        name = member.BrowseName.Name
        if name not in there and _is_wanted(iserver.aspace[member.NodeId], name):
            there.add(name)
            below = place.below(node_id, member.ReferenceTypeId, member.BrowseName)
            _instantiate(iserver, member.NodeId, below, values)
    return node_id


def _members(node: NodeData) -> Iterator[ua.ReferenceDescription]:
    return (ref for ref in node.references if ref.IsForward and ref.ReferenceTypeId in _MEMBER_REFERENCES)


def _is_wanted(member: NodeData, name: str) -> bool:
    rule = next(_targets(member, _HAS_MODELLING_RULE), None)
    return rule == MANDATORY or (rule is not None and name in _OPTIONAL_MEMBERS)


def _with_supertypes(iserver: InternalServer, type_id: ua.NodeId) -> Iterator[NodeData]:
    """Yield a type, then its interfaces, then its supertypes; each with its own interfaces and supertypes.

    Standard types without members are left out.
    """
    if type_id in _WITHOUT_MEMBERS:
        return
    node = iserver.aspace[type_id]
    yield node
    for interface in _targets(node, _HAS_INTERFACE):
        yield from _with_supertypes(iserver, interface)
    # A type has one supertype, added with the type; the references of its many instances follow and are not read.
    supertype = next(_targets(node, _HAS_SUBTYPE, forward=False), None)
    if supertype is not None:
        yield from _with_supertypes(iserver, supertype)


def _targets(node: NodeData, reference_type: ua.NodeId, *, forward: bool = True) -> Iterator[ua.NodeId]:
    return (ref.NodeId for ref in node.references if ref.IsForward == forward and ref.ReferenceTypeId == reference_type)


def _value(node: NodeData, attribute: ua.AttributeIds) -> Any:
    held = node.attributes.get(attribute)
    return held.value.Value.Value if held and held.value and held.value.Value else None


def _description(source: NodeData, name: str) -> ua.LocalizedText:
    official = _value(source, ua.AttributeIds.Description)
    return official if official and official.Text else describe(name, "Metadata of a namespace.")


def _object_attributes(source: NodeData, browse_name: ua.QualifiedName) -> ua.ObjectAttributes:
    attributes = ua.ObjectAttributes()
    attributes.DisplayName = ua.LocalizedText(browse_name.Name)
    attributes.Description = _description(source, browse_name.Name)
    attributes.EventNotifier = _value(source, ua.AttributeIds.EventNotifier) or 0
    return attributes


def _variable_attributes(source: NodeData, given: ua.Variant | None) -> ua.VariableAttributes:
    attributes = ua.VariableAttributes()
    attributes.DisplayName = _value(source, ua.AttributeIds.DisplayName)
    attributes.Description = _description(source, attributes.DisplayName.Text)
    attributes.DataType = _value(source, ua.AttributeIds.DataType)
    attributes.ValueRank = _value(source, ua.AttributeIds.ValueRank)
    attributes.ArrayDimensions = _value(source, ua.AttributeIds.ArrayDimensions)
    attributes.AccessLevel = attributes.UserAccessLevel = _READ
    declared = source.attributes[ua.AttributeIds.Value].value
    attributes.Value = given or (declared and declared.Value) or ua.Variant()
    if attributes.Value.Value is None and attributes.ValueRank == ua.ValueRank.OneDimension:
        # An empty array has a data type; the null variant of the types has none.
        kind = ua.VariantType.String if attributes.DataType == _STRING else ua.VariantType.ExtensionObject
        attributes.Value = ua.Variant([], kind, is_array=True)
    return attributes


def _method_attributes(source: NodeData) -> ua.MethodAttributes:
    attributes = ua.MethodAttributes()
    attributes.DisplayName = _value(source, ua.AttributeIds.DisplayName)
    attributes.Description = _description(source, attributes.DisplayName.Text)
    attributes.Executable = True
    attributes.UserExecutable = False
    return attributes


def _add_object(iserver: InternalServer, place: _Placement, type_definition: ua.NodeId) -> ua.NodeId:
    attributes = ua.ObjectAttributes()
    attributes.DisplayName = ua.LocalizedText(place.browse_name.Name)
    attributes.Description = describe(place.browse_name.Name, "A machine whose jobs this gateway runs.")
    item = place.item(ua.NodeClass.Object, attributes)
    item.TypeDefinition = type_definition
    return add_node(iserver.aspace, item)


def _node_id(*path: str) -> ua.NodeId:
    return ua.NodeId("/".join(path), Namespace.MACHINES)
