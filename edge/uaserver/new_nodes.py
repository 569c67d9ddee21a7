"""Adds nodes and references to the address space, as the services of OPC 10000-4, 5.8 do, for items that are correct.

The services of asyncua check each item and load its type node, which takes a tenth of the start.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData

from edge.errors import Defect

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
    node_id = item.RequestedNewNodeId
    parent = aspace.get(item.ParentNodeId)
    if parent is None or node_id in aspace:
        raise Defect(f"{node_id} exists, or its parent {item.ParentNodeId} does not")
    node = NodeData(node_id)
    node.attributes = {
        _A.NodeId: held(node_id, _T.NodeId),
        _A.BrowseName: held(item.BrowseName, _T.QualifiedName),
        _A.NodeClass: AttributeValue(_shared(item.NodeClass, _T.Int32)),
        **_attributes(item),
    }
    node.references.append(_reference_to(parent, item.ReferenceTypeId, is_forward=False))
    if not item.TypeDefinition.is_null():
        node.references.append(_type_reference(aspace, item.TypeDefinition, item.NodeClass))
    aspace[node_id] = node
    parent.references.append(_reference_to(node, item.ReferenceTypeId, is_forward=True))
    return node_id


def add_reference(aspace: AddressSpace, source: ua.NodeId, reference: ua.NodeId, target: ua.NodeId) -> None:
    """Add a reference between two nodes, in both directions."""
    aspace[source].references.append(_reference_to(aspace[target], reference, is_forward=True))
    aspace[target].references.append(_reference_to(aspace[source], reference, is_forward=False))


def _attributes(item: ua.AddNodesItem) -> dict[ua.AttributeIds, AttributeValue]:
    given = item.NodeAttributes
    found = {each: held(getattr(given, name), kind) for each, name, kind in _TEXTS}
    for each, name, kind in _ATTRIBUTES[item.NodeClass]:
        found[each] = AttributeValue(_shared(getattr(given, name), kind))
    if item.NodeClass is ua.NodeClass.Variable:
        dimensions = ua.Variant(given.ArrayDimensions, _T.UInt32, is_array=True)
        found[_A.ArrayDimensions] = AttributeValue(ua.DataValue(dimensions))
        now = datetime.now(UTC)
        value = ua.DataValue(ua.Variant(given.Value), SourceTimestamp=now, ServerTimestamp=now)
        found[_A.Value] = AttributeValue(value)
    return found


def held(value: Any, kind: ua.VariantType) -> AttributeValue:
    """Return a scalar value as the attribute of a node."""
    return AttributeValue(ua.DataValue(ua.Variant(value, kind)))


@lru_cache(maxsize=256, typed=True)
def _shared(value: int | ua.NodeId, kind: ua.VariantType) -> ua.DataValue:
    """Return a value that many nodes have: they share one object."""
    return ua.DataValue(ua.Variant(value, kind))


def _reference_to(node: NodeData, reference: ua.NodeId, *, is_forward: bool) -> ua.ReferenceDescription:
    name, shown, node_class = (
        node.attributes[each].value.Value.Value for each in (_A.BrowseName, _A.DisplayName, _A.NodeClass)
    )
    types = (each.NodeId for each in node.references if each.IsForward and each.ReferenceTypeId == _HAS_TYPE_DEFINITION)
    has_type = node_class in {ua.NodeClass.Object, ua.NodeClass.Variable}
    type_id = next(types, ua.NodeId()) if has_type else ua.NodeId()
    return ua.ReferenceDescription(reference, is_forward, node.nodeid, name, shown, node_class, type_id)


def _type_reference(aspace: AddressSpace, type_id: ua.NodeId, of_instance: ua.NodeClass) -> ua.ReferenceDescription:
    if not type_id.NamespaceIndex:
        is_variable = of_instance is ua.NodeClass.Variable
        return _standard_type(type_id.Identifier, ua.NodeClass.VariableType if is_variable else ua.NodeClass.ObjectType)
    return _reference_to(aspace[type_id], _HAS_TYPE_DEFINITION, is_forward=True)


@cache
def _standard_type(number: int, node_class: ua.NodeClass) -> ua.ReferenceDescription:
    """Return the reference to a type of namespace 0 without its node, which can have hundreds of references."""
    name = ua.ObjectIdNames[number]
    return ua.ReferenceDescription(
        _HAS_TYPE_DEFINITION,
        True,  # noqa: FBT003
        ua.NodeId(number),
        ua.QualifiedName(name),
        ua.LocalizedText(name),
        node_class,
    )
