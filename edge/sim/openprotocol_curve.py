"""The curves of a simulated tightening: angle and torque rise to their final values."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from edge.links.openprotocol_trace import ANGLE, TORQUE, encode_curve

INTERVAL_MS = 1
_UNITS: Mapping[int, str] = MappingProxyType({ANGLE: "050", TORQUE: "001"})
_FIELDS: Mapping[int, str] = MappingProxyType({ANGLE: "angle", TORQUE: "torque"})
_EXPONENTS: Mapping[int, int] = MappingProxyType({ANGLE: 1, TORQUE: 3})
_DIVISOR = 100


def curve_of(result: Mapping[str, Any], kind: int, points: int) -> bytes:
    """Return the data of MID 0900 for a result: `points` samples that end with its value."""
    final, last = result[_FIELDS[kind]] * _DIVISOR, max(points - 1, 1)
    samples = [round(final * (n / last) ** _EXPONENTS[kind]) for n in range(points)]
    return encode_curve(
        result["result"],
        result["time"],
        kind,
        _UNITS[kind],
        samples,
        divisor=_DIVISOR,
        interval_ms=INTERVAL_MS,
    )
