"""The tables of tightening results: the latest one (MID 0061) and an old one (MID 0065), by revision."""

from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import TypeAlias

from edge.features.openprotocol.protocol.fields import DataField, FieldKind, Layout

Spec: TypeAlias = tuple[str, int] | tuple[str, int, FieldKind]

_TEXT, _DATE, _NM, _COUNT = FieldKind.TEXT, FieldKind.DATE, FieldKind.HUNDREDTHS, FieldKind.COUNT
LIGHT_REVISION = 999
"""A short result without parameter ids, for tools with little bandwidth."""


def _with_kind(spec: Spec) -> tuple[str, int, FieldKind]:
    match spec:
        case name, width:
            return name, width, FieldKind.CODE
        case name, width, kind:
            return name, width, kind


def numbered(*specs: Spec, start: int = 1, optional_from: str = "") -> Layout:
    """Return fields with parameter ids from `start` on; the one of that name and those after it are optional."""
    names = [spec[0] for spec in specs]
    required = names.index(optional_from) if optional_from else len(names)
    return tuple(
        DataField(name, width, kind, start + n, is_optional=n >= required)
        for n, (name, width, kind) in enumerate(map(_with_kind, specs))
    )


_STATES: tuple[Spec, ...] = (
    ("torque_status", 1),
    ("angle_status", 1),
    ("rundown_angle_status", 1),
    ("current_status", 1),
    ("selftap_status", 1),
    ("prevail_status", 1),
    ("prevail_compensate_status", 1),
    ("errors", 10),
)
_TORQUES: tuple[Spec, ...] = (
    ("torque_min", 6, _NM),
    ("torque_max", 6, _NM),
    ("torque_target", 6, _NM),
    ("torque", 6, _NM),
)
_ANGLES: tuple[Spec, ...] = (("angle_min", 5), ("angle_max", 5), ("angle_target", 5), ("angle", 5))
_ORIGIN: tuple[Spec, ...] = (("cell", 4), ("channel", 2), ("controller", 25, _TEXT), ("identifier", 25, _TEXT))
_PARTS: tuple[Spec, ...] = (("part_2", 25, _TEXT), ("part_3", 25, _TEXT), ("part_4", 25, _TEXT))

_LATEST_1 = numbered(
    *_ORIGIN,
    ("job", 2),
    ("parameter_set", 3),
    ("batch_size", 4, _COUNT),
    ("batch_counter", 4, _COUNT),
    ("status", 1),
    ("torque_status", 1),
    ("angle_status", 1),
    *_TORQUES,
    *_ANGLES,
    ("time", 19, _DATE),
    ("parameter_set_changed", 19, _DATE),
    ("batch_status", 1),
    ("result", 10, _COUNT),
    optional_from="time",
)
_LATEST_2 = numbered(
    *_ORIGIN,
    ("job", 4),
    ("parameter_set", 3),
    ("strategy", 2),
    ("strategy_options", 5, _TEXT),
    ("batch_size", 4, _COUNT),
    ("batch_counter", 4, _COUNT),
    ("status", 1),
    ("batch_status", 1),
    *_STATES,
    *_TORQUES,
    *_ANGLES,
    ("rundown_angle_min", 5),
    ("rundown_angle_max", 5),
    ("rundown_angle", 5),
    ("current_min", 3),
    ("current_max", 3),
    ("current", 3),
    ("selftap_min", 6, _NM),
    ("selftap_max", 6, _NM),
    ("selftap_torque", 6, _NM),
    ("prevail_min", 6, _NM),
    ("prevail_max", 6, _NM),
    ("prevail_torque", 6, _NM),
    ("result", 10, _COUNT),
    ("job_sequence", 5),
    ("sync_result", 5),
    ("tool_serial", 14, _TEXT),
    ("time", 19, _DATE),
    ("parameter_set_changed", 19, _DATE),
    optional_from="rundown_angle_min",
)
_LIGHT: Layout = (
    DataField("identifier", 25, _TEXT),
    DataField("job", 2),
    DataField("parameter_set", 3),
    DataField("batch_size", 4, _COUNT),
    DataField("batch_counter", 4, _COUNT),
    DataField("batch_status", 1),
    DataField("status", 1),
    DataField("torque_status", 1),
    DataField("angle_status", 1),
    DataField("torque", 6, _NM),
    DataField("angle", 5),
    DataField("time", 19, _DATE),
    DataField("parameter_set_changed", 19, _DATE),
    DataField("result", 10, _COUNT),
)
_LATEST_LATER = accumulate(
    (
        _LATEST_2,
        numbered(
            ("parameter_set_name", 25, _TEXT),
            ("torque_unit", 1),
            ("result_type", 2),
            start=47,
            optional_from="parameter_set_name",
        ),
        numbered(*_PARTS, start=50, optional_from="part_2"),
        numbered(("customer_error", 4, _TEXT), start=53, optional_from="customer_error"),
        numbered(("prevail_compensate", 6, _NM), ("errors_2", 10), start=54, optional_from="prevail_compensate"),
    )
)
LATEST_RESULT: Mapping[int, Layout] = MappingProxyType(
    {1: _LATEST_1, **dict(enumerate(_LATEST_LATER, 2)), LIGHT_REVISION: _LIGHT}
)
"""MID 0061."""

_OLD_1 = numbered(
    ("result", 10, _COUNT),
    ("identifier", 25, _TEXT),
    ("parameter_set", 3),
    ("batch_counter", 4, _COUNT),
    ("status", 1),
    ("torque_status", 1),
    ("angle_status", 1),
    ("torque", 6, _NM),
    ("angle", 5),
    ("time", 19, _DATE),
    ("batch_status", 1),
    optional_from="time",
)
_OLD_2 = numbered(
    ("result", 10, _COUNT),
    ("identifier", 25, _TEXT),
    ("job", 4),
    ("parameter_set", 3),
    ("strategy", 2),
    ("strategy_options", 5, _TEXT),
    ("batch_size", 4, _COUNT),
    ("batch_counter", 4, _COUNT),
    ("status", 1),
    ("batch_status", 1),
    *_STATES,
    ("torque", 6, _NM),
    ("angle", 5),
    ("rundown_angle", 5),
    ("current", 3),
    ("selftap_torque", 6, _NM),
    ("prevail_torque", 6, _NM),
    ("job_sequence", 5),
    ("sync_result", 5),
    ("tool_serial", 14, _TEXT),
    ("time", 19, _DATE),
    optional_from="rundown_angle",
)
_OLD_LATER = accumulate(
    (
        _OLD_2,
        numbered(("torque_unit", 1), ("result_type", 2), start=29, optional_from="torque_unit"),
        numbered(*_PARTS, start=31, optional_from="part_2"),
        numbered(("customer_error", 4, _TEXT), start=34, optional_from="customer_error"),
        numbered(("prevail_compensate", 6, _NM), ("errors_2", 10), start=35, optional_from="prevail_compensate"),
    )
)
OLD_RESULT: Mapping[int, Layout] = MappingProxyType({1: _OLD_1, **dict(enumerate(_OLD_LATER, 2))})
"""MID 0065."""
