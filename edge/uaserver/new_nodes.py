"""Adds nodes and references to the address space, as the services of OPC 10000-4, 5.8 do, for items that are correct.

Instances of nodes of the standard are left out of the prepared node sets until they are served.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData

from edge.foundation.errors import Defect
from edge.foundation.text import Text
from edge.uaserver.node_parts import HAS_COMPONENT, reference_to, reference_to_type, scalar, shared_value

_A: Final = ua.AttributeIds
_T: Final = ua.VariantType
_HAS_TYPE_DEFINITION: Final = ua.NodeId(ua.ObjectIds.HasTypeDefinition)
_TEXTS: Final = (
    (_A.Description, "Description", _T.LocalizedText),
    (_A.DisplayName, "DisplayName", _T.LocalizedText),
)
_OF_EVERY_CLASS: Final = (
    (_A.UserWriteMask, "UserWriteMask", _T.UInt32),
    (_A.WriteMask, "WriteMask", _T.UInt32),
)
_ATTRIBUTES: Final[Mapping[ua.NodeClass, tuple[tuple[ua.AttributeIds, str, ua.VariantType], ...]]] = MappingProxyType(
    {
        ua.NodeClass.Object: (*_OF_EVERY_CLASS, (_A.EventNotifier, "EventNotifier", _T.Byte)),
        ua.NodeClass.DataType: (*_OF_EVERY_CLASS, (_A.IsAbstract, "IsAbstract", _T.Boolean)),
        ua.NodeClass.ObjectType: (*_OF_EVERY_CLASS, (_A.IsAbstract, "IsAbstract", _T.Boolean)),
        ua.NodeClass.Method: (
            *_OF_EVERY_CLASS,
            (_A.Executable, "Executable", _T.Boolean),
            (_A.UserExecutable, "UserExecutable", _T.Boolean),
        ),
        ua.NodeClass.Variable: (
            *_OF_EVERY_CLASS,
            (_A.AccessLevel, "AccessLevel", _T.Byte),
            (_A.DataType, "DataType", _T.NodeId),
            (_A.Historizing, "Historizing", _T.Boolean),
            (_A.MinimumSamplingInterval, "MinimumSamplingInterval", _T.Double),
            (_A.UserAccessLevel, "UserAccessLevel", _T.Byte),
            (_A.ValueRank, "ValueRank", _T.Int32),
        ),
    }
)
"""The scalar attributes of each node class, without texts (OPC 10000-3, 5)."""


def add_node(aspace: AddressSpace, item: ua.AddNodesItem) -> ua.NodeId:
    """Add a node below its parent and return its NodeId. Raises Defect when it exists or its parent does not."""
    attributes = attributes_of(item)
    if item.NodeClass is ua.NodeClass.Variable:
        attributes[_A.Value] = value_attribute(ua.Variant(item.NodeAttributes.Value))
    definition = None if item.TypeDefinition.is_null() else reference_to_definition(aspace, item)
    place = Place(item.RequestedNewNodeId, item.ParentNodeId, item.ReferenceTypeId, item.BrowseName)
    return place_node(aspace, place, attributes, definition)


class Place(NamedTuple):
    """The place of a new node: its NodeId, its parent, the type of the reference from there, its browse name."""

    node_id: ua.NodeId
    parent: ua.NodeId
    reference: ua.NodeId
    browse_name: ua.QualifiedName


def place_node(
    aspace: AddressSpace,
    place: Place,
    attributes: Mapping[ua.AttributeIds, AttributeValue],
    definition: ua.ReferenceDescription | None,
) -> ua.NodeId:
    """Add a node with these attributes and the reference to its type. Raises Defect as `add_node`."""
    parent = aspace.get(place.parent)
    if parent is None or place.node_id in aspace:
        raise Defect(
            Text.of("{node_id} exists, or its parent {parent} does not", node_id=place.node_id, parent=place.parent)
        )
    node = NodeData(place.node_id)
    node.attributes = {
        _A.NodeId: scalar(place.node_id, _T.NodeId),
        _A.BrowseName: scalar(place.browse_name, _T.QualifiedName),
        **attributes,
    }
    node.references.append(reference_to(parent, place.reference, is_forward=False))
    if definition:
        node.references.append(definition)
    aspace[place.node_id] = node
    parent.references.append(reference_to(node, place.reference))
    return place.node_id


def add_reference(aspace: AddressSpace, source: ua.NodeId, reference: ua.NodeId, target: ua.NodeId) -> None:
    """Add a reference between two nodes, in both directions."""
    aspace[source].references.append(reference_to(aspace[target], reference))
    aspace[target].references.append(reference_to(aspace[source], reference, is_forward=False))


def value_attribute(value: ua.Variant) -> AttributeValue:
    """Return the Value of a new variable, as of now."""
    now = datetime.now(UTC)
    return AttributeValue(ua.DataValue(value, SourceTimestamp=now, ServerTimestamp=now))


def attributes_of(item: ua.AddNodesItem) -> dict[ua.AttributeIds, AttributeValue]:
    """Return the attributes of a node except NodeId, BrowseName and Value."""
    given = item.NodeAttributes
    found = {_A.NodeClass: AttributeValue(shared_value(item.NodeClass, _T.Int32))}
    found |= {value: scalar(getattr(given, name), kind) for value, name, kind in _TEXTS}
    for element, name, kind in _ATTRIBUTES[item.NodeClass]:
        found[element] = AttributeValue(shared_value(getattr(given, name), kind))
    if item.NodeClass is ua.NodeClass.Variable:
        dimensions = ua.Variant(given.ArrayDimensions, _T.UInt32, is_array=True)
        found[_A.ArrayDimensions] = AttributeValue(ua.DataValue(dimensions))
    return found


def reference_to_definition(aspace: AddressSpace, item: ua.AddNodesItem) -> ua.ReferenceDescription:
    """Return the reference from an object or a variable to its type."""
    if item.TypeDefinition.NamespaceIndex:
        return reference_to(aspace[item.TypeDefinition], _HAS_TYPE_DEFINITION)
    is_variable = item.NodeClass is ua.NodeClass.Variable
    return reference_to_type(item.TypeDefinition, ua.NodeClass.VariableType if is_variable else ua.NodeClass.ObjectType)


_HAS_PROPERTY: Final = ua.NodeId(ua.ObjectIds.HasProperty)
_PROPERTY_TYPE: Final = ua.NodeId(ua.ObjectIds.PropertyType)


def standard_id(name: str) -> ua.NodeId:
    """Return the NodeId of a node of namespace 0 by its symbolic name."""
    return ua.NodeId(getattr(ua.ObjectIds, name))


def standard_object(name: str, parent: ua.NodeId, type_name: str, description: str) -> ua.AddNodesItem:
    """Return the request for an object."""
    asked = standard_item(name, parent, HAS_COMPONENT, ua.NodeClass.Object, ua.ObjectAttributes(), description)
    asked.TypeDefinition = standard_id(type_name)
    return asked


def standard_property(
    name: str, parent: ua.NodeId, value: ua.Variant, description: str, data_type: int | None = None
) -> ua.AddNodesItem:
    """Return the request for a property that clients read; without `data_type` it has that of its value."""
    attributes = ua.VariableAttributes()
    attributes.DataType = ua.NodeId(data_type or value.VariantType.value)
    attributes.ValueRank = ua.ValueRank.OneDimension if value.is_array else ua.ValueRank.Scalar
    attributes.ArrayDimensions = [0] if value.is_array else None
    attributes.Value = value
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    asked = standard_item(name, parent, _HAS_PROPERTY, ua.NodeClass.Variable, attributes, description)
    asked.TypeDefinition = _PROPERTY_TYPE
    return asked


def standard_item(
    name: str, parent: ua.NodeId, reference: ua.NodeId, node_class: ua.NodeClass, attributes: Any, description: str
) -> ua.AddNodesItem:
    """Return the request for a node; its browse name is the last part of its symbolic name."""
    shown = name.rpartition("_")[2]
    attributes.DisplayName = ua.LocalizedText(shown)
    attributes.Description = ua.LocalizedText(description, "en")
    return ua.AddNodesItem(
        RequestedNewNodeId=standard_id(name),
        BrowseName=ua.QualifiedName(shown),
        NodeClass=node_class,
        ParentNodeId=parent,
        ReferenceTypeId=reference,
        NodeAttributes=attributes,
    )
