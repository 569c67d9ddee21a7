"""Values accepted by rules."""

import pytest

from edge.ports.sample_lines import Quality, Sample
from edge.ports.sample_value import as_number, is_usable


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1.0),
        (1.5, 1.5),
        (True, None),
        ("1", None),
        (None, None),
        ([], None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
    ],
)
def test_only_finite_numbers_are_numeric_values(value: object, number: float | None) -> None:
    assert as_number(value) == number


@pytest.mark.parametrize(
    ("value", "quality", "usable"),
    [
        (1, Quality.GOOD, True),
        ("x", Quality.UNCERTAIN, True),
        (1, Quality.BAD, False),
        (None, Quality.GOOD, False),
        (float("-inf"), Quality.GOOD, False),
    ],
)
def test_sample_without_a_finite_value_or_with_bad_quality_is_unusable(
    value: object,
    quality: Quality,
    usable: bool,  # noqa: FBT001 - a parameter
) -> None:
    assert is_usable(Sample(0, "t", value, quality)) is usable
