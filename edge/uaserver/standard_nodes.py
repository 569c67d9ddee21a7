"""Builds instances of the standard's own nodes, which the prepared node sets leave out until they are served."""

from typing import Any, Final

from asyncua import ua

from edge.uaserver.node_parts import HAS_COMPONENT

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
