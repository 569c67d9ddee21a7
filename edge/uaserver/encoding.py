"""Writes and reads the ISA-95 data types in OPC UA binary (OPC 10000-6, 5.2) by one table.

asyncua could do this with classes it makes from the nodes of a server, but it keeps those for the whole
process under their namespace *index*: a client to a camera, in the same process, would replace ours by its
own (github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1700, 1800). Bytes we write ourselves cannot be
taken from us.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from asyncua import ua
from asyncua.common.utils import Buffer

from edge.model.isa95 import (
    Equipment,
    EUInformation,
    JobOrder,
    JobOrderAndState,
    JobResponse,
    Material,
    Parameter,
    Payload,
    Personnel,
    PhysicalAsset,
    Property,
    State,
    WorkMaster,
)
from edge.uaserver.codec import (
    BROWSE_PATH,
    DATE_TIME,
    INT16,
    INT32,
    LOCALIZED_TEXT,
    LOCALIZED_TEXTS,
    MAX_DEPTH,
    STRING,
    UINT32,
    Codec,
    DecodeError,
    array,
)
from edge.uaserver.namespaces import Namespace
from edge.uaserver.variant import VARIANT

P = TypeVar("P", bound=Payload)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a structure: its attribute in the model, how it is written, whether it may be absent."""

    name: str
    codec: Codec
    optional: bool = False


def extension_object(value: Payload) -> ua.ExtensionObject:
    """Encode a structure once, so that it can be sent as often as it is read."""
    return ua.ExtensionObject(TypeId=ENCODING_ID[type(value)], Body=encode_structure(value))


def encode_structure(value: Payload) -> bytes:
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
            parts.append(field.codec.pack(content))
    if bit > 1:
        parts[0] = UINT32.pack(mask)
    return b"".join(parts)


def decode_structure(kind: type[P], content: object) -> P:
    """Read a structure of this kind from the value of an argument. Raises Unreadable."""
    if not isinstance(content, ua.ExtensionObject) or content.TypeId != ENCODING_ID[kind]:
        raise DecodeError(f"it is no {kind.__name__}")
    data = Buffer(content.Body or b"")
    read = read_structure(kind, data, 0)
    if data:
        raise DecodeError(f"{len(data)} bytes follow the {kind.__name__}")
    return read


def read_structure(kind: type[P], data: Buffer, depth: int) -> P:
    """Read a structure and what is nested in it. Raises Unreadable."""
    if depth > MAX_DEPTH:
        raise DecodeError(f"it is nested more than {MAX_DEPTH} deep")
    fields = STRUCTURES[kind]
    mask = UINT32.read(data, depth) if any(field.optional for field in fields) else 0
    values: dict[str, Any] = {}
    for field in fields:
        present = True
        if field.optional:
            present, mask = bool(mask & 1), mask >> 1
        if present:
            values[field.name] = field.codec.read(data, depth + 1)
    if mask:
        raise DecodeError(f"its mask announces fields that a {kind.__name__} does not have")
    return kind(**values)


def _structure(kind: type[Payload]) -> Codec:
    return Codec(encode_structure, partial(read_structure, kind))


def _structures(kind: type[Payload]) -> Codec:
    return array(_structure(kind))


def _resource(use: str) -> tuple[Field, ...]:
    return (
        Field("id", STRING),
        Field("description", LOCALIZED_TEXTS, optional=True),
        Field(use, STRING, optional=True),
        Field("quantity", STRING, optional=True),
        Field("engineering_units", _structure(EUInformation), optional=True),
        Field("properties", _structures(Property), optional=True),
    )


def _named_value(nested: str, kind: type[Payload]) -> tuple[Field, ...]:
    return (
        Field("id", STRING),
        Field("value", VARIANT),
        Field("description", LOCALIZED_TEXTS, optional=True),
        Field("engineering_units", _structure(EUInformation), optional=True),
        Field(nested, _structures(kind), optional=True),
    )


# Fields in the order of their DataTypeDefinition (OPC 10031-4, annex A; EUInformation: OPC 10000-8, 5.6.4.3).
STRUCTURES: Mapping[type[Payload], tuple[Field, ...]] = MappingProxyType(
    {
        EUInformation: (
            Field("namespace_uri", STRING),
            Field("unit_id", INT32),
            Field("display_name", LOCALIZED_TEXT),
            Field("description", LOCALIZED_TEXT),
        ),
        Parameter: _named_value("subparameters", Parameter),
        Property: _named_value("subproperties", Property),
        WorkMaster: (
            Field("id", STRING),
            Field("description", LOCALIZED_TEXT, optional=True),
            Field("parameters", _structures(Parameter), optional=True),
        ),
        Equipment: _resource("equipment_use"),
        Personnel: _resource("personnel_use"),
        PhysicalAsset: _resource("physical_asset_use"),
        Material: (
            Field("material_class_id", STRING, optional=True),
            Field("material_definition_id", STRING, optional=True),
            Field("material_lot_id", STRING, optional=True),
            Field("material_sublot_id", STRING, optional=True),
            Field("description", LOCALIZED_TEXTS, optional=True),
            Field("material_use", STRING, optional=True),
            Field("quantity", STRING, optional=True),
            Field("engineering_units", _structure(EUInformation), optional=True),
            Field("properties", _structures(Property), optional=True),
        ),
        State: (
            Field("browse_path", BROWSE_PATH),
            Field("state_text", LOCALIZED_TEXT),
            Field("state_number", UINT32),
        ),
        JobOrder: (
            Field("job_order_id", STRING),
            Field("description", LOCALIZED_TEXTS, optional=True),
            Field("work_master_id", _structures(WorkMaster), optional=True),
            Field("start_time", DATE_TIME, optional=True),
            Field("end_time", DATE_TIME, optional=True),
            Field("priority", INT16, optional=True),
            Field("job_order_parameters", _structures(Parameter), optional=True),
            Field("personnel_requirements", _structures(Personnel), optional=True),
            Field("equipment_requirements", _structures(Equipment), optional=True),
            Field("physical_asset_requirements", _structures(PhysicalAsset), optional=True),
            Field("material_requirements", _structures(Material), optional=True),
        ),
        JobOrderAndState: (
            Field("job_order", _structure(JobOrder)),
            Field("state", _structures(State)),
        ),
        JobResponse: (
            Field("job_response_id", STRING),
            Field("description", LOCALIZED_TEXT, optional=True),
            Field("job_order_id", STRING),
            Field("start_time", DATE_TIME, optional=True),
            Field("end_time", DATE_TIME, optional=True),
            Field("job_state", _structures(State)),
            Field("job_response_data", _structures(Parameter), optional=True),
            Field("personnel_actuals", _structures(Personnel), optional=True),
            Field("equipment_actuals", _structures(Equipment), optional=True),
            Field("physical_asset_actuals", _structures(PhysicalAsset), optional=True),
            Field("material_actuals", _structures(Material), optional=True),
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
