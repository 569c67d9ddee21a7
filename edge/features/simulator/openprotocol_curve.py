"""Curves and spindles of a simulated tightening: angle and torque rise to their final values."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from edge.features.openprotocol.protocol.spindles import encode_spindles
from edge.features.openprotocol.protocol.trace import ANGLE, TORQUE, encode_curve, encode_plot

INTERVAL_MS = 1
_UNITS: Mapping[int, str] = MappingProxyType({ANGLE: "050", TORQUE: "001"})
_FIELDS: Mapping[int, str] = MappingProxyType({ANGLE: "angle", TORQUE: "torque"})
_EXPONENTS: Mapping[int, int] = MappingProxyType({ANGLE: 1, TORQUE: 3})
_DIVISOR = 100
_LOW, _HIGH = "02111", "02112"
"""Parameters of this simulator: the ids of a real controller are in its list of parameters."""


def spindles_of(result: Mapping[str, Any], count: int) -> bytes:
    """Return the data of MID 0101 for a result: `count` spindles, of which the last one has its status."""
    good = {"channel": 1, "status": 1, "torque_status": 1, "angle_status": 1, "angle": result["angle"]}
    records = [good | {"spindle": n, "torque": result["torque_target"]} for n in range(1, count)]
    last = {"spindle": count, "status": result["status"], "torque_status": result["status"], "torque": result["torque"]}
    return encode_spindles({**result, "result": result["result"] % 100_000}, [*records, good | last])


def plot_of(result: Mapping[str, Any]) -> bytes:
    """Return the data of MID 0901 for a result: its limits of torque."""
    limits = {_LOW: f"{result['torque_min']:g}", _HIGH: f"{result['torque_max']:g}"}
    return encode_plot(result["result"], result["time"], limits)


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
