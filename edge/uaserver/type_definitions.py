"""Writes IsAbstract and DataTypeDefinition of the official types as their node sets have them.

asyncua's namespace 0 has no definitions, and takes most types for abstract. Its importer leaves out the fields of a
base type, takes the first encoding for that in binary, and drops option sets with a number as base type
(github.com/FreeOpcUa/opcua-asyncio/issues/1869).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final
from xml.etree import ElementTree as ET

from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue
from msgspec import Struct

from edge.uaserver.namespaces import OFFICIAL_URI, UA_URI

_XML: Final = "{http://opcfoundation.org/UA/2011/03/UANodeSet.xsd}"
_TYPES: Final = frozenset(f"{_XML}UA{kind}" for kind in ("DataType", "ObjectType", "VariableType", "ReferenceType"))
_INDEX: Final = MappingProxyType({UA_URI: 0} | {uri: int(index) for index, uri in OFFICIAL_URI.items()})
_NODE_ID: Final = re.compile(r"(?:ns=(\d+);)?i=(\d+)")

_STRUCTURE: Final = ua.NodeId(ua.ObjectIds.Structure)
_UNION: Final = ua.NodeId(ua.ObjectIds.Union)
_OPTION_SET: Final = ua.NodeId(ua.ObjectIds.OptionSet)
_ENUMERATION: Final = ua.NodeId(ua.ObjectIds.Enumeration)
_HAS_ENCODING: Final = ua.NodeId(ua.ObjectIds.HasEncoding)


class _Type(Struct, frozen=True):
    """A type of a node set; `base` is its supertype, `definition` that of a data type."""

    is_abstract: bool
    is_data_type: bool
    base: ua.NodeId | None
    definition: ET.Element | None
    names: Mapping[str, ua.NodeId]
    """The data types that the definition names by an alias."""
    indexes: tuple[int, ...]
    """The index of each namespace of the file."""


def define_types(aspace: AddressSpace, node_sets: Iterable[bytes]) -> None:
    """Write the attributes of all types; a data type that is not a structure or an enumeration has no definition."""
    types = {node_id: value for xml in node_sets for node_id, value in _types(xml)}
    for node_id, value in types.items():
        if node_id not in aspace:
            continue
        attributes = aspace[node_id].attributes
        abstract = ua.DataValue(ua.Variant(value.is_abstract, ua.VariantType.Boolean))
        attributes[ua.AttributeIds.IsAbstract] = AttributeValue(abstract)
        if value.is_data_type:
            definition = _definition(aspace, types, node_id)
            attributes.pop(ua.AttributeIds.DataTypeDefinition, None)
            if definition is not None:
                variant = ua.Variant(definition, ua.VariantType.ExtensionObject)
                attributes[ua.AttributeIds.DataTypeDefinition] = AttributeValue(ua.DataValue(variant))


def _types(xml: bytes) -> Iterator[tuple[ua.NodeId, _Type]]:
    """Yield the types of a node set."""
    root = ET.fromstring(xml)  # noqa: S314 - the digest of the file is checked
    uris = [uri.text or "" for uri in root.iterfind(f"{_XML}NamespaceUris/{_XML}Uri")]
    indexes = (0, *(_INDEX[uri] for uri in uris))
    names = {
        alias.attrib["Alias"]: _node_id(alias.text or "", indexes)
        for alias in root.iterfind(f"{_XML}Aliases/{_XML}Alias")
    }
    for element in root:
        if element.tag in _TYPES:
            yield (
                _node_id(element.attrib["NodeId"], indexes),
                _Type(
                    element.get("IsAbstract") == "true",
                    element.tag == f"{_XML}UADataType",
                    _base(element, names, indexes),
                    element.find(f"{_XML}Definition"),
                    names,
                    indexes,
                ),
            )


def _node_id(text: str, indexes: tuple[int, ...]) -> ua.NodeId:
    match = _NODE_ID.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a NodeId of a type")
    return ua.NodeId(int(match[2]), indexes[int(match[1] or 0)])


def _base(element: ET.Element, names: Mapping[str, ua.NodeId], indexes: tuple[int, ...]) -> ua.NodeId | None:
    for reference in element.iterfind(f"{_XML}References/{_XML}Reference"):
        kind = reference.attrib["ReferenceType"]
        is_subtype = (names[kind] if kind in names else _node_id(kind, indexes)) == ua.NodeId(ua.ObjectIds.HasSubtype)
        if is_subtype and reference.get("IsForward") == "false":
            return _node_id(reference.text or "", indexes)
    return None


def _bases(types: Mapping[ua.NodeId, _Type], node_id: ua.NodeId) -> Iterator[ua.NodeId]:
    """Yield the supertypes of a type, the nearest first."""
    while (base := types[node_id].base) is not None:
        yield base
        node_id = base


def _definition(
    aspace: AddressSpace, types: Mapping[ua.NodeId, _Type], node_id: ua.NodeId
) -> ua.StructureDefinition | ua.EnumDefinition | None:
    """Return the definition of a data type (OPC 10000-3, 5.8.3); None where it has none."""
    bases, data_type = tuple(_bases(types, node_id)), types[node_id]
    is_option_set = data_type.definition is not None and data_type.definition.get("IsOptionSet") == "true"
    if _ENUMERATION in bases or _OPTION_SET in bases or is_option_set:
        return ua.EnumDefinition(Fields=list(_enum_fields(data_type)))
    if _STRUCTURE not in bases:
        return None
    lineage = [node_id, *bases[: bases.index(_STRUCTURE)]]
    fields = [field for ancestor in reversed(lineage) for field in _fields(types[ancestor])]
    return ua.StructureDefinition(
        DefaultEncodingId=ua.NodeId() if data_type.is_abstract else _binary_encoding(aspace, node_id),
        BaseDataType=bases[0],
        StructureType=_kind(types, lineage, fields),
        Fields=[field.field for field in fields],
    )


class _Field(Struct, frozen=True):
    """A field of a structure."""

    field: ua.StructureField
    allows_subtypes: bool


def _fields(data_type: _Type) -> Iterator[_Field]:
    """Yield the own fields of a structure."""
    for element in _elements(data_type):
        allows_subtypes = element.get("AllowSubTypes") == "true"
        kind = element.get("DataType", "i=24")
        dimensions = element.get("ArrayDimensions")
        field = ua.StructureField(
            Name=element.attrib["Name"],
            Description=_text(element, "Description"),
            DataType=data_type.names.get(kind) or _node_id(kind, data_type.indexes),
            ValueRank=ua.Int32(element.get("ValueRank", "-1")),
            ArrayDimensions=[ua.UInt32(size) for size in dimensions.split(",")] if dimensions else None,
            MaxStringLength=ua.UInt32(element.get("MaxStringLength", "0")),
            # In a structure with subtypes it says that (OPC 10000-3, 8.51).
            IsOptional=allows_subtypes or element.get("IsOptional") == "true",
        )
        yield _Field(field, allows_subtypes)


def _enum_fields(data_type: _Type) -> Iterator[ua.EnumField]:
    for element in _elements(data_type):
        name = element.attrib["Name"]
        label = _text(element, "DisplayName")
        yield ua.EnumField(
            Value=ua.Int64(element.get("Value", "0")),
            DisplayName=label if label.Text else ua.LocalizedText(name),
            Description=_text(element, "Description"),
            Name=name,
        )


def _elements(data_type: _Type) -> Iterable[ET.Element]:
    return data_type.definition.iterfind(f"{_XML}Field") if data_type.definition is not None else ()


def _text(element: ET.Element, name: str) -> ua.LocalizedText:
    child = element.find(f"{_XML}{name}")
    return ua.LocalizedText(child.text if child is not None and child.text else None)


def _kind(types: Mapping[ua.NodeId, _Type], lineage: list[ua.NodeId], fields: list[_Field]) -> ua.StructureType:
    kinds = ua.StructureType
    allows_subtypes = any(field.allows_subtypes for field in fields)
    own = types[lineage[0]].definition
    if _UNION in lineage or (own is not None and own.get("IsUnion") == "true"):
        return kinds.UnionWithSubtypedValues if allows_subtypes else kinds.Union
    if allows_subtypes:
        return kinds.StructureWithSubtypedValues
    return kinds.StructureWithOptionalFields if any(field.field.IsOptional for field in fields) else kinds.Structure


def _binary_encoding(aspace: AddressSpace, node_id: ua.NodeId) -> ua.NodeId:
    """Return the encoding in binary; null where values are never in an ExtensionObject of their own."""
    for reference in aspace[node_id].references:
        is_encoding = reference.IsForward and reference.ReferenceTypeId == _HAS_ENCODING
        if is_encoding and reference.BrowseName == ua.QualifiedName("Default Binary"):
            return ua.NodeId(reference.NodeId.Identifier, reference.NodeId.NamespaceIndex)
    return ua.NodeId()
