"""The result of a spindle system in Open Protocol (MID 0101): common fields, then one record for each spindle."""

from collections.abc import Mapping, Sequence
from typing import Any

from edge.features.openprotocol.protocol.fields import DataField, FieldKind, Layout, decode_data, encode_data
from edge.features.openprotocol.protocol.result_fields import numbered
from edge.foundation.errors import Refused
from edge.foundation.text import Text

_TEXT, _DATE, _NM = FieldKind.TEXT, FieldKind.DATE, FieldKind.HUNDREDTHS
_COMMON = numbered(
    ("spindle_count", 2, FieldKind.NUMBER),
    ("identifier", 25, _TEXT),
    ("job", 2),
    ("parameter_set", 3),
    ("batch_size", 4, FieldKind.COUNT),
    ("batch_counter", 4, FieldKind.COUNT),
    ("batch_status", 1),
    ("torque_min", 6, _NM),
    ("torque_max", 6, _NM),
    ("torque_target", 6, _NM),
    ("angle_min", 5),
    ("angle_max", 5),
    ("angle_target", 5),
    ("parameter_set_changed", 19, _DATE),
    ("time", 19, _DATE),
    ("result", 5, FieldKind.COUNT),
    ("status", 1),
)
_SPINDLES = b"18"
"""The parameter id of the records."""
_RECORD: Layout = (
    DataField("spindle", 2),
    DataField("channel", 2),
    DataField("status", 1),
    DataField("torque_status", 1),
    DataField("torque", 6, _NM),
    DataField("angle_status", 1),
    DataField("angle", 5),
)
_ID_WIDTH = 2
_WIDTH = sum(field.width for field in _RECORD)


def parse_spindles(data: bytes) -> dict[str, Any]:
    """Return the fields of a result, with `spindles`. Raises Refused(`unreadable`) with the field that is wrong."""
    found = decode_data(_COMMON, data)
    at = sum(field.width + _ID_WIDTH for field in _COMMON)
    if data[at : at + _ID_WIDTH] != _SPINDLES:
        raise Refused(
            "unreadable", Text.of("spindles: expected parameter 18, found {data}", data=repr(data[at : at + _ID_WIDTH]))
        )
    records = range(at + _ID_WIDTH, at + _ID_WIDTH + (found["spindle_count"] or 0) * _WIDTH, _WIDTH)
    return found | {"spindles": [decode_data(_RECORD, data[record : record + _WIDTH]) for record in records]}


def encode_spindles(common: Mapping[str, Any], spindles: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the data of a result with these spindles, as a controller sends it."""
    head = encode_data(_COMMON, {**common, "spindle_count": len(spindles)})
    return head + _SPINDLES + b"".join(encode_data(_RECORD, spindle) for spindle in spindles)
