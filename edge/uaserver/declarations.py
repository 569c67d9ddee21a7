"""What instances of types consist of, read from the nodes of the types (OPC 10000-3, 6.3.3 and 6.4).

It replaces `instantiate` of asyncua, which has four limits. It ignores the type of nested declarations (eleven methods
would be missing). It creates all optional members or none. It leaves mandatory variables empty. It does not support
HasAddIn and Organizes.

Reading the declarations of a machine loads three hundred type nodes: the installation does it, and the cache of the
types contains the result.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import AddressSpace, NodeData
from msgspec import Struct, structs

from edge.foundation.errors import Defect
from edge.foundation.text import Text
from edge.model.job_state import METHODS, SUBSTATE_MACHINE
from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import attributes_of, reference_to_definition
from edge.uaserver.node_parts import HAS_COMPONENT, describe
from edge.uaserver.own_types import MANDATORY

IDENTIFICATION_TYPE = ua.NodeId(1012, Namespace.MACHINERY)
ITEM_STATE_TYPE = ua.NodeId(1002, Namespace.MACHINERY)
OPERATION_MODE_TYPE = ua.NodeId(1008, Namespace.MACHINERY)
JOB_MANAGEMENT_TYPE = ua.NodeId(1003, Namespace.JOBS)
RECEIVER_TYPE = ua.NodeId(1002, Namespace.ISA95)
NAMESPACE_METADATA_TYPE = ua.NodeId(ua.ObjectIds.NamespaceMetadataType)
_INSTANCES: Mapping[ua.NodeId, ua.QualifiedName] = MappingProxyType(
    {
        IDENTIFICATION_TYPE: ua.QualifiedName("Identification", Namespace.DI),
        ITEM_STATE_TYPE: ua.QualifiedName("MachineryItemState", Namespace.MACHINERY),
        OPERATION_MODE_TYPE: ua.QualifiedName("MachineryOperationMode", Namespace.MACHINERY),
        JOB_MANAGEMENT_TYPE: ua.QualifiedName("JobManagement", Namespace.JOBS),
        # Its instances are named by the URI of their namespace.
        NAMESPACE_METADATA_TYPE: ua.QualifiedName("Metadata", Namespace.MACHINES),
    }
)
"""The browse name of an instance, by its type."""

_RECEIVER_SUBSTATES_TYPE = ua.NodeId(1008, Namespace.ISA95)
_HAS_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)
_HAS_ADD_IN = ua.NodeId(ua.ObjectIds.HasAddIn)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_HAS_INTERFACE = ua.NodeId(ua.ObjectIds.HasInterface)
_HAS_TYPE_DEFINITION = ua.NodeId(ua.ObjectIds.HasTypeDefinition)
_HAS_MODELLING_RULE = ua.NodeId(ua.ObjectIds.HasModellingRule)
_STRING = ua.NodeId(ua.ObjectIds.String)
_WITHOUT_MEMBERS = frozenset(
    ua.NodeId(element)
    for element in (ua.ObjectIds.BaseObjectType, ua.ObjectIds.BaseDataVariableType, ua.ObjectIds.PropertyType)
)
"""The types that nearly every node has: each has a hundred references (OPC 10000-5, 6.2 and 7)."""

_MEMBER_REFERENCES = frozenset({HAS_COMPONENT, _HAS_PROPERTY, _HAS_ADD_IN})

# The optional members of the types that every machine gets.
_OPTIONAL_MEMBERS = frozenset({*METHODS, *SUBSTATE_MACHINE.values(), "JobOrderResponseList"})

_ORDER: Mapping[str, int] = MappingProxyType({str(name): number for number, name in enumerate(METHODS, 1)})

# JobManagementType declares the receiver; the instance has its subtype with sub-states (OPC 10031-4, 6.2.5).
_INSTANCE_TYPES: Mapping[ua.NodeId, ua.NodeId] = MappingProxyType({RECEIVER_TYPE: _RECEIVER_SUBSTATES_TYPE})

_READ = 1 << ua.AccessLevel.CurrentRead


class Declaration(Struct, frozen=True):
    """A node of an instance: what it has in every instance, and the nodes below it."""

    browse_name: ua.QualifiedName
    reference: ua.NodeId
    """The type of the reference from its parent."""
    attributes: Mapping[ua.AttributeIds, ua.DataValue]
    """All except NodeId, BrowseName and Value."""
    value: ua.Variant | None
    """The value of a variable."""
    type_definition: ua.ReferenceDescription | None
    members: "tuple[Declaration, ...]"


Declarations = Mapping[ua.NodeId, Declaration]
"""What instances of a type consist of, by type."""


def declarations(aspace: AddressSpace) -> Declarations:
    """Return what instances consist of, for each type that this server instantiates."""
    return {value: _declare(aspace, value, ua.NodeId(), name) for value, name in _INSTANCES.items()}


def renamed(declaration: Declaration, name: ua.QualifiedName) -> Declaration:
    """Return the declaration of an instance with another name."""
    shown = ua.DataValue(ua.Variant(ua.LocalizedText(name.Name), ua.VariantType.LocalizedText))
    attributes = {**declaration.attributes, ua.AttributeIds.DisplayName: shown}
    return structs.replace(declaration, browse_name=name, attributes=attributes)


def member_references(node: NodeData) -> Iterator[ua.ReferenceDescription]:
    """Yield the references to the components, the properties and the add-ins of a node."""
    return (ref for ref in node.references if ref.IsForward and ref.ReferenceTypeId in _MEMBER_REFERENCES)


def _declare(
    aspace: AddressSpace, node_id: ua.NodeId, reference: ua.NodeId, browse_name: ua.QualifiedName
) -> Declaration:
    """Return the declaration of an instance of a type, or of an instance declaration, with all nested members."""
    source = aspace[node_id]
    item = ua.AddNodesItem(BrowseName=browse_name, ReferenceTypeId=reference)
    origins: tuple[NodeData, ...]
    match item_class := _value(source, ua.AttributeIds.NodeClass):
        case ua.NodeClass.ObjectType:
            item_class = ua.NodeClass.Object
            item.NodeAttributes = _object_attributes(source, browse_name)
            item.TypeDefinition = node_id
            origins = tuple(_with_supertypes(aspace, node_id))
        case ua.NodeClass.Object:
            item.NodeAttributes = _object_attributes(source, browse_name)
            found = next(_targets(source, _HAS_TYPE_DEFINITION))
            item.TypeDefinition = _INSTANCE_TYPES.get(found, found)
            origins = (source, *_with_supertypes(aspace, item.TypeDefinition))
        case ua.NodeClass.Variable:
            item.NodeAttributes = _variable_attributes(source)
            item.TypeDefinition = next(_targets(source, _HAS_TYPE_DEFINITION))
            origins = (source, *_with_supertypes(aspace, item.TypeDefinition))
        case ua.NodeClass.Method:
            item.NodeAttributes = _method_attributes(source)
            origins = (source,)
        case other:
            raise Defect(Text.of("{node_id} of class {other} cannot be instantiated", node_id=node_id, other=other))
    item.NodeClass = item_class
    members: dict[str, Declaration] = {}
    for member in (member for origin in origins for member in member_references(origin)):
        name = member.BrowseName.Name
        if name not in members and _is_wanted(aspace[member.NodeId], name):
            members[name] = _declare(aspace, member.NodeId, member.ReferenceTypeId, member.BrowseName)
    return Declaration(
        browse_name,
        reference,
        {name: held.value for name, held in attributes_of(item).items()},
        item.NodeAttributes.Value if item_class is ua.NodeClass.Variable else None,
        None if item.TypeDefinition.is_null() else reference_to_definition(aspace, item),
        # Clients show them in this order: methods by their use, after all else.
        tuple(sorted(members.values(), key=lambda member: _ORDER.get(member.browse_name.Name, 0))),
    )


def _is_wanted(member: NodeData, name: str) -> bool:
    rule = next(_targets(member, _HAS_MODELLING_RULE), None)
    return rule == MANDATORY or (rule is not None and name in _OPTIONAL_MEMBERS)


def _with_supertypes(aspace: AddressSpace, type_id: ua.NodeId) -> Iterator[NodeData]:
    """Yield a type, then its interfaces, then its supertypes; each with its own interfaces and supertypes.

    Standard types without members are left out.
    """
    if type_id in _WITHOUT_MEMBERS:
        return
    node = aspace[type_id]
    yield node
    for interface in _targets(node, _HAS_INTERFACE):
        yield from _with_supertypes(aspace, interface)
    # A type has one supertype, added with the type; the references of its many instances follow and are not read.
    supertype = next(_targets(node, _HAS_SUBTYPE, forward=False), None)
    if supertype is not None:
        yield from _with_supertypes(aspace, supertype)


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


def _variable_attributes(source: NodeData) -> ua.VariableAttributes:
    attributes = ua.VariableAttributes()
    attributes.DisplayName = _value(source, ua.AttributeIds.DisplayName)
    attributes.Description = _description(source, attributes.DisplayName.Text)
    attributes.DataType = _value(source, ua.AttributeIds.DataType)
    attributes.ValueRank = _value(source, ua.AttributeIds.ValueRank)
    attributes.ArrayDimensions = _value(source, ua.AttributeIds.ArrayDimensions)
    attributes.AccessLevel = attributes.UserAccessLevel = _READ
    held = source.attributes[ua.AttributeIds.Value].value
    attributes.Value = (held and held.Value) or ua.Variant()
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
