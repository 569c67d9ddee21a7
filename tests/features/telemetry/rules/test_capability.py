"""Cm and Cmk are those of the NIST/SEMATECH e-Handbook (6.1.6) for the same mean and deviation."""

import math

import pytest

from edge.features.telemetry.model.rule import Capability
from edge.features.telemetry.rules.baseline import Moments
from edge.features.telemetry.rules.capability import capability_of, is_capable


def moments(*values: float) -> Moments:
    found = Moments()
    for value in values:
        found = found.add(value)
    return found


def test_capability_agrees_with_the_handbook_example() -> None:
    """Limits 8 and 20, mean 16, standard deviation 2: Cp = 1.0, Cpk = 0.6667."""
    cm, cmk = capability_of(Capability(8, 20), moments(14, 16, 18))
    assert cm == pytest.approx(1.0)
    assert cmk == pytest.approx(0.6667, abs=1e-4)


@pytest.mark.parametrize(
    ("cm", "cmk", "capable"),
    [(1.0, None, True), (1.01, None, False), (None, 0.66, True), (None, 0.67, False), (1.0, 0.67, False)],
)
def test_capability_below_a_bound_is_reported(cm: float | None, cmk: float | None, capable: bool) -> None:  # noqa: FBT001 - a parameter
    assert is_capable(Capability(8, 20, cm=cm, cmk=cmk), moments(14, 16, 18)) is capable


def test_capability_of_values_without_spread_is_infinite() -> None:
    assert capability_of(Capability(8, 20), moments(9, 9)) == (math.inf, math.inf)
    assert capability_of(Capability(8, 20), moments(21, 21)) == (math.inf, -math.inf)
    assert not is_capable(Capability(8, 20, cmk=0), moments(21, 21))
