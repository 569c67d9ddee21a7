"""Tags as metrics of devices: places, aliases, births, changes."""

import pytest

from edge.features.sparkplug.payload import DataType
from edge.features.sparkplug.table import NODE, MetricTable, place_of
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
