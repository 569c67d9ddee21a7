"""Convert JSON values to variants and back without loss of their types.

A JSON value has one type in OPC UA (`variant`). A variant of just that type is kept as the plain value; any other as
the JSON object that OPC 10000-6, 5.4.2.17 writes for a variant, `{"UaType": 6, "Value": 7}` for an Int32 (`to_json`),
which `variant` reads again. For the value alone use `plain_value` of the model.
"""

import base64
import math
import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
from asyncua import ua
from asyncua.ua.ua_binary import variant_to_binary
from msgspec import Struct

from edge.model.instant import as_utc
from edge.model.json_value import ExactValue, exact_value
from edge.opcua.binary import STRING, BoundedBuffer, Codec, DecodeError, read_variant

T = ua.VariantType


def variant(value: object) -> ua.Variant:
    """Return a JSON value as a variant, always of the same type.

    true/false is Boolean, an integer Int64 (beyond that UInt64, then Double), a number with a fraction Double, text
    String, an instant DateTime, bytes ByteString, null the empty variant. A list of values of one such type is an array
    of it (integers among fractions become fractions), an empty or mixed one an array of variants. An object in the form
    of `to_json` has the type that it names; any other object, or a list that holds objects or lists, is a String with
    its JSON text: OPC UA has no type for it without a structure.
    """
    if (exact := exact_value(value)) and (made := _from_exact(exact)) is not None:
        return made
    if not isinstance(value, list | tuple):
        kind = _scalar_type(value)
        return ua.Variant(_as_json(value), T.String) if kind is None else ua.Variant(value, kind)
    kinds = {_scalar_type(item) for item in value}
    if None in kinds:
        return ua.Variant(_as_json(value), T.String)
    if kinds == {T.Int64, T.Double}:
        return ua.Variant([float(item) for item in value], T.Double, is_array=True)
    if len(kinds) == 1 and kinds != {T.Null}:
        return ua.Variant(list(value), kinds.pop(), is_array=True)
    return ua.Variant([variant(item) for item in value], T.Variant, is_array=True)


def to_json(value: ua.Variant) -> Any:
    """Return the JSON value from which `variant` makes the same variant. Raises DecodeError for a DataValue."""
    if value.VariantType not in _JSON_FORMS and value.VariantType is not T.Null:
        raise DecodeError(f"a {value.VariantType.name} has no form in JSON")
    if value.Value is None:
        return None if value.VariantType is T.Null else ExactValue(value.VariantType.value, None).as_json()
    plain = _plain(value)
    if not value.Dimensions and plain is not None and _same(variant(plain), value):
        return plain
    write = _JSON_FORMS[value.VariantType].write
    if value.is_array:
        content = [None if item is None else write(item) for item in value.Value]
        return ExactValue(value.VariantType.value, content, tuple(value.Dimensions or ())).as_json()
    return ExactValue(value.VariantType.value, write(value.Value)).as_json()


def _plain(value: ua.Variant) -> Any:
    if value.VariantType is T.Variant:
        return [to_json(item) for item in value.Value]
    if value.VariantType not in {T.Boolean, T.Int64, T.UInt64, T.Double, T.String}:
        return None
    plain = list(value.Value) if value.is_array else value.Value
    if value.VariantType is T.Double and not all(map(math.isfinite, plain if value.is_array else (plain,))):
        return None  # JSON has no infinity
    return plain


def _same(one: ua.Variant, other: ua.Variant) -> bool:
    return bool(one == other) and one.is_array == other.is_array


def _scalar_type(value: object) -> ua.VariantType | None:
    match value:
        case None:
            return T.Null
        case bool():
            return T.Boolean
        case int() if -(1 << 63) <= value < 1 << 63:
            return T.Int64
        case int() if 0 <= value < 1 << 64:
            return T.UInt64
        case int() | float():
            return T.Double
        case str():
            return T.String
        case datetime():
            return T.DateTime
        case bytes():
            return T.ByteString
        case _:
            return None


def _as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _from_exact(exact: ExactValue) -> ua.Variant | None:
    """Return the variant of an object in the form of `to_json`; None when it contradicts itself."""
    try:
        kind = T(exact.ua_type)
        read = _JSON_FORMS[kind].read
        if isinstance(exact.value, list):
            content: Any = [None if item is None else read(item) for item in exact.value]
            if exact.dimensions and math.prod(exact.dimensions) != len(content):
                return None
            made = ua.Variant(content, kind, list(exact.dimensions) or None, is_array=True)
        else:
            made = ua.Variant(None if exact.value is None else read(exact.value), kind)
        variant_to_binary(made)
    except (ua.UaError, ValueError, TypeError, KeyError, AttributeError, struct.error):
        return None
    return made


class _JsonForm(Struct, frozen=True):
    """How the values of one type are written in JSON, and read again."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


def _write_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_date_time(value: datetime) -> str:
    return as_utc(value).isoformat().replace("+00:00", "Z")


def _write_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _read_bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _read_node_id(text: str) -> ua.NodeId:
    found = ua.NodeId.from_string(text)
    # asyncua expects long numbers; the shortest notation restores the number.
    return found if isinstance(found, ua.ExpandedNodeId) else ua.NodeId(found.Identifier, found.NamespaceIndex)


def _write_name(value: ua.QualifiedName) -> str:
    return f"{value.NamespaceIndex}:{value.Name}"


def _read_name(text: str) -> ua.QualifiedName:
    index, _, name = text.partition(":")
    return ua.QualifiedName(name, int(index))


def _write_text(value: ua.LocalizedText) -> dict[str, str]:
    return {name: text for name, text in (("Locale", value.Locale), ("Text", value.Text)) if text is not None}


def _read_text(form: dict[str, str]) -> ua.LocalizedText:
    return ua.LocalizedText(form.get("Text"), form.get("Locale"))


def _write_object(value: ua.ExtensionObject) -> dict[str, Any]:
    form: dict[str, Any] = {"UaTypeId": value.TypeId.to_string()}
    return form if value.Body is None else form | {"UaEncoding": 1, "UaBody": _write_bytes(value.Body)}


def _read_object(form: dict[str, Any]) -> ua.ExtensionObject:
    body = form.get("UaBody")
    type_id = _read_node_id(form["UaTypeId"])
    return ua.ExtensionObject(TypeId=type_id, Body=None if body is None else _read_bytes(body))


_NUMBER = _JsonForm(_as_it_is, _as_it_is)
_LONG = _JsonForm(str, int)  # JSON readers elsewhere lose the digits of long integers
_FLOAT = _JsonForm(_write_float, float)
_NODE_ID = _JsonForm(lambda value: value.to_string(), _read_node_id)

_JSON_FORMS: Mapping[ua.VariantType, _JsonForm] = MappingProxyType(
    {
        **dict.fromkeys((T.Boolean, T.SByte, T.Byte, T.Int16, T.UInt16, T.Int32, T.UInt32, T.String), _NUMBER),
        **dict.fromkeys((T.Int64, T.UInt64), _LONG),
        **dict.fromkeys((T.Float, T.Double), _FLOAT),
        **dict.fromkeys((T.NodeId, T.ExpandedNodeId), _NODE_ID),
        T.DateTime: _JsonForm(_write_date_time, datetime.fromisoformat),
        T.Guid: _JsonForm(str, UUID),
        T.ByteString: _JsonForm(_write_bytes, _read_bytes),
        T.XmlElement: _JsonForm(lambda value: value.Value, ua.XmlElement),
        T.StatusCode: _JsonForm(lambda value: {"Code": value.value}, lambda form: ua.StatusCode(form["Code"])),
        T.QualifiedName: _JsonForm(_write_name, _read_name),
        T.LocalizedText: _JsonForm(_write_text, _read_text),
        T.ExtensionObject: _JsonForm(_write_object, _read_object),
        T.Variant: _JsonForm(to_json, variant),
    }
)


_STRING = struct.pack("<B", T.String.value)


def _encode_json(value: object) -> bytes:
    # Nearly every value of a job response is a text.
    if isinstance(value, str):
        return _STRING + STRING.encode(value)
    encoded: bytes = variant_to_binary(variant(value))
    return encoded


def _decode_json(data: BoundedBuffer) -> Any:
    data.enter()
    value = to_json(read_variant(data))
    data.leave()
    return value


VARIANT = Codec(_encode_json, _decode_json)
"""JSON values as variants."""
