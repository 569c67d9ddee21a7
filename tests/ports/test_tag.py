"""The schema of definitions of tags accepts what the model accepts."""

import time
from typing import Any

import jsonschema
import msgspec
import pytest

from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import (
    TagDefinition,
    TagDefinitions,
    has_wildcard,
    matches,
    matches_any,
    parse_definitions,
    tags_schema,
)


@pytest.mark.parametrize(
    ("item", "valid"),
    [
        ({"tag": "t"}, True),
        ({"tag": "t", "unit": "CEL", "type": "number", "low": 0, "high": 1.5, "description": "x"}, True),
        ({"tag": ""}, False),
        ({"tag": "t", "unit": "°C"}, False),
        ({"tag": "t", "type": "float"}, False),
        ({"tag": "t", "other": 1}, False),
    ],
)
def test_schema_and_model_accept_the_same(item: dict[str, Any], valid: bool) -> None:  # noqa: FBT001 - a parameter
    assert jsonschema.Draft202012Validator(tags_schema()).is_valid([item]) is valid
    if valid:
        msgspec.convert(item, TagDefinition)
    else:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(item, TagDefinition)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("*", "", True),
        ("*", "a.b\nc", True),
        ("a*", "a", True),
        ("a*c", "a.b.c", True),
        ("a*c", "a.b.cd", False),
        ("*.temp", "wrench.temp", True),
        ("*.temp", "wrench.temperature", False),
        ("a**b", "a.b", True),
        ("a*b*c", "aXbYbZc", True),
        ("*b*b*", "ab", False),
        ("[a-z]", "b", False),
        ("a?", "ab", False),
    ],
)
def test_pattern_matches_names(pattern: str, name: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert matches(pattern, name) is expected


def test_only_the_asterisk_is_special() -> None:
    assert has_wildcard("a.*")
    assert not has_wildcard("a.?[b]")


def test_pattern_of_many_wildcards_is_fast() -> None:
    begin = time.perf_counter()
    assert not matches("*a" * 30 + "*b", "a" * 2000)
    assert time.perf_counter() - begin < 20


def test_tag_matches_if_one_of_several_patterns_matches() -> None:
    assert matches_any(("a.*", "*.b"), "x.b")
    assert not matches_any(("a.*", "*.b"), "x.c")
    assert not matches_any((), "x")


def defined(**definition: Any) -> TagDefinitions:
    definitions, faults = parse_definitions([{"tag": "t"} | definition])
    assert faults == ()
    return TagDefinitions(definitions)


def test_every_fault_is_reported_with_its_tag() -> None:
    _, faults = parse_definitions(
        [
            {"tag": "a", "unit": "°C"},
            {"tag": "b", "low": 5, "high": 5},
            {"tag": "c", "type": "text", "low": 5},
            {"unit": "CEL"},
            {"tag": "d", "x": 1},
            {"tag": "e"},
            {"tag": "e"},
            7,
        ]
    )
    assert [fault.partition(":")[0] for fault in faults] == [
        *("tag 'a'", "tag 'b'", "tag 'c'", "tags[3]", "tag 'd'", "tags[7]", "tag 'e'")
    ]
    assert parse_definitions({})[1] == ("tags must be a list of objects",)
    assert "at most" in parse_definitions([{"tag": str(n)} for n in range(10_001)])[1][0]


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        ("number", 1, True),
        ("number", 1.5, True),
        ("number", float("nan"), True),
        ("number", True, False),
        ("number", "1", False),
        ("number", None, True),
        ("truth value", False, True),
        ("truth value", 0, False),
        ("text", "a", True),
        ("text", 1, False),
    ],
)
def test_sample_of_another_type_is_refused(kind: str, value: Any, taken: bool) -> None:  # noqa: FBT001 - a parameter
    sample = Sample(0, "t", value)
    judged = defined(type=kind).judge(sample)
    assert (judged is sample) == taken
    assert taken or "but" in str(judged)


@pytest.mark.parametrize(("value", "quality"), [(-1, "uncertain"), (0, "good"), (9, "good"), (9.5, "uncertain")])
def test_value_out_of_range_is_uncertain(value: float, quality: str) -> None:
    judged = defined(low=0, high=9).judge(Sample(0, "t", value))
    assert isinstance(judged, Sample)
    assert judged.quality is Quality(quality)


def test_other_tags_and_bad_samples_are_unchanged() -> None:
    tag_definitions = defined(type="number", high=9)
    for sample in (Sample(0, "other", "x"), Sample(0, "t", "x", Quality.BAD), Sample(0, "t", 99, Quality.BAD)):
        assert tag_definitions.judge(sample) is sample
    assert tag_definitions.find("other") is None


def test_change_of_definitions_creates_a_new_mapping() -> None:
    definitions = TagDefinitions([TagDefinition("a")])
    tag_definitions = definitions.known
    assert list(tag_definitions) == ["a"]
    definitions.use_stored([TagDefinition("b")])
    assert definitions.known is not tag_definitions
    assert list(definitions.known) == ["a", "b"]
