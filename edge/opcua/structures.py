"""Decode values of an OPC UA server to plain Python and encode them, structures by the definitions of the server.

asyncua can decode structures too, with classes it makes of the definitions, but it keeps those for the whole process
under their namespace *index*: two servers with different indexes would read each other's structures
(github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1800). The codecs here belong to one session.
"""

import asyncio
import dataclasses
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any
from uuid import UUID

from asyncua import Client, Server, ua
from asyncua.ua.ua_binary import pack_uatype, struct_from_binary, struct_to_binary

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.opcua.binary import (
    MAX_DEPTH,
    BoundedBuffer,
    Codec,
    DecodeError,
    Field,
    StructureCodec,
    array,
    builtin,
    decode_with_asyncua,
)
from edge.opcua.browse import references

_HIGHEST_BUILTIN = 25
_STRUCTURE = ua.NodeId(ua.ObjectIds.Structure)
# A joining system has a hundred types of structures.
_MOST_TYPES = 2000
# Values that need no conversion: most of a large array.
_PLAIN = frozenset({bool, int, float, bytes, type(None)})
# Abstract types, with the encoding of their values (OPC 10000-6, 5.1.2 and 5.2.4).
_ON_THE_WIRE = {
    ua.ObjectIds.Number: ua.VariantType.Variant,
    ua.ObjectIds.Integer: ua.VariantType.Variant,
    ua.ObjectIds.UInteger: ua.VariantType.Variant,
    ua.ObjectIds.Enumeration: ua.VariantType.Int32,
}
# asyncua has its own classes for these; read before types of other servers are registered there.
_BASE_STRUCTURES = {
    data_type: var
    for var in vars(ua).values()
    if isinstance(var, type)
    and dataclasses.is_dataclass(var)
    and (data_type := getattr(var, "data_type", None)) is not None
}


# asyncua's own classes of base structures by their encoding: servers need not describe these.
_BASE_ENCODINGS = {
    encoding: item for encoding, item in ua.extension_objects_by_typeid.items() if encoding.NamespaceIndex == 0
}


class Structures:
    """The codecs of the structures of one server, read from it when each is first needed.

    `nodes` provides its nodes: a connected client, or the server itself.
    """

    def __init__(self, nodes: Client | Server) -> None:
        self._nodes = nodes
        self._types: dict[ua.NodeId, Codec] = {}
        self._encodings: dict[ua.NodeId, Codec] = {}
        self._encoding_ids: dict[ua.NodeId, ua.NodeId] = {}
        self._learning = asyncio.Lock()

    async def plain(self, value: Any, depth: int = 0) -> Any:
        """Return a value without the types of OPC UA.

        A structure is a dict without its absent fields, a LocalizedText or QualifiedName its text, a NodeId, Guid or
        StatusCode text, an enumeration its number, an instant has the time zone UTC. Raises Refused(`unreadable`) for a
        structure that cannot be decoded, and for values that are nested too deep.
        """
        if depth > MAX_DEPTH:
            raise Refused("unreadable", "a value is nested too deep")
        match value:
            case list() | tuple() if _PLAIN.issuperset(map(type, value)):
                return list(value)
            case list() | tuple():
                return [await self.plain(item, depth + 1) for item in value]
            case dict():
                return {name: await self.plain(item, depth + 1) for name, item in value.items()}
            case ua.Variant() | ua.DataValue():
                return await self.plain(value.Value, depth + 1)
            case ua.ExtensionObject():
                return await self._structure(value, depth + 1)
            case str():
                return _utf8(value)
            case ua.LocalizedText():
                return _utf8(value.Text or "")
            case ua.QualifiedName():
                return value.Name and _utf8(value.Name)
            case ua.StatusCode():
                return value.name
            case ua.NodeId():
                return _utf8(value.to_string())
            case UUID():
                return str(value)
            case Enum():
                return value.value
            case datetime():
                return value.replace(tzinfo=UTC) if value.tzinfo is None else value
            case _ if dataclasses.is_dataclass(value):
                return {name: await self.plain(item, depth + 1) for name, item in _fields_of(value)}
            case _:
                return value

    async def variant(self, data_type: ua.NodeId, value: Any, *, is_array: bool = False) -> ua.Variant:
        """Return plain Python in the types of OPC UA: the inverse of `plain`, for a data type of the server.

        An absent value, or field, is the default of its type. Raises Refused(`unwritable`) for a value that cannot be
        one of the data type, Refused(`unreadable`) for a type that the server does not define.
        """
        if is_array:
            variants = [await self.variant(data_type, one) for one in value or ()]
            if data_type == ua.NodeId(ua.ObjectIds.BaseDataType):
                return ua.Variant(variants, ua.VariantType.Variant, is_array=True)
            kinds = {one.VariantType for one in variants} or {(await self.variant(data_type, None)).VariantType}
            return ua.Variant([one.Value for one in variants], kinds.pop(), is_array=True)
        if isinstance(value, ua.Variant):
            return value
        async with self._learning:
            codec = await self._known(data_type)
            encoding = await self._encoding_id(data_type)
        try:
            body = codec.encode(value)
        except (ua.UaError, ValueError, TypeError, AttributeError, RecursionError, struct.error) as error:
            raise Refused(
                "unwritable",
                Text.of(
                    "{value} is not a {string}: {reason}", value=repr(value), string=data_type.to_string(), reason=error
                ),
            ) from error
        if encoding is not None:
            return ua.Variant(ua.ExtensionObject(TypeId=encoding, Body=body), ua.VariantType.ExtensionObject)
        return _variant_of(codec.decode(BoundedBuffer(body)), await self._builtin(data_type))

    async def _structure(self, value: ua.ExtensionObject, depth: int) -> Any:
        if value.Body is None:
            return None
        codec = await self._encoding(value.TypeId)
        try:
            decoded = codec.decode(BoundedBuffer(value.Body))
        except DecodeError as error:
            message = Text.of(
                "a structure with encoding {string} is not as defined: {reason}",
                string=value.TypeId.to_string(),
                reason=error,
            )
            raise Refused("unreadable", message) from error
        return await self.plain(decoded, depth)

    async def _encoding(self, encoding: ua.NodeId) -> Codec:
        """Return the codec of a structure by its encoding; read its type from the server when it is new."""
        async with self._learning:
            if encoding not in self._encodings and (cls := _BASE_ENCODINGS.get(encoding)) is not None:
                self._encodings[encoding] = _base_structure(cls)
            if encoding not in self._encodings:
                if len(self._encodings) > _MOST_TYPES:
                    raise Refused("unreadable", "the server has too many encodings")
                node = self._nodes.get_node(encoding)
                types = await references(node, ua.ObjectIds.HasEncoding, ua.BrowseDirection.Inverse)
                if not types:
                    raise Refused(
                        "unreadable",
                        Text.of("the server does not say what {string} encodes", string=encoding.to_string()),
                    )
                self._encodings[encoding] = await self._known(types[0].NodeId)
            return self._encodings[encoding]

    async def _known(self, type_id: ua.NodeId) -> Codec:
        known = dict(self._types)
        try:
            return await self._type(type_id, 0)
        except BaseException:
            # An incomplete codec must not be used the next time.
            self._types = known
            raise

    async def _type(self, type_id: ua.NodeId, depth: int) -> Codec:
        """Return the codec of a data type; read it from the server when it is new."""
        if type_id not in self._types:
            if depth > MAX_DEPTH or len(self._types) > _MOST_TYPES:
                raise Refused(
                    "unreadable",
                    Text.of("there is no end of the types that {string} is made of", string=type_id.to_string()),
                )
            if (codec := _base_type(type_id)) is not None:
                self._types[type_id] = codec
            else:
                await self._learn(type_id, depth)
        return self._types[type_id]

    async def _learn(self, type_id: ua.NodeId, depth: int) -> None:
        definition = await self._definition(type_id)
        if definition is None:
            # An enumeration, or a subtype without own encoding: it is encoded as its base type.
            self._types[type_id] = await self._type(await self._parent(type_id), depth + 1)
            return
        structure = StructureCodec(dict.get, dict, [], has_mask=False)
        self._types[type_id] = Codec(partial(_encode_fields, structure), structure.decode)
        for kind, field in await self._fields(type_id, definition):
            codec = await self._type(field.DataType, depth + 1)
            if field.ValueRank > 1:
                raise Refused(
                    "unreadable",
                    Text.of("{string}.{name} has more than one dimension", string=type_id.to_string(), name=field.Name),
                )
            if kind is ua.StructureType.StructureWithSubtypedValues and field.IsOptional:
                codec = _subtyped(codec, await self._encoding_id(field.DataType))
            if field.ValueRank == 1:
                codec = array(codec)
            has_mask = kind is ua.StructureType.StructureWithOptionalFields
            structure.has_mask |= has_mask
            structure.fields.append(Field(field.Name, codec, has_mask and field.IsOptional))

    async def _fields(
        self, type_id: ua.NodeId, definition: ua.StructureDefinition, depth: int = 0
    ) -> list[tuple[ua.StructureType, ua.StructureField]]:
        """Return the fields of a structure, each with the kind of structure that defines it, the inherited ones first.

        Some servers include those in the definition of the derived type too, others only in that of its base.
        """
        kind = definition.StructureType
        if kind in {ua.StructureType.Union, ua.StructureType.UnionWithSubtypedValues}:
            problem = Text.of(
                "{type} is a {kind}: only structures with fixed or optional fields can be read",
                type=type_id.to_string(),
                kind=kind.name,
            )
            raise Refused("unreadable", problem)
        if depth > MAX_DEPTH:
            raise Refused(
                "unreadable", Text.of("there is no end of what {string} is derived from", string=type_id.to_string())
            )
        own = {field.Name for field in definition.Fields}
        base_id = await self._parent(type_id)
        # Some servers define the abstract Structure too, without fields: no structure inherits any from there.
        base = await self._definition(base_id) if base_id != _STRUCTURE else None
        inherited = await self._fields(base_id, base, depth + 1) if base else []
        return [row for row in inherited if row[1].Name not in own] + [(kind, value) for value in definition.Fields]

    async def _definition(self, type_id: ua.NodeId) -> ua.StructureDefinition | None:
        """Return the definition of a structure; None for another type. Raises Refused when a structure has none."""
        node = self._nodes.get_node(type_id)
        attribute = await node.read_attribute(ua.AttributeIds.DataTypeDefinition, raise_on_bad_status=False)
        definition = attribute.Value.Value if attribute.Value else None
        if isinstance(definition, ua.StructureDefinition):
            return definition
        if await self._parent(type_id) == _STRUCTURE:
            raise Refused(
                "unreadable", Text.of("the server does not define the structure {string}", string=type_id.to_string())
            )
        return None

    async def _parent(self, type_id: ua.NodeId) -> ua.NodeId:
        node = self._nodes.get_node(type_id)
        parents = await references(node, ua.ObjectIds.HasSubtype, ua.BrowseDirection.Inverse)
        if not parents:
            raise Refused(
                "unreadable",
                Text.of("the server does not say what {string} is derived from", string=type_id.to_string()),
            )
        return parents[0].NodeId

    async def _builtin(self, type_id: ua.NodeId) -> ua.VariantType:
        for _ in range(MAX_DEPTH):
            if (kind := _builtin_kind(type_id)) is not None:
                return kind
            type_id = await self._parent(type_id)
        raise Refused(
            "unreadable", Text.of("there is no end of what {string} is derived from", string=type_id.to_string())
        )

    async def _encoding_id(self, type_id: ua.NodeId) -> ua.NodeId | None:
        """Return the binary encoding of a structure; None for another type."""
        if type_id not in self._encoding_ids:
            found = await references(self._nodes.get_node(type_id), ua.ObjectIds.HasEncoding)
            binary = [value.NodeId for value in found if value.BrowseName.Name == "Default Binary"]
            self._encoding_ids[type_id] = binary[0] if binary else None
        return self._encoding_ids[type_id]


def _fields_of(structure: Any) -> Iterator[tuple[str, Any]]:
    """Yield the present fields of a structure that asyncua has decoded.

    Structures of the base namespace have the same index everywhere. Others come here when another part of this process
    made asyncua load their types; their field mask is not a field.
    """
    for field in dataclasses.fields(structure):
        value = getattr(structure, field.name)
        if value is not None and field.name != "Encoding":
            yield field.name, value


def _utf8(text: str) -> str:
    r"""Return a text with its invalid UTF-8 as `\xff`: asyncua decodes it to surrogates, which cannot be encoded.

    Different bytes stay different: the text may identify a result or a part.
    """
    return text if text.isascii() else text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _builtin_kind(type_id: ua.NodeId) -> ua.VariantType | None:
    """Return the encoding of a type when the specification defines it; else the server must."""
    kind = _ON_THE_WIRE.get(type_id.Identifier, type_id.Identifier)
    # The types of the base namespace have numbers; a server may say that one has a name.
    if type_id.NamespaceIndex != 0 or not isinstance(kind, int) or kind > _HIGHEST_BUILTIN:
        return None
    return ua.VariantType(kind)


def _base_type(type_id: ua.NodeId) -> Codec | None:
    """Return the codec of a type of the base namespace, whose index and structures are the same in every server."""
    if type_id.NamespaceIndex != 0:
        return None
    if type_id in _BASE_STRUCTURES:
        return _base_structure(_BASE_STRUCTURES[type_id])
    kind = _builtin_kind(type_id)
    return None if kind is None else _builtin(kind)


def _base_structure(cls: type) -> Codec:
    decode = partial(decode_with_asyncua, partial(struct_from_binary, cls), cls.__name__)
    return Codec(partial(_write_base_structure, cls), decode)


def _builtin(kind: ua.VariantType) -> Codec:
    return Codec(partial(_write_builtin, kind), builtin(kind).decode)


def _write_base_structure(cls: type, value: Any) -> bytes:
    written: bytes = struct_to_binary(value if isinstance(value, cls) else cls(**(value or {})))
    return written


def _write_builtin(kind: ua.VariantType, value: Any) -> bytes:
    written: bytes = pack_uatype(kind, _builtin_value(kind, value))
    return written


def _builtin_value(kind: ua.VariantType, value: Any) -> Any:
    """Convert plain Python to the types of asyncua."""
    match kind, value:
        case ua.VariantType.Variant, ua.Variant():
            return value
        case ua.VariantType.Variant, _:
            return ua.Variant(value)
        case ua.VariantType.ExtensionObject, None:
            return ua.ExtensionObject()
        case ((ua.VariantType.String | ua.VariantType.ByteString | ua.VariantType.XmlElement), None):
            return None
        case _, None:
            return ua.get_default_value(kind)
        case ua.VariantType.LocalizedText, str():
            return ua.LocalizedText(value)
        case ua.VariantType.QualifiedName, str():
            return ua.QualifiedName(value)
        case ((ua.VariantType.NodeId | ua.VariantType.ExpandedNodeId), str()):
            return ua.NodeId.from_string(value)
        case ua.VariantType.Guid, str():
            return UUID(value)
        case _:
            return value


def _variant_of(value: Any, kind: ua.VariantType) -> ua.Variant:
    return value if kind is ua.VariantType.Variant else ua.Variant(value, kind)


def _subtyped(codec: Codec, encoding: ua.NodeId | None) -> Codec:
    """Return the codec of a field that allows subtypes: its value names its type (OPC 10000-6, 5.2.7.5)."""
    if encoding is None:
        return _builtin(ua.VariantType.Variant)

    def write(value: Any) -> bytes:
        held = value.Value if isinstance(value, ua.Variant) else value
        if not isinstance(held, ua.ExtensionObject):
            held = ua.ExtensionObject(TypeId=encoding, Body=codec.encode(held))
        return _write_builtin(ua.VariantType.ExtensionObject, held)

    return Codec(write, builtin(ua.VariantType.ExtensionObject).decode)


def _encode_fields(structure: StructureCodec, value: Mapping[str, Any] | None) -> bytes:
    """Encode a structure from its fields by name. Raises Refused(`unwritable`) for a field it does not have."""
    fields = dict(value or {})
    if unknown := fields.keys() - {field.name for field in structure.fields}:
        raise Refused("unwritable", Text.of("a structure has no field {unknown}", unknown=", ".join(sorted(unknown))))
    return structure.encode(fields)
