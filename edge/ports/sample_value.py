"""The values of samples as rules take them: usable ones, and numbers."""

import math
from typing import Final

from edge.ports.sample_lines import Quality, Sample

JOB_STARTED: Final = "job.started"
JOB_ENDED: Final = "job.ended"
GATEWAY_TAGS: Final = ("gateway.", "equipment.")
"""Beginnings of the tags that each gateway of a store measures itself."""


def is_usable(sample: Sample) -> bool:
    """Return whether rules take notice of a sample: its quality is not bad, and it has a value.

    Null, NaN and the infinities are not values.
    """
    value = sample.value
    known = value is not None and not (isinstance(value, float) and not math.isfinite(value))
    return known and sample.quality is not Quality.BAD


def type_name(value: object) -> str | None:
    """Return the type of a value as definitions of tags name it; None for no value."""
    match value:
        case bool():
            return "truth value"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return None


def as_number(value: object) -> float | None:
    """Return a value as a finite floating-point number; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
