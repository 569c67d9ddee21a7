"""Builds the product's own types: tables of variables and methods, and the type nodes of these tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from asyncua import ua
from asyncua.server.internal_server import InternalServer
from msgspec import Struct

from edge.model.engineering_unit import CEFACT, engineering_unit, symbol_of
from edge.model.instant import milliseconds_of, utc
from edge.model.isa95 import EUInformation
from edge.opcua.binary import DecodeError
from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import add_node
from edge.uaserver.node_parts import HAS_COMPONENT, describe, make_reference

T = ua.VariantType

DURATION = ua.NodeId(ua.ObjectIds.Duration)
UNITS_NAME = ua.QualifiedName("EngineeringUnits")
UNIT_DESCRIPTION = "The unit of the value."
MILLISECOND = "C26"
"""The unit of a Duration."""
MANDATORY = ua.NodeId(ua.ObjectIds.ModellingRule_Mandatory)
PLACEHOLDER = ua.NodeId(ua.ObjectIds.ModellingRule_OptionalPlaceholder)
_HAS_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_HAS_MODELLING_RULE = ua.NodeId(ua.ObjectIds.HasModellingRule)
_MODELLING_RULE_TYPE = ua.NodeId(ua.ObjectIds.ModellingRuleType)
_BASE_OBJECT_TYPE = ua.NodeId(ua.ObjectIds.BaseObjectType)


class VariableSpec(Struct, frozen=True):
    """A variable: its data type, its description, and the function that reads its value from the owner's view."""

    name: str
    data_type: ua.NodeId
    description: str
    value: Callable[[Any], ua.Variant]
    is_array: bool = False
    unit: str = ""
    """The code of its unit by UNECE Recommendation 20; empty for a value without one."""


def type_node(*path: str) -> ua.NodeId:
    """Return the NodeId for a path in the namespace of the product's own types."""
    return ua.NodeId("/".join(path), Namespace.TYPES)


def type_name(name: str) -> ua.QualifiedName:
    """Return the browse name of a member of an own type, and of its instances."""
    return ua.QualifiedName(name, Namespace.TYPES)


def base(kind: ua.VariantType) -> ua.NodeId:
    """Return the NodeId of a built-in data type."""
    return ua.NodeId(kind.value)


def instant(milliseconds: int | None) -> ua.Variant:
    """Return an instant, in milliseconds since the epoch, as DateTime; None becomes null: clients would show 1601."""
    return ua.Variant() if milliseconds is None else ua.Variant(utc(milliseconds), T.DateTime)


def text(text: str) -> ua.Variant:
    """Return a text as String."""
    return ua.Variant(text, T.String)


def _variable_attributes(shown: VariableSpec) -> ua.VariableAttributes:
    """Return the attributes of a variable; they are the same in every instance of the type."""
    attributes = ua.VariableAttributes()
    attributes.DisplayName = ua.LocalizedText(shown.name)
    attributes.Description = ua.LocalizedText(shown.description, "en")
    attributes.DataType = shown.data_type
    attributes.ValueRank = ua.ValueRank.OneDimension if shown.is_array else ua.ValueRank.Scalar
    attributes.ArrayDimensions = [0] if shown.is_array else None
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    return attributes


def object_type(
    type_id: ua.NodeId, members: Iterable[VariableSpec], parent: ua.NodeId = _BASE_OBJECT_TYPE
) -> Iterator[ua.AddNodesItem]:
    """Yield the nodes of an object type: the type, then its variables."""
    yield item(type_id, parent, _HAS_SUBTYPE, ua.NodeClass.ObjectType, _concrete())
    for variable_spec in members:
        member = type_node(type_id.Identifier, variable_spec.name)
        yield variable_item(member, type_id, variable_spec)
        yield from unit_items(member, variable_spec)


def _concrete() -> ua.ObjectTypeAttributes:
    attributes = ua.ObjectTypeAttributes()
    attributes.IsAbstract = False  # asyncua's default is True
    return attributes


def item(
    node_id: ua.NodeId, parent: ua.NodeId, reference: ua.NodeId, node_class: ua.NodeClass, attributes: Any
) -> ua.AddNodesItem:
    """Return the request for a node; its name is the last part of its NodeId."""
    name = node_id.Identifier.rpartition("/")[2]
    attributes.DisplayName = ua.LocalizedText(name)
    if not attributes.Description or not attributes.Description.Text:
        attributes.Description = describe(name, "A piece of equipment.")
    return ua.AddNodesItem(
        RequestedNewNodeId=node_id,
        BrowseName=type_name(name),
        NodeClass=node_class,
        ParentNodeId=parent,
        ReferenceTypeId=reference,
        NodeAttributes=attributes,
    )


def object_item(node_id: ua.NodeId, parent: ua.NodeId, reference: ua.NodeId, type_id: ua.NodeId) -> ua.AddNodesItem:
    """Return the request for an object."""
    asked = item(node_id, parent, reference, ua.NodeClass.Object, ua.ObjectAttributes())
    asked.TypeDefinition = type_id
    return asked


def variable_item(node_id: ua.NodeId, parent: ua.NodeId, shown: VariableSpec) -> ua.AddNodesItem:
    """Return the request for a variable."""
    asked = item(node_id, parent, HAS_COMPONENT, ua.NodeClass.Variable, _variable_attributes(shown))
    kind = ua.ObjectIds.AnalogUnitType if shown.unit else ua.ObjectIds.BaseDataVariableType
    asked.TypeDefinition = ua.NodeId(kind)
    return asked


def unit_items(node_id: ua.NodeId, shown: VariableSpec) -> Iterator[ua.AddNodesItem]:
    """Yield the property of a variable that has a unit (OPC 10000-8, 5.3.2.4)."""
    if shown.unit:
        yield unit_item(node_id, ua.Variant(unit_of(shown.unit), T.ExtensionObject))


def unit_item(node_id: ua.NodeId, value: ua.Variant) -> ua.AddNodesItem:
    """Return the request for the property EngineeringUnits of a variable."""
    attributes = ua.VariableAttributes()
    attributes.Description = ua.LocalizedText(UNIT_DESCRIPTION, "en")
    attributes.DataType = ua.NodeId(ua.ObjectIds.EUInformation)
    attributes.ValueRank = ua.ValueRank.Scalar
    attributes.Value = value
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    asked = item(unit_id(node_id), node_id, _HAS_PROPERTY, ua.NodeClass.Variable, attributes)
    asked.BrowseName = UNITS_NAME
    asked.TypeDefinition = ua.NodeId(ua.ObjectIds.PropertyType)
    return asked


def unit_id(node_id: ua.NodeId) -> ua.NodeId:
    """Return the NodeId of the property EngineeringUnits of a variable."""
    return ua.NodeId(f"{node_id.Identifier}/EngineeringUnits", node_id.NamespaceIndex)


def unit_of(code: str) -> ua.EUInformation:
    """Return the unit of a code of UNECE Recommendation 20 (OPC 10000-8, 5.6.4.3)."""
    unit = unit_of_symbol(symbol_of(code))
    if unit.UnitId == -1:
        unit.NamespaceUri, unit.UnitId = CEFACT, int.from_bytes(code.encode())
        unit.Description = ua.LocalizedText(code, "en")
    return unit


def unit_of_symbol(symbol: str) -> ua.EUInformation:
    """Return the unit of a symbol as equipment writes it; -1 stands for the code of an unknown one."""
    known: EUInformation = engineering_unit(symbol)
    shown, name = known.display_name, known.description
    return ua.EUInformation(
        NamespaceUri=known.namespace_uri or None,
        UnitId=known.unit_id,
        DisplayName=ua.LocalizedText(shown.text if shown else symbol),
        Description=ua.LocalizedText(name.text, "en") if name else ua.LocalizedText(),
    )


def read_flag(argument: ua.Variant) -> bool:
    """Read a Boolean argument. Raises DecodeError."""
    if argument.VariantType is not ua.VariantType.Boolean or argument.is_array:
        raise DecodeError("it is not a boolean")
    return bool(argument.Value)


def read_instant(argument: ua.Variant) -> int | None:
    """Read a DateTime argument in milliseconds since the epoch; None for its null. Raises DecodeError."""
    if argument.VariantType is ua.VariantType.Null:
        return None
    if argument.VariantType is not ua.VariantType.DateTime or argument.is_array:
        raise DecodeError("it is not an instant")
    return milliseconds_of(argument.Value)


def argument(name: str, data_type: ua.NodeId, description: str, *, is_array: bool = False) -> ua.Argument:
    """Return an argument of a method."""
    return ua.Argument(
        Name=name,
        DataType=data_type,
        ValueRank=ua.ValueRank.OneDimension if is_array else ua.ValueRank.Scalar,
        ArrayDimensions=[0] if is_array else None,
        Description=ua.LocalizedText(description, "en"),
    )


def method_items(
    node_id: ua.NodeId, parent: ua.NodeId, description: str, inputs: Sequence[ua.Argument], output: ua.Argument
) -> Iterator[ua.AddNodesItem]:
    """Yield the nodes of a method: the method, its input arguments, its output arguments."""
    attributes = ua.MethodAttributes()
    attributes.Description = ua.LocalizedText(description, "en")
    attributes.Executable = True
    attributes.UserExecutable = False
    yield item(node_id, parent, HAS_COMPONENT, ua.NodeClass.Method, attributes)
    for name, arguments in (("InputArguments", inputs), ("OutputArguments", (output,))):
        yield _arguments_item(ua.NodeId(f"{node_id.Identifier}/{name}", node_id.NamespaceIndex), node_id, arguments)


def _arguments_item(node_id: ua.NodeId, method: ua.NodeId, arguments: Sequence[ua.Argument]) -> ua.AddNodesItem:
    attributes = ua.VariableAttributes()
    attributes.DataType = ua.NodeId(ua.ObjectIds.Argument)
    attributes.ValueRank = ua.ValueRank.OneDimension
    attributes.ArrayDimensions = [len(arguments)]
    attributes.Value = ua.Variant(list(arguments), T.ExtensionObject, is_array=True)
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    asked = item(node_id, method, _HAS_PROPERTY, ua.NodeClass.Variable, attributes)
    asked.BrowseName = ua.QualifiedName(node_id.Identifier.rpartition("/")[2])
    asked.TypeDefinition = ua.NodeId(ua.ObjectIds.PropertyType)
    return asked


def add_nodes(iserver: InternalServer, items: Iterable[ua.AddNodesItem]) -> None:
    """Add nodes; a parent comes before the nodes below it. Raises Defect when a node exists."""
    for value in items:
        add_node(iserver.aspace, value)


def member_rules(type_id: ua.NodeId, members: Iterable[VariableSpec]) -> Iterator[tuple[ua.NodeId, ua.NodeId]]:
    """Yield the modelling rules of the variables of a type, which all its instances have, and of their units."""
    for shown in members:
        member = type_node(type_id.Identifier, shown.name)
        yield member, MANDATORY
        if shown.unit:
            yield unit_id(member), MANDATORY


def add_modelling_rules(iserver: InternalServer, rules: Iterable[tuple[ua.NodeId, ua.NodeId]]) -> None:
    """Add a HasModellingRule reference to each of these members of types (OPC 10000-3, 6.4.4.4)."""
    for node, rule in rules:
        iserver.aspace[node].references.append(_reference_to_rule(rule))


@cache
def _reference_to_rule(rule: ua.NodeId) -> ua.ReferenceDescription:
    """Return the reference without the node of the rule, which has hundreds of references."""
    name = ua.QualifiedName(ua.ObjectIdNames[rule.Identifier].removeprefix("ModellingRule_"))
    return make_reference(_HAS_MODELLING_RULE, rule, name, ua.NodeClass.Object, _MODELLING_RULE_TYPE)
