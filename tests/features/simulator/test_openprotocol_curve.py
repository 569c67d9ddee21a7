"""The curves of the simulated spindle."""

from datetime import datetime

from edge.features.openprotocol.protocol.trace import TORQUE, parse_curve
from edge.features.simulator.openprotocol_curve import curve_of


def test_curve_ends_with_the_value_of_its_result() -> None:
    at = datetime(2026, 5, 1, 12)  # noqa: DTZ001 - the local time of a controller
    curve = parse_curve(curve_of({"result": 7, "time": at, "torque": 85.2, "angle": 42}, TORQUE, 2000))
    assert (len(curve.values), curve.values[0], round(curve.values[-1], 2)) == (2000, 0.0, 85.2)
