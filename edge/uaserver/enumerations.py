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
    """A data type: its name, its description, and the names of its values, which count from 0 on without `numbers`.

    Example: KIND = Enumeration("MaintenanceKind", "What happens to jobs.", ("off", "drain")); KIND.variant("drain")
    """

    name: str
    description: str
    values: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    @property
    def data_type(self) -> ua.NodeId:
        """The NodeId of the type."""
        return type_node(self.name)

    @cached_property
    def by_name(self) -> Mapping[str, int]:
        """The number of each value."""
        return dict(zip(self.values, self.numbers or range(len(self.values)), strict=True))

    def variant(self, value: str) -> ua.Variant:
        """Return a value by its name."""
        return ua.Variant(self.by_name[value], T.Int32)


def add_enumeration(aspace: AddressSpace, enumeration: Enumeration) -> None:
    """Add the node of a type, its definition, and EnumStrings; EnumValues where the numbers have gaps."""
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
        for value, number in enumeration.by_name.items()
    ]
    definition = ua.Variant(ua.EnumDefinition(Fields=fields), T.ExtensionObject)
    node = aspace[enumeration.data_type]
    node.attributes[ua.AttributeIds.DataTypeDefinition] = AttributeValue(ua.DataValue(definition))
    add_node(aspace, _names_item(enumeration))


def _names_item(enumeration: Enumeration) -> ua.AddNodesItem:
    texts = [ua.LocalizedText(value, "en") for value in enumeration.values]
    values = [
        ua.EnumValueType(Value=number, DisplayName=shown)
        for number, shown in zip(enumeration.numbers, texts, strict=False)
    ]
    name = "EnumValues" if values else "EnumStrings"
    attributes = ua.VariableAttributes()
    attributes.DisplayName = ua.LocalizedText(name)
    attributes.Description = ua.LocalizedText("The names of the values.", "en")
    attributes.DataType = ua.NodeId(ua.ObjectIds.EnumValueType if values else ua.ObjectIds.LocalizedText)
    attributes.ValueRank = ua.ValueRank.OneDimension
    attributes.ArrayDimensions = [len(texts)]
    attributes.Value = ua.Variant(values or texts, T.ExtensionObject if values else T.LocalizedText, is_array=True)
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    return ua.AddNodesItem(
        RequestedNewNodeId=ua.NodeId(f"{enumeration.name}/{name}", Namespace.TYPES),
        BrowseName=ua.QualifiedName(name),
        NodeClass=ua.NodeClass.Variable,
        ParentNodeId=enumeration.data_type,
        ReferenceTypeId=_HAS_PROPERTY,
        NodeAttributes=attributes,
        TypeDefinition=ua.NodeId(ua.ObjectIds.PropertyType),
    )
