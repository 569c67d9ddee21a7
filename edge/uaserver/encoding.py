"""The OPC UA binary codec of the ISA-95 data types (OPC 10031-4, annex A): one table for both directions."""

import functools
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from asyncua import ua
from asyncua.ua.ua_binary import nodeid_to_binary

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
    RelativePath,
    RelativePathElement,
    State,
    WorkMaster,
)
from edge.opcua.binary import (
    DATE_TIME,
    INT16,
    INT32,
    LOCALIZED_TEXT,
    STRING,
    UINT16,
    UINT32,
    BoundedBuffer,
    Codec,
    DecodeError,
    Field,
    StructureCodec,
    array,
    read_bytes,
    read_node_id,
)
from edge.opcua.variant_json import VARIANT
from edge.uaserver.namespaces import OFFICIAL_URI, Namespace

P = TypeVar("P", bound=Payload)


# A sub-state machine is a component of the state machine: forward reference, with subtypes.
_ANY_COMPONENT: bytes = nodeid_to_binary(ua.NodeId(ua.ObjectIds.HasComponent)) + b"\0\1"
_NAMESPACE_OF = {"": Namespace.UA, **{uri: namespace for namespace, uri in OFFICIAL_URI.items()}}
_URI_OF = {namespace.value: uri for uri, namespace in _NAMESPACE_OF.items()}


def extension_object(value: Payload) -> ua.ExtensionObject:
    """Encode a structure as an extension object; every read sends the same bytes."""
    return ua.ExtensionObject(TypeId=ENCODING_ID[type(value)], Body=encode_structure(value))


def encode_structure(value: Payload) -> bytes:
    """Encode a structure by the table of its type."""
    return STRUCTURES[type(value)].encode(value)


def decode_structure(kind: type[P], content: object) -> P:
    """Decode the value of an argument as a structure of this type. Raises DecodeError."""
    if not isinstance(content, ua.ExtensionObject) or content.TypeId != ENCODING_ID[kind]:
        raise DecodeError(f"not a {kind.__name__}")
    data = BoundedBuffer(content.Body or b"")
    decoded: P = STRUCTURES[kind].decode(data)
    if len(data):
        raise DecodeError(f"{len(data)} bytes after the end of the {kind.__name__}")
    return decoded


def job_order_id_of(content: ua.ExtensionObject) -> str:
    """Return the JobOrderID of an encoded job order; decode nothing else. Raises DecodeError."""
    if content.TypeId != ENCODING_ID[JobOrder]:
        raise DecodeError("not a JobOrder")
    data = BoundedBuffer(content.Body or b"")
    UINT32.decode(data)
    return str(STRING.decode(data))


def _structure(kind: type[Payload]) -> Codec:
    return Codec(encode_structure, partial(_decode_nested, kind))


def _decode_nested(kind: type[Payload], data: BoundedBuffer) -> Payload:
    # The codec is looked up at run time, as a parameter contains parameters.
    nested: Payload = STRUCTURES[kind].decode(data)
    return nested


def _structures(kind: type[Payload]) -> Codec:
    return _tuples(_structure(kind))


def _tuples(codec: Codec) -> Codec:
    values = array(codec)
    return Codec(values.encode, lambda data: tuple(values.decode(data)))


@functools.lru_cache(maxsize=64)
def encode_states(states: tuple[State, ...]) -> bytes:
    """Encode the states of a job: there are a dozen, in thousands of entries."""
    return _structures(State).encode(states)


_STATES = Codec(encode_states, _structures(State).decode)


def _encode_path_element(value: RelativePathElement) -> bytes:
    # ReferenceTypeId, IsInverse, IncludeSubtypes, TargetName
    namespace, name = "", value.target_name
    if name.startswith("nsu="):
        namespace, _, name = name.removeprefix("nsu=").partition(";")
    return _ANY_COMPONENT + UINT16.encode(_NAMESPACE_OF[namespace]) + STRING.encode(name)


def _decode_path_element(data: BoundedBuffer) -> RelativePathElement:
    read_node_id(data)
    read_bytes(data, 2)
    namespace = UINT16.decode(data)
    if namespace not in _URI_OF:
        raise DecodeError(f"a browse path is in namespace {namespace}, which has no states")
    uri, name = _URI_OF[namespace], STRING.decode(data)
    target = f"nsu={uri};{name}" if uri else name
    return RelativePathElement(reference_type_id="i=47", include_subtypes=True, target_name=target)


_PATH_ELEMENTS = _tuples(Codec(_encode_path_element, _decode_path_element))


def _encode_browse_path(value: RelativePath | None) -> bytes:
    return _PATH_ELEMENTS.encode(value.elements if value else ())


def _decode_browse_path(data: BoundedBuffer) -> RelativePath | None:
    elements = _PATH_ELEMENTS.decode(data)
    return RelativePath(elements=elements) if elements else None


_BROWSE_PATH = Codec(_encode_browse_path, _decode_browse_path)
_TEXTS = _tuples(LOCALIZED_TEXT)


def _resource(use: str) -> tuple[Field, ...]:
    return (
        Field("id", STRING),
        Field("description", _TEXTS, optional=True),
        Field(use, STRING, optional=True),
        Field("quantity", STRING, optional=True),
        Field("engineering_units", _structure(EUInformation), optional=True),
        Field("properties", _structures(Property), optional=True),
    )


def _named_value(nested: str, kind: type[Payload]) -> tuple[Field, ...]:
    return (
        Field("id", STRING),
        Field("value", VARIANT),
        Field("description", _TEXTS, optional=True),
        Field("engineering_units", _structure(EUInformation), optional=True),
        Field(nested, _structures(kind), optional=True),
    )


# The fields in the order of the DataTypeDefinition (OPC 10031-4, annex A; EUInformation: OPC 10000-8, 5.6.4.3).
_FIELDS: Mapping[type[Payload], tuple[Field, ...]] = MappingProxyType(
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
            Field("description", _TEXTS, optional=True),
            Field("material_use", STRING, optional=True),
            Field("quantity", STRING, optional=True),
            Field("engineering_units", _structure(EUInformation), optional=True),
            Field("properties", _structures(Property), optional=True),
        ),
        State: (
            Field("browse_path", _BROWSE_PATH),
            Field("state_text", LOCALIZED_TEXT),
            Field("state_number", UINT32),
        ),
        JobOrder: (
            Field("job_order_id", STRING),
            Field("description", _TEXTS, optional=True),
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
            Field("state", _STATES),
        ),
        JobResponse: (
            Field("job_response_id", STRING),
            Field("description", LOCALIZED_TEXT, optional=True),
            Field("job_order_id", STRING),
            Field("start_time", DATE_TIME, optional=True),
            Field("end_time", DATE_TIME, optional=True),
            Field("job_state", _STATES),
            Field("job_response_data", _structures(Parameter), optional=True),
            Field("personnel_actuals", _structures(Personnel), optional=True),
            Field("equipment_actuals", _structures(Equipment), optional=True),
            Field("physical_asset_actuals", _structures(PhysicalAsset), optional=True),
            Field("material_actuals", _structures(Material), optional=True),
        ),
    }
)


def _codec(kind: type[Payload], fields: tuple[Field, ...]) -> StructureCodec:
    has_mask = any(field.optional for field in fields)
    return StructureCodec(getattr, lambda values: kind(**values), list(fields), has_mask=has_mask)


STRUCTURES: Mapping[type[Payload], StructureCodec] = MappingProxyType(
    {kind: _codec(kind, fields) for kind, fields in _FIELDS.items()}
)

# The "Default Binary" encoding of each structure that is sent as an extension object of its own.
ENCODING_ID: Mapping[type[Payload], ua.NodeId] = MappingProxyType(
    {
        JobOrder: ua.NodeId(5014, Namespace.ISA95),
        JobOrderAndState: ua.NodeId(5032, Namespace.ISA95),
        JobResponse: ua.NodeId(5026, Namespace.ISA95),
        State: ua.NodeId(5029, Namespace.ISA95),
        WorkMaster: ua.NodeId(5011, Namespace.ISA95),
    }
)
