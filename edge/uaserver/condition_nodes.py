"""Builds the nodes of conditions, one at a time when a client asks for it: 1,000 conditions cost no nodes."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData
from msgspec import Struct

from edge.uaserver.condition_members import LONGEST_NAME, ConditionMember, ConditionShape, T, variant_of
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
from edge.uaserver.official_texts import official_text
from edge.uaserver.own_types import type_name

_I: Final = ua.ObjectIds
_A: Final = ua.AttributeIds
_HAS_PROPERTY: Final = ua.NodeId(_I.HasProperty)
_FOLDER_TYPE: Final = ua.NodeId(_I.FolderType)
HAS_CONDITION: Final = ua.NodeId(_I.HasCondition)


class _Child(Struct, frozen=True):
    """A node below a condition: its path, and the reference to it."""

    path: str
    reference: ua.NodeId
    node_class: ua.NodeClass
    type_id: int
    namespace: int = 0

    def reference_from(self, condition: str) -> ua.ReferenceDescription:
        return make_reference(
            self.reference,
            member_id(condition, self.path),
            ua.QualifiedName(self.path.rpartition("/")[2], self.namespace),
            self.node_class,
            ua.NodeId(self.type_id),
        )


def member_id(condition: str, path: str) -> ua.NodeId:
    """Return the NodeId of a member of a condition; the empty path is the condition."""
    return ua.NodeId(f"{condition}/{path}" if path else condition, Namespace.ALARMS)


def references_to(condition: str, view: Any, shape: ConditionShape) -> tuple[ua.ReferenceDescription, ...]:
    """Return the references of the folder and of the source to a condition.

    They share their parts: every object of 10,000 conditions lengthens each pass of the garbage collector.
    """
    name, node_id = _browse_name(view), member_id(condition, "")
    of_folder = make_reference(HAS_COMPONENT, node_id, name, ua.NodeClass.Object, shape.type_id)
    return of_folder, dataclasses.replace(of_folder, ReferenceTypeId=HAS_CONDITION)


def _browse_name(view: Any) -> ua.QualifiedName:
    return ua.QualifiedName(view.name[:LONGEST_NAME], Namespace.ALARMS)


def folder_node(node_id: ua.NodeId, parent: NodeData, name: str, description: str) -> NodeData:
    """Create the folder of the conditions of a source, and its reference from the parent."""
    node = NodeData(node_id)
    node.attributes = object_attributes(node_id, type_name(name), description)
    node.references = [reference_to_type(_FOLDER_TYPE), reference_to(parent, HAS_COMPONENT, is_forward=False)]
    parent.references.append(reference_to(node, HAS_COMPONENT))
    return node


def condition_node(
    node_id: ua.NodeId, shape: ConditionShape, read_view: Callable[[], Any], folder: NodeData, source: NodeData
) -> NodeData:
    """Create a node of a condition: itself, or a member. Raises KeyError when the type has none there."""
    condition, _, path = str(node_id.Identifier).partition("/")
    node = NodeData(node_id)
    below = [child.reference_from(condition) for child in _children(shape).get(path, ())]
    if not path:
        view = read_view()
        node.attributes = object_attributes(node_id, _browse_name(view), view.message.Text or "")
        back = [
            reference_to(folder, HAS_COMPONENT, is_forward=False),
            reference_to(source, HAS_CONDITION, is_forward=False),
        ]
        node.references = [reference_to_type(shape.type_id), *back, *below, *_methods(shape, path)]
        return node
    parent = make_reference(
        HAS_COMPONENT,
        member_id(condition, path.rpartition("/")[0]),
        ua.QualifiedName(path.rpartition("/")[0].rpartition("/")[2]),
        ua.NodeClass.Object,
        is_forward=False,
    )
    if path in shape.objects:
        node.attributes = object_attributes(node_id, ua.QualifiedName(path), official_text(path))
        type_id = ua.NodeId(shape.objects[path])
        node.references = [reference_to_type(type_id), parent, *below, *_methods(shape, path)]
        return node
    member = shape.members[path]
    value = AttributeValue(ua.DataValue())
    value.value_callback = partial(_read, shape, member, read_view)
    node.attributes = {**_attributes_of(member), _A.NodeId: scalar(node_id, T.NodeId), _A.Value: value}
    parent.ReferenceTypeId = _reference_of(member)
    node.references = [reference_to_type(ua.NodeId(member.variable_type), ua.NodeClass.VariableType), parent, *below]
    return node


def _read(
    shape: ConditionShape,
    member: ConditionMember,
    read_view: Callable[[], Any],
    _node: ua.NodeId,
    _attribute: ua.AttributeIds,
) -> ua.DataValue:
    view = read_view()
    at = variant_of(shape.members["Time"], view).Value
    return ua.DataValue(variant_of(member, view), SourceTimestamp=at, ServerTimestamp=datetime.now(UTC))


@lru_cache(maxsize=32)
def _children(shape: ConditionShape) -> Mapping[str, tuple[_Child, ...]]:
    """Return the nodes below each path of conditions of a type."""
    found: dict[str, list[_Child]] = {}
    for path, member in shape.members.items():
        parent = path.rpartition("/")[0]
        if parent in shape.objects and parent not in found:
            found.setdefault("", []).append(_Child(parent, HAS_COMPONENT, ua.NodeClass.Object, shape.objects[parent]))
        found.setdefault(parent, []).append(
            _Child(path, _reference_of(member), ua.NodeClass.Variable, member.variable_type, member.namespace)
        )
    return {path: tuple(children) for path, children in found.items()}


def _reference_of(member: ConditionMember) -> ua.NodeId:
    return _HAS_PROPERTY if member.variable_type == _I.PropertyType else HAS_COMPONENT


@lru_cache(maxsize=32)
def _methods(shape: ConditionShape, path: str) -> tuple[ua.ReferenceDescription, ...]:
    return tuple(
        make_reference(
            HAS_COMPONENT, method, ua.QualifiedName(method_name(method), method.NamespaceIndex), ua.NodeClass.Method
        )
        for method in shape.methods.get(path, ())
    )


def method_name(method: ua.NodeId) -> str:
    """Return the browse name of a method of a type, of the standard or of our own: the last part of its name."""
    if method.NamespaceIndex:
        return str(method.Identifier).rpartition("/")[2]
    return ua.ObjectIdNames[method.Identifier].rpartition("_")[2]


@lru_cache(maxsize=256)
def _attributes_of(member: ConditionMember) -> dict[ua.AttributeIds, AttributeValue]:
    name = ua.QualifiedName(member.path.rpartition("/")[2], member.namespace)
    description = member.path if member.namespace else f"{member.path} (OPC 10000-9)"
    return variable_attributes(name, ua.NodeId(member.data_type), description, is_array=member.is_array)
