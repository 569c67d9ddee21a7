"""Decodes the values of an OPC UA server into plain Python, structures by the definitions that the server gives.

asyncua can decode structures too, with classes it makes of the definitions, but it keeps those for the whole process
under their namespace *index*: two servers with different indexes would read each other's structures
(github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1800). What is learned here belongs to one session.
"""

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any
from uuid import UUID

from asyncua import Client, ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import Primitives, struct_from_binary, unpack_uatype

from edge.errors import Refused

Read = Callable[[Buffer], Any]

_HIGHEST_BUILTIN = 25
# Abstract types, and what a value of them is on the wire (OPC 10000-6, 5.1.2 and 5.2.4).
_ON_THE_WIRE = {
    ua.ObjectIds.Number: ua.VariantType.Variant,
    ua.ObjectIds.Integer: ua.VariantType.Variant,
    ua.ObjectIds.UInteger: ua.VariantType.Variant,
    ua.ObjectIds.Enumeration: ua.VariantType.Int32,
}
# asyncua has its own classes for these; it is asked before any other server's types can stand beside them.
_BASE_STRUCTURES = {
    data_type: each
    for each in vars(ua).values()
    if dataclasses.is_dataclass(each) and (data_type := getattr(each, "data_type", None)) is not None
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Read
    optional: bool


@dataclasses.dataclass(slots=True)
class _Structure:
    """The fields of a structure in their order; a structure may hold itself, so they come after it is known."""

    has_mask: bool
    fields: list[_Field] = dataclasses.field(default_factory=list)

    def read(self, data: Buffer) -> dict[str, Any]:
        """Read the mask of the optional fields, if it has one, then its fields (OPC 10000-6, 5.2.7)."""
        present = Primitives.UInt32.unpack(data) if self.has_mask else 0
        values: dict[str, Any] = {}
        for field in self.fields:
            if not field.optional or present & 1:
                values[field.name] = field.read(data)
            present >>= field.optional
        return values


class Structures:
    """Knows how the structures of one server are encoded, from the first time it meets each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._types: dict[ua.NodeId, Read] = {}
        self._encodings: dict[ua.NodeId, Read] = {}
        self._learning = asyncio.Lock()

    async def plain(self, value: Any) -> Any:
        """Give a value without the types of OPC UA.

        A structure is a dict without its absent fields, a LocalizedText or QualifiedName its text, a NodeId, Guid or
        StatusCode text, an enumeration its number, an instant has the time zone UTC. Raises Refused(`unreadable`) for
        a structure that we cannot decode.
        """
        match value:
            case list() | tuple():
                return [await self.plain(each) for each in value]
            case dict():
                return {name: await self.plain(each) for name, each in value.items()}
            case ua.Variant() | ua.DataValue():
                return await self.plain(value.Value)
            case ua.ExtensionObject():
                return await self._structure(value)
            case ua.LocalizedText():
                return value.Text or ""
            case ua.QualifiedName():
                return value.Name
            case ua.StatusCode():
                return value.name
            case ua.NodeId():
                return value.to_string()
            case UUID():
                return str(value)
            case Enum():
                return value.value
            case datetime():
                return value.replace(tzinfo=UTC) if value.tzinfo is None else value
            case _ if dataclasses.is_dataclass(value):
                # A structure of the base namespace, which asyncua has decoded: those have the same index everywhere.
                fields = dataclasses.fields(value)
                return {each.name: await self.plain(getattr(value, each.name)) for each in fields}
            case _:
                return value

    async def _structure(self, value: ua.ExtensionObject) -> Any:
        if value.Body is None:
            return None
        read = await self._encoding(value.TypeId)
        try:
            decoded = read(Buffer(value.Body))
        except (ua.UaError, ValueError) as error:
            message = f"a structure with encoding {value.TypeId.to_string()} is not as defined: {error}"
            raise Refused("unreadable", message) from error
        return await self.plain(decoded)

    async def _encoding(self, encoding: ua.NodeId) -> Read:
        """Give what reads a structure of that encoding, learning its type from the server when it is new."""
        async with self._learning:
            if encoding not in self._encodings:
                node = self._client.get_node(encoding)
                types = await node.get_references(ua.ObjectIds.HasEncoding, ua.BrowseDirection.Inverse)
                if not types:
                    raise Refused("unreadable", f"the server does not say what {encoding.to_string()} encodes")
                known = dict(self._types)
                try:
                    self._encodings[encoding] = await self._type(types[0].NodeId)
                except BaseException:
                    # What was learned by half must not be taken for the whole next time.
                    self._types = known
                    raise
            return self._encodings[encoding]

    async def _type(self, type_id: ua.NodeId) -> Read:
        """Give what reads one value of a data type, learning it from the server when it is new."""
        if type_id not in self._types:
            if (known := _base_type(type_id)) is not None:
                self._types[type_id] = known
            else:
                await self._learn(type_id)
        return self._types[type_id]

    async def _learn(self, type_id: ua.NodeId) -> None:
        node = self._client.get_node(type_id)
        attribute = await node.read_attribute(ua.AttributeIds.DataTypeDefinition, raise_on_bad_status=False)
        definition = attribute.Value.Value if attribute.Value else None
        if not isinstance(definition, ua.StructureDefinition):
            # An enumeration, or another name for what it is derived from: on the wire it is that.
            (parent,) = await node.get_references(ua.ObjectIds.HasSubtype, ua.BrowseDirection.Inverse)
            if parent.NodeId == ua.NodeId(ua.ObjectIds.Structure):
                raise Refused("unreadable", f"the server does not define the structure {type_id.to_string()}")
            self._types[type_id] = await self._type(parent.NodeId)
            return
        with_options = definition.StructureType is ua.StructureType.StructureWithOptionalFields
        if not with_options and definition.StructureType is not ua.StructureType.Structure:
            what = f"{type_id.to_string()} is a {definition.StructureType.name}"
            raise Refused("unreadable", f"{what}: only structures with fixed or optional fields can be read")
        structure = _Structure(with_options)
        self._types[type_id] = structure.read
        for field in definition.Fields:
            read = await self._type(field.DataType)
            if field.ValueRank > 1:
                raise Refused("unreadable", f"{type_id.to_string()}.{field.Name} has more than one dimension")
            read = partial(_array, read) if field.ValueRank == 1 else read
            structure.fields.append(_Field(field.Name, read, with_options and field.IsOptional))


def _base_type(type_id: ua.NodeId) -> Read | None:
    """Give what reads a type of the base namespace, whose index and structures are the same in every server."""
    if type_id.NamespaceIndex != 0:
        return None
    if type_id in _BASE_STRUCTURES:
        return partial(struct_from_binary, _BASE_STRUCTURES[type_id])
    kind = _ON_THE_WIRE.get(type_id.Identifier, type_id.Identifier)
    return partial(unpack_uatype, ua.VariantType(kind)) if kind <= _HIGHEST_BUILTIN else None


def _array(read: Read, data: Buffer) -> list[Any]:
    return [read(data) for _ in range(max(Primitives.Int32.unpack(data), 0))]
