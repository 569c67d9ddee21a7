"""Builds the nodes of conditions, one at a time when a client asks for it: 1,000 conditions cost no nodes."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Final

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData
from msgspec import Struct

from edge.features.telemetry.opcua.condition_fields import ConditionMember, member_table, name_of, variant_of
from edge.features.telemetry.opcua.condition_view import ConditionView
from edge.model.instant import utc
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
from edge.uaserver.own_types import type_name

_I: Final = ua.ObjectIds
_A: Final = ua.AttributeIds
T: Final = ua.VariantType
_HAS_PROPERTY: Final = ua.NodeId(_I.HasProperty)
_FOLDER_TYPE: Final = ua.NodeId(_I.FolderType)
HAS_CONDITION: Final = ua.NodeId(_I.HasCondition)
FOLDER: Final = "Alarms"

_OBJECTS: Final[Mapping[str, int]] = MappingProxyType(
    {"ShelvingState": _I.ShelvedStateMachineType, "LimitState": _I.ExclusiveLimitStateMachineType}
)
_METHODS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "": (
            _I.ConditionType_Enable,
            _I.ConditionType_Disable,
            _I.ConditionType_AddComment,
            _I.AcknowledgeableConditionType_Acknowledge,
            _I.AcknowledgeableConditionType_Confirm,
            _I.AlarmConditionType_Reset,
            _I.AlarmConditionType_Reset2,
        ),
        "ShelvingState": (
            _I.ShelvedStateMachineType_TimedShelve,
            _I.ShelvedStateMachineType_TimedShelve2,
            _I.ShelvedStateMachineType_Unshelve,
            _I.ShelvedStateMachineType_Unshelve2,
            _I.ShelvedStateMachineType_OneShotShelve,
            _I.ShelvedStateMachineType_OneShotShelve2,
        ),
    }
)
"""By the path of an object: its methods. All conditions share the method nodes of the types."""


class _Child(Struct, frozen=True):
    """A node below a condition: its path, and the reference to it."""

    path: str
    reference: ua.NodeId
    node_class: ua.NodeClass
    type_id: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def reference_from(self, condition: str) -> ua.ReferenceDescription:
        return make_reference(
            self.reference,
            member_id(condition, self.path),
            ua.QualifiedName(self.name),
            self.node_class,
            ua.NodeId(self.type_id),
        )


def member_id(condition: str, path: str) -> ua.NodeId:
    """Return the NodeId of a member of a condition; the empty path is the condition."""
    return ua.NodeId(f"{condition}/{path}" if path else condition, Namespace.ALARMS)


def references_to(view: ConditionView) -> tuple[ua.ReferenceDescription, ua.ReferenceDescription]:
    """Return the references of the folder and of the source to a condition.

    They share their parts: every object of 10,000 conditions lengthens each pass of the garbage collector.
    """
    name = ua.QualifiedName(name_of(view), Namespace.ALARMS)
    of_folder = make_reference(HAS_COMPONENT, view.condition_id, name, ua.NodeClass.Object, _type_id(view.kind.type_id))
    return of_folder, dataclasses.replace(of_folder, ReferenceTypeId=HAS_CONDITION)


@cache
def _type_id(number: int) -> ua.NodeId:
    return ua.NodeId(number)


def folder_node(node_id: ua.NodeId, parent: NodeData) -> NodeData:
    """Create the folder of the conditions of a source, and its reference from the parent."""
    node = NodeData(node_id)
    node.attributes = object_attributes(node_id, type_name(FOLDER), "The alarms.")
    node.references = [reference_to_type(_FOLDER_TYPE), reference_to(parent, HAS_COMPONENT, is_forward=False)]
    parent.references.append(reference_to(node, HAS_COMPONENT))
    return node


def condition_node(
    node_id: ua.NodeId, path: str, read_view: Callable[[], ConditionView], folder: NodeData, source: NodeData
) -> NodeData:
    """Create the node at a path of a condition. Raises KeyError when the type has none there."""
    view = read_view()
    condition, type_id = view.alarm.id, view.kind.type_id
    children = _children(type_id)
    node = NodeData(node_id)
    below = [child.reference_from(condition) for child in children.get(path, ())]
    if not path:
        name = ua.QualifiedName(name_of(view), Namespace.ALARMS)
        node.attributes = object_attributes(node_id, name, view.message.Text or "")
        back = [
            reference_to(folder, HAS_COMPONENT, is_forward=False),
            reference_to(source, HAS_CONDITION, is_forward=False),
        ]
        node.references = [reference_to_type(ua.NodeId(type_id)), *back, *below, *_methods(path)]
        return node
    parent = make_reference(
        HAS_COMPONENT,
        member_id(condition, path.rpartition("/")[0]),
        ua.QualifiedName(path.rpartition("/")[0].rpartition("/")[2]),
        ua.NodeClass.Object,
        is_forward=False,
    )
    if path in _OBJECTS:
        node.attributes = object_attributes(node_id, ua.QualifiedName(path), "")
        node.references = [reference_to_type(ua.NodeId(_OBJECTS[path])), parent, *below, *_methods(path)]
        return node
    member = member_table(type_id)[path]
    value = AttributeValue(ua.DataValue())
    value.value_callback = partial(_read, member, read_view)
    node.attributes = {**_attributes_of(member), _A.NodeId: scalar(node_id, T.NodeId), _A.Value: value}
    parent.ReferenceTypeId = _reference_of(member)
    node.references = [reference_to_type(ua.NodeId(member.variable_type), ua.NodeClass.VariableType), parent, *below]
    return node


def _read(
    member: ConditionMember, read_view: Callable[[], ConditionView], _node: ua.NodeId, _attribute: ua.AttributeIds
) -> ua.DataValue:
    view = read_view()
    at = utc(view.alarm.changed_at)
    return ua.DataValue(variant_of(member, view), SourceTimestamp=at, ServerTimestamp=datetime.now(UTC))


@lru_cache(maxsize=32)
def _children(type_id: int) -> Mapping[str, tuple[_Child, ...]]:
    """Return the nodes below each path of conditions of a type."""
    found: dict[str, list[_Child]] = {}
    for path, member in member_table(type_id).items():
        parent = path.rpartition("/")[0]
        if parent in _OBJECTS and parent not in found:
            found.setdefault("", []).append(_Child(parent, HAS_COMPONENT, ua.NodeClass.Object, _OBJECTS[parent]))
        found.setdefault(parent, []).append(
            _Child(path, _reference_of(member), ua.NodeClass.Variable, member.variable_type)
        )
    return {path: tuple(children) for path, children in found.items()}


def _reference_of(member: ConditionMember) -> ua.NodeId:
    return _HAS_PROPERTY if member.variable_type == _I.PropertyType else HAS_COMPONENT


@lru_cache(maxsize=4)
def _methods(path: str) -> tuple[ua.ReferenceDescription, ...]:
    return tuple(
        make_reference(HAS_COMPONENT, ua.NodeId(number), ua.QualifiedName(method_name(number)), ua.NodeClass.Method)
        for number in _METHODS.get(path, ())
    )


def method_name(method: int) -> str:
    """Return the browse name of a method of a type: the last part of its name."""
    return ua.ObjectIdNames[method].rpartition("_")[2]


@lru_cache(maxsize=256)
def _attributes_of(member: ConditionMember) -> dict[ua.AttributeIds, AttributeValue]:
    name = ua.QualifiedName(member.path.rpartition("/")[2])
    return variable_attributes(name, ua.NodeId(member.data_type), f"{member.path} (OPC 10000-9)")
