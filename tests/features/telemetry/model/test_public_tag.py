"""The public form of a tag has its definition, and values that JSON has."""

import math

from edge.features.telemetry.model.public_tag import public_tag
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition


def test_tag_has_the_symbol_and_the_code_of_its_unit() -> None:
    defined = public_tag(Sample(0, "oven", 96), TagDefinition("oven", unit="CEL", low=0, high=300, description="Oven"))
    assert (defined.unit, defined.unit_code, defined.low, defined.high) == ("°C", "CEL", 0, 300)
    assert (public_tag(Sample(0, "oven", 96)).unit, public_tag(Sample(0, "oven", 96)).unit_code) == ("", "")


def test_value_that_json_lacks_is_a_text() -> None:
    assert public_tag(Sample(0, "t", math.nan)).value == "nan"
    assert public_tag(Sample(0, "t", [1, 2])).value == "[1,2]"
