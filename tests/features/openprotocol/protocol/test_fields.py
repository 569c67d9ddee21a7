"""Data of Open Protocol are unchanged after encoding and decoding; invalid data are reported with their field."""

from datetime import datetime

import pytest

from edge.features.openprotocol.protocol.fields import DataField, FieldKind, decode_data, encode_data
from edge.foundation.errors import Refused

LAYOUT = (
    DataField("id", 3, number=1),
    DataField("name", 8, FieldKind.TEXT, number=2),
    DataField("torque", 6, FieldKind.HUNDREDTHS, number=3),
    DataField("time", 19, FieldKind.DATE),
    DataField("ids", 2, FieldKind.NUMBERS, count=3),
)
VALUES = {"id": 7, "name": "P1", "torque": 85.2, "time": datetime(2026, 5, 1, 12, 30), "ids": [1, 22]}  # noqa: DTZ001
RAW = b"0100702P1      030085202026-05-01:12:30:000020122"


def test_values_are_encoded_by_their_table() -> None:
    assert encode_data(LAYOUT, VALUES) == RAW
    assert decode_data(LAYOUT, RAW) == VALUES


def test_missing_values_are_zero_or_blank() -> None:
    raw = encode_data(LAYOUT, {})
    assert raw == b"0100002        03000000" + b" " * 19 + b"000"
    assert decode_data(LAYOUT, raw) == {"id": 0, "name": "", "torque": 0.0, "time": None, "ids": []}


def test_fields_of_a_later_revision_are_ignored() -> None:
    assert decode_data(LAYOUT, RAW + b"04whatever") == VALUES


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"0200702", "id: expected parameter 01"),
        (b"01x0702", "id: expected a number"),
        (b"0100702P1", "name: the message ends before it"),
        (RAW[:-2], "ids: the message ends before it"),
        (b"", "id: expected parameter 01"),
    ],
)
def test_invalid_data_is_reported_with_its_field(raw: bytes, field: str) -> None:
    with pytest.raises(Refused) as caught:
        decode_data(LAYOUT, raw)
    assert caught.value.message.startswith(field)


@pytest.mark.parametrize(
    ("values", "field"), [({"id": 1000}, "id"), ({"name": "too long a name"}, "name"), ({"name": "ä"}, "name")]
)
def test_value_too_long_for_its_field_is_refused(values: dict[str, object], field: str) -> None:
    with pytest.raises(Refused) as caught:
        encode_data(LAYOUT, values)
    assert (caught.value.kind, caught.value.message.partition(":")[0]) == ("parameters", field)


@pytest.mark.parametrize(
    "text", ["Last Change Unknown", "2026-13-01:00:00:00", "0001-01-01:00:00:00", "                   "]
)
def test_invalid_date_is_decoded_as_none(text: str) -> None:
    assert decode_data((DataField("time", 19, FieldKind.DATE),), text.encode()) == {"time": None}


def test_left_aligned_numbers_are_read() -> None:
    assert decode_data((DataField("result", 10),), b"130800    ") == {"result": 130800}


def test_name_in_another_encoding_is_read() -> None:
    assert decode_data((DataField("name", 4, FieldKind.TEXT),), b"\xd7\xf3\xff ")["name"]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"VIN 1\0\0  ", "VIN 1"),
        (b"VIN 1\r\n   ", "VIN 1"),
        (b"VIN\x1d1     ", "VIN\\x1d1"),
        (b"VIN\0 1", "VIN\\x00 1"),
        (b"Stra\xdfe \xa0", "Straße \\xa0"),
    ],
)
def test_control_character_in_an_identity_is_kept_visible(raw: bytes, text: str) -> None:
    """Without it the code of one vehicle would be that of another; blanks and line ends at the ends are padding."""
    assert decode_data((DataField("identifier", len(raw), FieldKind.TEXT),), raw) == {"identifier": text}
