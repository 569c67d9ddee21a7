"""Tags as metrics of devices: places, aliases, births, changes."""

from typing import Any

import pytest

from edge.features.sparkplug.payload import DataType, MetricProperty
from edge.features.sparkplug.table import (
    GOOD,
    NODE,
    STALE,
    MetricTable,
    NodeTopics,
    as_id,
    birth_properties,
    data_properties,
    data_type,
    place_of,
    quality_of,
    state_topic,
    value_of,
)
from edge.links.mqtt_publish import encode_topic
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinition, TagDefinitions


@pytest.mark.parametrize(
    ("tag", "place"),
    [
        ("wrench.spindle.temperature", ("wrench", "spindle/temperature")),
        ("gateway.memory_mib", (NODE, "gateway/memory_mib")),
        ("equipment.wrench.connected", (NODE, "equipment/wrench/connected")),
        ("alone", (NODE, "alone")),
        (".x", (NODE, "/x")),
        ("x.", (NODE, "x/")),
        ("a/b+.x", ("a_b_", "x")),
    ],
)
def test_tag_name_determines_device_and_metric(tag: str, place: tuple[str, str]) -> None:
    assert place_of(tag) == place


def table_with(*samples: Sample, definitions: tuple[TagDefinition, ...] = (), most: int = 100) -> MetricTable:
    """Return a table that knows samples."""
    table = MetricTable(TagDefinitions(definitions), most)
    for sample in samples:
        table.learn(sample)
    return table


def test_aliases_are_unique_in_the_edge_node() -> None:
    table = table_with(Sample(1, "a.x", 1), Sample(1, "b.x", 1), Sample(1, "alone", 1))
    found = [metric.alias for device in (NODE, *table.devices) for metric in table.birth(device)]
    assert sorted(found, key=str) == [1, 2, 3]


def test_birth_is_sorted_by_time_and_contains_defined_tags() -> None:
    table = table_with(Sample(9, "a.late", 1), Sample(3, "a.early", True), definitions=(TagDefinition("a.none"),))
    table.announce(["a.none"])
    assert [(metric.name, metric.value, metric.timestamp) for metric in table.birth("a")] == [
        *[("none", None, 0), ("early", True, 3), ("late", 1, 9)]
    ]
    assert table.unborn == set()


def test_unchanged_sample_is_not_published() -> None:
    table = table_with(Sample(1, "a.x", 1))
    list(table.birth("a"))
    assert table.data(Sample(2, "a.x", 1.0)) is None
    found = table.data(Sample(3, "a.x", 2))
    assert found is not None
    device, metric = found
    assert (device, metric.value, metric.alias, metric.name, metric.timestamp) == ("a", 2, 1, None, 3)
    changed = table.data(Sample(4, "a.x", 2, Quality.BAD))
    assert changed is not None
    assert changed[1].properties["Quality"].value == 0
    assert table.data(Sample(5, "a.x", float("nan"))) is not None
    assert table.data(Sample(6, "a.x", float("nan"))) is None


def test_tag_without_a_birth_has_no_data() -> None:
    table = table_with(Sample(1, "a.x", 1))
    list(table.birth("a"))
    assert table.data(Sample(2, "a.y", 1)) is None
    assert table.unborn == {"a"}
    assert len(list(table.birth("a"))) == 2


def test_value_of_another_type_is_null_until_the_next_birth() -> None:
    table = table_with(Sample(1, "a.x", 1))
    list(table.birth("a"))
    found = table.data(Sample(2, "a.x", "text"))
    assert found is not None
    assert (found[1].value, table.mismatched) == (None, {"a.x"})
    (born,) = table.birth("a")
    assert (born.datatype, born.value, table.mismatched) == (DataType.STRING, "text", set())


def test_historical_sample_does_not_replace_the_last_sample() -> None:
    table = table_with(Sample(5, "a.x", 5))
    list(table.birth("a"))
    found = table.historical(Sample(2, "a.x", 2))
    assert found is not None
    assert (found[1].is_historical, found[1].value, found[1].timestamp) == (True, 2, 2)
    assert next(table.birth("a")).value == 5
    assert table.historical(Sample(2, "a.unknown", 2)) is None


def test_tags_beyond_the_limit_or_with_a_duplicate_name_are_omitted() -> None:
    table = table_with(Sample(1, "a/.x", 1), Sample(1, "a+.x", 2), Sample(1, "b", 1), most=2)
    for at in (2, 3):
        table.learn(Sample(at, "b", at))
    assert table.left_out == 2, "tags are counted, not their samples"
    assert table.data(Sample(2, "a+.x", 3)) is None


def test_older_sample_is_historical_and_does_not_override_a_newer_one() -> None:
    table = table_with(Sample(5, "a.x", 1.0))
    list(table.birth("a"))
    late = table.data(Sample(4, "a.x", 2.0))
    assert late is not None
    assert late[1].is_historical
    assert [metric.value for metric in table.birth("a")] == [1.0]


def test_number_beyond_int64_is_an_unsigned_metric() -> None:
    (metric,) = table_with(Sample(5, "a.x", 2**64 - 1)).birth("a")
    assert (metric.datatype, metric.value) == (DataType.UINT64, 2**64 - 1)


def test_value_after_a_bad_sample_is_current_whatever_its_source_time() -> None:
    table = table_with(Sample(5, "a.x", 1.0))
    list(table.birth("a"))
    assert table.data(Sample(20, "a.x", None, Quality.BAD))
    back = table.data(Sample(6, "a.x", 2.0))
    assert back is not None
    assert not back[1].is_historical


def test_topics_are_those_of_the_specification() -> None:
    topics = NodeTopics("plant", "station-1")
    assert topics.of_node("NBIRTH") == "spBv1.0/plant/NBIRTH/station-1"
    assert topics.of_device("DDATA", "wrench") == "spBv1.0/plant/DDATA/station-1/wrench"
    assert state_topic("scada") == "spBv1.0/STATE/scada"


def test_reserved_characters_are_replaced_in_an_id() -> None:
    assert as_id("a/b+c#d e") == "a_b_c_d e"


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\ud800b", "a\ufeffb", "a\ufffeb", "ä" * 70_000])
def test_any_name_becomes_a_valid_topic_id(name: str) -> None:
    encode_topic(NodeTopics("plant", "station-1").of_device("DBIRTH", as_id(name)))


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
    tag_definition = TagDefinition("a.b", unit="CEL", low=-5, high=95, description="oil")
    assert birth_properties(tag_definition, GOOD) == {
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
