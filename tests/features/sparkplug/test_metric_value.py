"""Samples are converted to values of metrics."""

from typing import Any

import pytest

from edge.features.sparkplug.metric_value import (
    GOOD,
    STALE,
    birth_properties,
    data_properties,
    data_type,
    quality_of,
    value_of,
)
from edge.features.sparkplug.payload import DataType, MetricProperty
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinition

D = DataType


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, D.BOOLEAN), (5, D.DOUBLE), (5.5, D.DOUBLE), ("x", D.STRING), (1 << 60, D.INT64), (None, D.DOUBLE)],
)
def test_tag_without_definition_has_the_type_of_its_value(value: Any, expected: DataType) -> None:
    assert data_type(None, Sample(1, "a.b", value)) is expected


def test_definition_type_precedes_the_type_of_the_value() -> None:
    assert data_type(TagDefinition("a.b", type="text"), Sample(1, "a.b", 5)) is D.STRING
    assert data_type(TagDefinition("a.b"), None) is D.DOUBLE


@pytest.mark.parametrize(
    ("type", "sample", "value", "quality"),
    [
        (D.DOUBLE, Sample(1, "t", 5), 5, GOOD),
        (D.DOUBLE, Sample(1, "t", 5, Quality.UNCERTAIN), 5, GOOD),
        (D.DOUBLE, Sample(1, "t", 5, Quality.BAD), 5, 0),
        (D.DOUBLE, Sample(1, "t", True), None, 0),
        (D.DOUBLE, Sample(1, "t", 1 << 60), None, 0),
        (D.INT64, Sample(1, "t", 5.5), None, 0),
        (D.STRING, Sample(1, "t", None), None, GOOD),
        (D.DOUBLE, None, None, STALE),
    ],
)
def test_value_of_another_type_is_null_and_bad(type: DataType, sample: Sample, value: Any, quality: int) -> None:
    assert (value_of(type, sample), quality_of(type, sample)) == (value, quality)


def test_birth_has_unit_range_and_description() -> None:
    known = TagDefinition("a.b", unit="CEL", low=-5, high=95, description="oil")
    assert birth_properties(known, GOOD) == {
        "Quality": MetricProperty(D.INT32, 192),
        "engUnit": MetricProperty(D.STRING, "°C"),
        "engLow": MetricProperty(D.DOUBLE, -5),
        "engHigh": MetricProperty(D.DOUBLE, 95),
        "documentation": MetricProperty(D.STRING, "oil"),
    }
    assert birth_properties(TagDefinition("a", unit="XX"), 0)["engUnit"].value == "XX"


def test_data_has_a_quality_unless_it_is_good() -> None:
    assert data_properties(GOOD) == {}
    assert data_properties(0) == {"Quality": MetricProperty(D.INT32, 0)}
