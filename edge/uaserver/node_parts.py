"""Builds the parts of nodes: attributes, and references with the name and the class of their target."""

from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

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
