"""Enumerated data types of our own: a client shows the names of their values (OPC 10000-3, 8.14.2)."""

from collections.abc import Mapping
from functools import cached_property

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue
from msgspec import Struct

from edge.uaserver.namespaces import Namespace
from edge.uaserver.new_nodes import add_node
from edge.uaserver.own_types import T, type_name, type_node

_ENUMERATION = ua.NodeId(ua.ObjectIds.Enumeration)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_HAS_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)


class Enumeration(Struct, frozen=True, dict=True):
    """A data type: its name, its description, and the names of its values from 0 on.

    Example: KIND = Enumeration("MaintenanceKind", "What happens to jobs.", ("off", "drain")); KIND.variant("drain")
    """

    name: str
    description: str
    values: tuple[str, ...]

    @property
    def data_type(self) -> ua.NodeId:
        """The NodeId of the type."""
        return type_node(self.name)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {value: number for number, value in enumerate(self.values)}

    def variant(self, value: str) -> ua.Variant:
        """Return a value by its name."""
        return ua.Variant(self._numbers[value], T.Int32)


def add_enumeration(aspace: AddressSpace, enumeration: Enumeration) -> None:
    """Add the node of a type, its EnumStrings and its definition."""
    attributes = ua.DataTypeAttributes()
    attributes.DisplayName = ua.LocalizedText(enumeration.name)
    attributes.Description = ua.LocalizedText(enumeration.description, "en")
    attributes.IsAbstract = False
    add_node(
        aspace,
        ua.AddNodesItem(
            RequestedNewNodeId=enumeration.data_type,
            BrowseName=type_name(enumeration.name),
            NodeClass=ua.NodeClass.DataType,
            ParentNodeId=_ENUMERATION,
            ReferenceTypeId=_HAS_SUBTYPE,
            NodeAttributes=attributes,
        ),
    )
    fields = [
        ua.EnumField(Value=number, DisplayName=ua.LocalizedText(value), Name=value)
        for number, value in enumerate(enumeration.values)
    ]
    definition = ua.Variant(ua.EnumDefinition(Fields=fields), T.ExtensionObject)
    node = aspace[enumeration.data_type]
    node.attributes[ua.AttributeIds.DataTypeDefinition] = AttributeValue(ua.DataValue(definition))
    add_node(aspace, _strings_item(enumeration))


def _strings_item(enumeration: Enumeration) -> ua.AddNodesItem:
    attributes = ua.VariableAttributes()
    attributes.DisplayName = ua.LocalizedText("EnumStrings")
    attributes.Description = ua.LocalizedText("The names of the values.", "en")
    attributes.DataType = ua.NodeId(ua.ObjectIds.LocalizedText)
    attributes.ValueRank = ua.ValueRank.OneDimension
    attributes.ArrayDimensions = [len(enumeration.values)]
    texts = [ua.LocalizedText(value, "en") for value in enumeration.values]
    attributes.Value = ua.Variant(texts, T.LocalizedText, is_array=True)
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    return ua.AddNodesItem(
        RequestedNewNodeId=ua.NodeId(f"{enumeration.name}/EnumStrings", Namespace.TYPES),
        BrowseName=ua.QualifiedName("EnumStrings"),
        NodeClass=ua.NodeClass.Variable,
        ParentNodeId=enumeration.data_type,
        ReferenceTypeId=_HAS_PROPERTY,
        NodeAttributes=attributes,
        TypeDefinition=ua.NodeId(ua.ObjectIds.PropertyType),
    )
