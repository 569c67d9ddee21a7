"""The codec of single values and of structures; the ISA-95 tables are tested in tests/uaserver/test_encoding.py."""

import pytest
from asyncua import ua

from edge.model.isa95 import LocalizedText
from edge.opcua.binary import (
    INT16,
    INT32,
    LOCALIZED_TEXT,
    MAX_DEPTH,
    STRING,
    UINT32,
    BoundedBuffer,
    Codec,
    DecodeError,
    Field,
    StructureCodec,
    array,
    builtin,
)

NULL = b"\xff\xff\xff\xff"


def structure(*fields: Field, has_mask: bool = False) -> StructureCodec:
    return StructureCodec(dict.get, dict, list(fields), has_mask=has_mask)


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (INT16, -3),
        (INT32, 20053),
        (STRING, "Drehmoment ±"),
        (LOCALIZED_TEXT, LocalizedText(text="Achse", locale="de")),
        (LOCALIZED_TEXT, LocalizedText()),
        (array(LOCALIZED_TEXT), [LocalizedText(text="axle"), LocalizedText(locale="en")]),
        (array(LOCALIZED_TEXT), []),
        (builtin(ua.VariantType.Variant), ua.Variant([1, 2], ua.VariantType.Int32, is_array=True)),
    ],
    ids=["Int16", "Int32", "String", "text", "no text", "texts", "no texts", "variant"],
)
def test_encoded_values_decode_to_the_same(codec: Codec, value: object) -> None:
    assert codec.decode(BoundedBuffer(codec.encode(value))) == value


def test_null_string_and_null_array_decode_to_empty_values() -> None:
    assert STRING.decode(BoundedBuffer(NULL)) == ""
    assert array(STRING).decode(BoundedBuffer(NULL)) == []


def test_optional_fields_are_decoded_by_the_mask() -> None:
    codec = structure(Field("id", STRING), Field("size", INT32, optional=True), has_mask=True)
    for value in ({"id": "x"}, {"id": "x", "size": 3}):
        assert codec.decode(BoundedBuffer(codec.encode(value))) == value


def test_mask_bits_without_a_field_are_refused() -> None:
    with pytest.raises(DecodeError, match="bits without a field"):
        structure(Field("size", INT32, optional=True), has_mask=True).decode(BoundedBuffer(UINT32.encode(2)))


def test_nesting_deeper_than_the_limit_is_refused() -> None:
    nested = structure()
    nested.fields.append(Field("inner", array(Codec(nested.encode, nested.decode))))
    one = INT32.encode(1)
    with pytest.raises(DecodeError, match="levels deep"):
        nested.decode(BoundedBuffer(one * (MAX_DEPTH + 1) + b"\0" * 100))


def test_structures_without_bytes_are_counted() -> None:
    empty = structure()
    row = array(Codec(empty.encode, empty.decode))
    rows = b"".join(INT32.encode(900 - 4 * number) for number in range(20))
    with pytest.raises(DecodeError, match="more structures than bytes"):
        array(row).decode(BoundedBuffer(INT32.encode(20) + rows + b"\0" * 900))


def test_variants_nested_deeper_than_the_limit_are_refused() -> None:
    one_variant = b"\x98" + INT32.encode(1)
    with pytest.raises(DecodeError, match="levels deep"):
        builtin(ua.VariantType.Variant).decode(BoundedBuffer(one_variant * (MAX_DEPTH + 2) + b"\0"))


@pytest.mark.parametrize(
    "data",
    [b"", b"\x1a\0", b"\x80" + INT32.encode(9), b"\x0c" + INT32.encode(5) + b"ab", b"\x0c" + INT32.encode(1) + b"\xff"],
)
def test_malformed_variants_raise_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        builtin(ua.VariantType.Variant).decode(BoundedBuffer(data))


def test_data_values_in_a_variant_are_decoded() -> None:
    data = b"\x17" + b"\x03" + b"\x06" + INT32.encode(7) + UINT32.encode(0x80000000)
    value = builtin(ua.VariantType.Variant).decode(BoundedBuffer(data)).Value
    assert (value.Value.Value, value.StatusCode.is_bad()) == (7, True)
