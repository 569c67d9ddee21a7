"""The machine capability Cm and Cmk of samples in a row: how well a tolerance holds their spread and their place.

Cm = (upper - lower) / 6 s, Cmk = min(upper - mean, mean - lower) / 3 s, with the sample standard deviation s.
"""

import math

from edge.features.telemetry.model.rule import Capability
from edge.features.telemetry.rules.baseline import Moments


def capability_of(limits: Capability, moments: Moments) -> tuple[float, float]:
    """Return Cm and Cmk; without spread they are infinite, Cmk with the sign of the place."""
    place = min(limits.upper - moments.mean, moments.mean - limits.lower)
    deviation = moments.deviation
    if deviation == 0:
        return math.inf, math.copysign(math.inf, place)
    return (limits.upper - limits.lower) / (6 * deviation), place / (3 * deviation)


def is_capable(limits: Capability, moments: Moments) -> bool:
    """Return whether neither Cm nor Cmk is below its bound."""
    cm, cmk = capability_of(limits, moments)
    return not ((limits.cm is not None and cm < limits.cm) or (limits.cmk is not None and cmk < limits.cmk))
