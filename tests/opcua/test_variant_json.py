"""A JSON value has one OPC UA type; a value of any type is unchanged after encoding and decoding."""

import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from asyncua import ua
from asyncua.ua.ua_binary import variant_to_binary
from hypothesis import given
from hypothesis import strategies as st

from edge.model.json_value import plain_value
from edge.opcua.binary import BoundedBuffer, DecodeError, read_variant
from edge.opcua.variant_json import VARIANT, to_json, variant

T = ua.VariantType


@pytest.mark.parametrize(
    ("value", "kind", "content"),
    [
        (None, T.Null, None),
        (True, T.Boolean, True),
        (7, T.Int64, 7),
        (-(1 << 63), T.Int64, -(1 << 63)),
        (1 << 63, T.UInt64, 1 << 63),
        (1 << 64, T.Double, 1 << 64),
        (1.5, T.Double, 1.5),
        ("torque", T.String, "torque"),
        (b"\0\1", T.ByteString, b"\0\1"),
        ([1, 2], T.Int64, [1, 2]),
        ((True, False), T.Boolean, [True, False]),
        ([1, 2.5], T.Double, [1.0, 2.5]),
        (["a", "b"], T.String, ["a", "b"]),
        ([], T.Variant, []),
        ([None], T.Variant, [ua.Variant()]),
        (["a", 1], T.Variant, [ua.Variant("a", T.String), ua.Variant(1, T.Int64)]),
        ({"nominal": 42.5}, T.String, '{"nominal":42.5}'),
        ([[1, 2], [3, 4]], T.String, "[[1,2],[3,4]]"),
        ([{"a": 1}], T.String, '[{"a":1}]'),
    ],
    ids=repr,
)
def test_a_json_value_has_one_type(value: object, kind: ua.VariantType, content: object) -> None:
    made = variant(value)
    assert (made.VariantType, made.Value, made.is_array) == (kind, content, isinstance(content, list))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(), below, max_size=4),
    max_leaves=12,
)


@given(text=st.text())
def test_text_is_encoded_as_asyncua_encodes_its_variant(text: str) -> None:
    assert VARIANT.encode(text) == variant_to_binary(variant(text))


@given(value=json_values)
def test_json_value_is_unchanged_after_encoding_and_decoding(value: object) -> None:
    made = variant(value)
    assert variant(to_json(made)) == made


INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
STRUCTURE = ua.ExtensionObject(TypeId=ua.NodeId(5014, 5), Body=b"\1\2")

EXACT = [
    (ua.Variant(-5, T.SByte), {"UaType": 2, "Value": -5}),
    (ua.Variant(200, T.Byte), {"UaType": 3, "Value": 200}),
    (ua.Variant(-5, T.Int16), {"UaType": 4, "Value": -5}),
    (ua.Variant(7, T.UInt16), {"UaType": 5, "Value": 7}),
    (ua.Variant(7, T.Int32), {"UaType": 6, "Value": 7}),
    (ua.Variant(7, T.UInt32), {"UaType": 7, "Value": 7}),
    (ua.Variant(7, T.UInt64), {"UaType": 9, "Value": "7"}),
    (ua.Variant(1.5, T.Float), {"UaType": 10, "Value": 1.5}),
    (ua.Variant(math.inf, T.Double), {"UaType": 11, "Value": "Infinity"}),
    (ua.Variant(-math.inf, T.Float), {"UaType": 10, "Value": "-Infinity"}),
    (ua.Variant(None, T.String), {"UaType": 12, "Value": None}),
    (ua.Variant(INSTANT, T.DateTime), {"UaType": 13, "Value": "2026-01-02T03:04:05.678901Z"}),
    (
        ua.Variant(UUID("72962b91-fa75-4ae6-8d28-b404dc7daf63"), T.Guid),
        {"UaType": 14, "Value": "72962b91-fa75-4ae6-8d28-b404dc7daf63"},
    ),
    (ua.Variant(b"\0\xff", T.ByteString), {"UaType": 15, "Value": "AP8="}),
    (ua.Variant(None, T.ByteString), {"UaType": 15, "Value": None}),
    (ua.Variant(ua.XmlElement("<a/>"), T.XmlElement), {"UaType": 16, "Value": "<a/>"}),
    (ua.Variant(ua.NodeId("a;b", 2), T.NodeId), {"UaType": 17, "Value": "ns=2;s=a;b"}),
    (ua.Variant(ua.StatusCode(0x80010000), T.StatusCode), {"UaType": 19, "Value": {"Code": 0x80010000}}),
    (ua.Variant(ua.QualifiedName("a:b", 2), T.QualifiedName), {"UaType": 20, "Value": "2:a:b"}),
    (
        ua.Variant(ua.LocalizedText("Achse", "de"), T.LocalizedText),
        {"UaType": 21, "Value": {"Locale": "de", "Text": "Achse"}},
    ),
    (
        ua.Variant(STRUCTURE, T.ExtensionObject),
        {"UaType": 22, "Value": {"UaTypeId": "ns=5;i=5014", "UaEncoding": 1, "UaBody": "AQI="}},
    ),
    (ua.Variant([1, 2], T.Int32, is_array=True), {"UaType": 6, "Value": [1, 2]}),
    (ua.Variant([], T.Double, is_array=True), {"UaType": 11, "Value": []}),
    (ua.Variant(["a", None], T.String, is_array=True), {"UaType": 12, "Value": ["a", None]}),
    (ua.Variant([1, 2], T.Int64, [2, 1], is_array=True), {"UaType": 8, "Value": ["1", "2"], "Dimensions": [2, 1]}),
    (
        ua.Variant([ua.Variant(1, T.Int64), ua.Variant(2, T.Int64)], T.Variant, is_array=True),
        {"UaType": 24, "Value": [1, 2]},
    ),
    (
        ua.Variant([ua.Variant("a", T.String), ua.Variant(2, T.Int32)], T.Variant, is_array=True),
        {"UaType": 24, "Value": ["a", {"UaType": 6, "Value": 2}]},
    ),
]


class TestExactTypes:
    @pytest.mark.parametrize(("value", "stored"), EXACT, ids=lambda item: str(item)[:40])
    def test_type_without_a_json_equivalent_is_stored_with_the_value(self, value: ua.Variant, stored: Any) -> None:
        kept = to_json(read_variant(BoundedBuffer(variant_to_binary(value))))
        assert kept == stored
        through_the_store = msgspec.json.decode(msgspec.json.encode(kept))
        assert variant_to_binary(variant(through_the_store)) == variant_to_binary(value)

    def test_nan_is_unchanged_after_encoding_and_decoding(self) -> None:
        kept = to_json(ua.Variant(math.nan, T.Double))
        assert kept == {"UaType": 11, "Value": "NaN"}
        assert math.isnan(variant(kept).Value)

    def test_recipes_and_equipment_receive_the_value_without_its_type(self) -> None:
        assert plain_value({"UaType": 6, "Value": 7}) == 7
        assert plain_value({"UaType": 9, "Value": "7"}) == 7
        assert plain_value({"UaType": 24, "Value": ["a", {"UaType": 6, "Value": 2}]}) == ["a", 2]
        assert plain_value([{"UaType": 13, "Value": "2026-01-02T03:04:05Z"}]) == ["2026-01-02T03:04:05Z"]

    @pytest.mark.parametrize(
        "value",
        [
            {"UaType": 99, "Value": 1},
            {"UaType": "Int32", "Value": 1},
            {"UaType": 2, "Value": 1000},
            {"UaType": 6, "Value": "seven"},
            {"UaType": 6, "Value": None},
            {"UaType": 15, "Value": "no base64"},
            {"UaType": 22, "Value": {"UaTypeId": "nonsense"}},
            {"UaType": 6, "Value": [1, 2, 3], "Dimensions": [2, 2]},
            {"UaType": 6, "Value": 1, "more": True},
        ],
        ids=str,
    )
    def test_inconsistent_type_object_is_read_as_a_plain_object(self, value: dict[str, object]) -> None:
        assert variant(value) == ua.Variant(msgspec.json.encode(value).decode(), T.String)


class TestReading:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\x06\1\2",  # an Int32 of two bytes
            b"\x80\xff\xff\xff\x7f",  # an array of 2147483647 nulls
            b"\x86\xff\xff\xff\x7f",  # an array of 2147483647 integers
            b"\x0c\xff\xff\xff\x7f",  # a text of 2147483647 bytes
            b"\x0c\2\0\0\0\xff\xfe",  # a text that is not UTF-8
            b"\x17\0",  # a data value
            b"\x19\0",  # diagnostics
            b"\x3f",  # an unknown type
            b"\x18\1\1",  # a variant in a variant
            b"\x98\1\0\0\0" * 200,  # nested arrays of variants
            b"\xc6\1\0\0\0\7\0\0\0\1\0\0\0\xff\xff\xff\x7f",  # one integer in a giant matrix
            b"\x16\x3f",  # a structure of a malformed type
            b"\x16\0\0\2",  # a structure in XML
        ],
        ids=lambda data: data[:12].hex(),
    )
    def test_malformed_variant_is_unreadable(self, data: bytes) -> None:
        with pytest.raises(DecodeError):
            to_json(read_variant(BoundedBuffer(data)))

    @given(st.binary(max_size=64))
    def test_arbitrary_bytes_are_decoded_or_unreadable(self, data: bytes) -> None:
        try:
            value = to_json(read_variant(BoundedBuffer(data)))
        except DecodeError:
            return
        variant(msgspec.json.decode(msgspec.json.encode(value)))
