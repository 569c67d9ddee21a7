"""Writes the ISA-95 data types in OPC UA binary (OPC 10000-6, 5.2) by one table.

asyncua could do this with classes it makes from the nodes of a server, but it keeps those for the whole
process under their namespace *index*: a client to a camera, in the same process, would replace ours by its
own (github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1700, 1800). Bytes we write ourselves cannot be
taken from us.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

import msgspec
from asyncua import ua
from asyncua.ua.ua_binary import Primitives, nodeid_to_binary, variant_to_binary

from edge.model.isa95 import (
    BrowseName,
    Equipment,
    EUInformation,
    JobOrder,
    JobOrderAndState,
    JobResponse,
    LocalizedText,
    Material,
    Parameter,
    Payload,
    Personnel,
    PhysicalAsset,
    Property,
    State,
    WorkMaster,
)
from edge.uaserver.namespaces import OFFICIAL_URI, Namespace

Pack = Callable[[Any], bytes]

_LENGTH = struct.Struct("<i")
# A sub-state machine is a component of the state machine: forward, subtypes of the reference count too.
_ANY_COMPONENT: bytes = nodeid_to_binary(ua.NodeId(ua.ObjectIds.HasComponent)) + b"\0\1"
_NAMESPACE_OF = {"": Namespace.UA, **{uri: namespace for namespace, uri in OFFICIAL_URI.items()}}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a structure: its attribute in the model, how it is written, whether it may be absent."""

    name: str
    pack: Pack
    optional: bool = False


def extension_object(value: Payload) -> ua.ExtensionObject:
    """Encode a structure once, so that it can be sent as often as it is read."""
    return ua.ExtensionObject(TypeId=ENCODING_ID[type(value)], Body=pack_structure(value))


def pack_structure(value: Payload) -> bytes:
    """Write a structure: the mask of the optional fields it has, if it can have any, then its fields."""
    fields = STRUCTURES[type(value)]
    mask = 0
    bit = 1
    parts = [b""]
    for field in fields:
        content = getattr(value, field.name)
        if field.optional:
            mask |= bit if content is not None else 0
            bit <<= 1
        if content is not None or not field.optional:
            parts.append(field.pack(content))
    if bit > 1:
        parts[0] = _uint32(mask)
    return b"".join(parts)


def variant(value: object) -> ua.Variant:
    """Say a JSON value in OPC UA's types, the same way every time.

    true/false is Boolean, an integer Int64 (beyond that UInt64, then Double), a number with a fraction
    Double, text String, an instant DateTime, bytes ByteString, null the empty variant. A list of values of
    one such type is an array of it (integers among fractions become fractions), an empty or mixed one an
    array of variants. An object, or a list that holds objects or lists, is a String with its JSON text: OPC
    UA has no type for it without a structure of its own.
    """
    if not isinstance(value, list | tuple):
        kind = _scalar_type(value)
        return ua.Variant(_as_json(value), ua.VariantType.String) if kind is None else ua.Variant(value, kind)
    kinds = {_scalar_type(item) for item in value}
    if None in kinds:
        return ua.Variant(_as_json(value), ua.VariantType.String)
    if kinds == {ua.VariantType.Int64, ua.VariantType.Double}:
        return ua.Variant([float(item) for item in value], ua.VariantType.Double, is_array=True)
    if len(kinds) == 1 and kinds != {ua.VariantType.Null}:
        return ua.Variant(list(value), kinds.pop(), is_array=True)
    return ua.Variant([variant(item) for item in value], ua.VariantType.Variant, is_array=True)


def _scalar_type(value: object) -> ua.VariantType | None:
    match value:
        case None:
            return ua.VariantType.Null
        case bool():
            return ua.VariantType.Boolean
        case int() if -(1 << 63) <= value < 1 << 63:
            return ua.VariantType.Int64
        case int() if 0 <= value < 1 << 64:
            return ua.VariantType.UInt64
        case int() | float():
            return ua.VariantType.Double
        case str():
            return ua.VariantType.String
        case datetime():
            return ua.VariantType.DateTime
        case bytes():
            return ua.VariantType.ByteString
        case _:
            return None


def _as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _variant(value: object) -> bytes:
    packed: bytes = variant_to_binary(variant(value))
    return packed


def _array(pack: Pack) -> Pack:
    def pack_array(values: Sequence[Any]) -> bytes:
        return _LENGTH.pack(len(values)) + b"".join([pack(value) for value in values])

    return pack_array


def _integer(code: str) -> Pack:
    # JSON knows no widths: a number that does not fit is the nearest that does, rather than no list at all.
    form = struct.Struct(f"<{code}")
    values = 1 << 8 * form.size
    lowest = -values // 2 if code.islower() else 0
    highest = lowest + values - 1

    def pack_integer(value: int) -> bytes:
        return form.pack(min(max(value, lowest), highest))

    return pack_integer


def _localized_text(value: LocalizedText | None) -> bytes:
    if value is None:
        return b"\0"
    mask = (1 if value.locale else 0) | (2 if value.text else 0)
    return bytes((mask,)) + b"".join([_string(text) for text in (value.locale, value.text) if text])


def _relative_path_element(value: BrowseName) -> bytes:
    # ReferenceTypeId, IsInverse, IncludeSubtypes, TargetName
    return _ANY_COMPONENT + _uint16(_NAMESPACE_OF[value.namespace_uri]) + _string(value.name)


_string: Pack = Primitives.String.pack
_date_time: Pack = Primitives.DateTime.pack
_int16 = _integer("h")
_uint16 = _integer("H")
_int32 = _integer("i")
_uint32 = _integer("I")
_structures = _array(pack_structure)
_localized_texts = _array(_localized_text)


def _resource(use: str) -> tuple[Field, ...]:
    return (
        Field("id", _string),
        Field("description", _localized_texts, optional=True),
        Field(use, _string, optional=True),
        Field("quantity", _string, optional=True),
        Field("engineering_units", pack_structure, optional=True),
        Field("properties", _structures, optional=True),
    )


def _named_value(nested: str) -> tuple[Field, ...]:
    return (
        Field("id", _string),
        Field("value", _variant),
        Field("description", _localized_texts, optional=True),
        Field("engineering_units", pack_structure, optional=True),
        Field(nested, _structures, optional=True),
    )


# Fields in the order of their DataTypeDefinition (OPC 10031-4, annex A; EUInformation: OPC 10000-8, 5.6.4.3).
STRUCTURES: Mapping[type[Payload], tuple[Field, ...]] = MappingProxyType(
    {
        EUInformation: (
            Field("namespace_uri", _string),
            Field("unit_id", _int32),
            Field("display_name", _localized_text),
            Field("description", _localized_text),
        ),
        Parameter: _named_value("subparameters"),
        Property: _named_value("subproperties"),
        WorkMaster: (
            Field("id", _string),
            Field("description", _localized_text, optional=True),
            Field("parameters", _structures, optional=True),
        ),
        Equipment: _resource("equipment_use"),
        Personnel: _resource("personnel_use"),
        PhysicalAsset: _resource("physical_asset_use"),
        Material: (
            Field("material_class_id", _string, optional=True),
            Field("material_definition_id", _string, optional=True),
            Field("material_lot_id", _string, optional=True),
            Field("material_sublot_id", _string, optional=True),
            Field("description", _localized_texts, optional=True),
            Field("material_use", _string, optional=True),
            Field("quantity", _string, optional=True),
            Field("engineering_units", pack_structure, optional=True),
            Field("properties", _structures, optional=True),
        ),
        State: (
            Field("browse_path", _array(_relative_path_element)),
            Field("state_text", _localized_text),
            Field("state_number", _uint32),
        ),
        JobOrder: (
            Field("job_order_id", _string),
            Field("description", _localized_texts, optional=True),
            Field("work_master_id", _structures, optional=True),
            Field("start_time", _date_time, optional=True),
            Field("end_time", _date_time, optional=True),
            Field("priority", _int16, optional=True),
            Field("job_order_parameters", _structures, optional=True),
            Field("personnel_requirements", _structures, optional=True),
            Field("equipment_requirements", _structures, optional=True),
            Field("physical_asset_requirements", _structures, optional=True),
            Field("material_requirements", _structures, optional=True),
        ),
        JobOrderAndState: (
            Field("job_order", pack_structure),
            Field("state", _structures),
        ),
        JobResponse: (
            Field("job_response_id", _string),
            Field("description", _localized_text, optional=True),
            Field("job_order_id", _string),
            Field("start_time", _date_time, optional=True),
            Field("end_time", _date_time, optional=True),
            Field("job_state", _structures),
            Field("job_response_data", _structures, optional=True),
            Field("personnel_actuals", _structures, optional=True),
            Field("equipment_actuals", _structures, optional=True),
            Field("physical_asset_actuals", _structures, optional=True),
            Field("material_actuals", _structures, optional=True),
        ),
    }
)

# The "Default Binary" encoding of each structure that stands in a list or in an event of its own.
ENCODING_ID: Mapping[type[Payload], ua.NodeId] = MappingProxyType(
    {
        JobOrder: ua.NodeId(5014, Namespace.ISA95),
        JobOrderAndState: ua.NodeId(5032, Namespace.ISA95),
        JobResponse: ua.NodeId(5026, Namespace.ISA95),
        State: ua.NodeId(5029, Namespace.ISA95),
        WorkMaster: ua.NodeId(5011, Namespace.ISA95),
    }
)
