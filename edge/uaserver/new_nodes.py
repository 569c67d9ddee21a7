"""Adds nodes and references to the address space, as the services of OPC 10000-4, 5.8 do, for items that are correct.

The services of asyncua check each item and load its type node, which takes a tenth of the start.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData

from edge.errors import Defect
from edge.uaserver.node_parts import reference_to, reference_to_type, scalar, shared_value

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
        _A.NodeId: scalar(node_id, _T.NodeId),
        _A.BrowseName: scalar(item.BrowseName, _T.QualifiedName),
        _A.NodeClass: AttributeValue(shared_value(item.NodeClass, _T.Int32)),
        **_attributes(item),
    }
    node.references.append(reference_to(parent, item.ReferenceTypeId, is_forward=False))
    if not item.TypeDefinition.is_null():
        node.references.append(_reference_to_type(aspace, item))
    aspace[node_id] = node
    parent.references.append(reference_to(node, item.ReferenceTypeId))
    return node_id


def add_reference(aspace: AddressSpace, source: ua.NodeId, reference: ua.NodeId, target: ua.NodeId) -> None:
    """Add a reference between two nodes, in both directions."""
    aspace[source].references.append(reference_to(aspace[target], reference))
    aspace[target].references.append(reference_to(aspace[source], reference, is_forward=False))


def _attributes(item: ua.AddNodesItem) -> dict[ua.AttributeIds, AttributeValue]:
    given = item.NodeAttributes
    found = {each: scalar(getattr(given, name), kind) for each, name, kind in _TEXTS}
    for each, name, kind in _ATTRIBUTES[item.NodeClass]:
        found[each] = AttributeValue(shared_value(getattr(given, name), kind))
    if item.NodeClass is ua.NodeClass.Variable:
        dimensions = ua.Variant(given.ArrayDimensions, _T.UInt32, is_array=True)
        found[_A.ArrayDimensions] = AttributeValue(ua.DataValue(dimensions))
        now = datetime.now(UTC)
        value = ua.DataValue(ua.Variant(given.Value), SourceTimestamp=now, ServerTimestamp=now)
        found[_A.Value] = AttributeValue(value)
    return found


def _reference_to_type(aspace: AddressSpace, item: ua.AddNodesItem) -> ua.ReferenceDescription:
    if item.TypeDefinition.NamespaceIndex:
        return reference_to(aspace[item.TypeDefinition], _HAS_TYPE_DEFINITION)
    is_variable = item.NodeClass is ua.NodeClass.Variable
    return reference_to_type(item.TypeDefinition, ua.NodeClass.VariableType if is_variable else ua.NodeClass.ObjectType)
