"""Messages of edge nodes become samples by their births, and hostile edge nodes stay within bounds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.sparkplug.births_and_deaths import MAX_METRICS, MAX_PAYLOAD, BornNodes, Limits, NodeName, Taken
from edge.features.sparkplug.payload import (
    DataType,
    Metric,
    MetricPayload,
    MetricProperty,
    bytes_field,
    encode_payload,
    varint_field,
)
from edge.ports.sample_lines import Quality, Sample

NOW = 1_000_000
PRESS = NodeName("line", "plc")
DATA = "spBv1.0/line/DDATA/plc/press"
BIRTH = "spBv1.0/line/DBIRTH/plc/press"
NODE_BIRTH = "spBv1.0/line/NBIRTH/plc"
NODE_DEATH = "spBv1.0/line/NDEATH/plc"
OIL = Metric(41.5, "Hydraulics/Oil", 7, 5, DataType.DOUBLE)
COUNT = Metric(-3, "count", 8, 5, DataType.INT32)


def message(*metrics: Metric, at: int | None = 6) -> bytes:
    """Return a payload."""
    return encode_payload(MetricPayload(at, metrics, 0))


def number(bd_seq: int) -> Metric:
    """Return the number of a birth or a death."""
    return Metric(bd_seq, "bdSeq", None, 5, DataType.INT64)


def born(*metrics: Metric, limits: Limits | None = None) -> BornNodes:
    """Return an edge node with the births of itself and of its device."""
    nodes = BornNodes("{device}.{metric}", limits)
    nodes.take(NODE_BIRTH, message(number(1)), NOW)
    nodes.take(BIRTH, message(*metrics), NOW)
    return nodes


def bad(tag: str, at: int = NOW) -> Sample:
    """Return the sample of a tag whose device is away."""
    return Sample(at, tag, None, Quality.BAD)


@pytest.mark.parametrize(
    ("template", "tag"),
    [
        ("{topic}", "line.plc.press.Hydraulics.Oil"),
        ("{group}/{node}/{device}/{metric}", "line/plc/press/Hydraulics.Oil"),
        ("press.{metric}", "press.Hydraulics.Oil"),
    ],
)
def test_tag_is_named_after_group_node_device_and_metric(template: str, tag: str) -> None:
    assert BornNodes(template).take(BIRTH, message(OIL), NOW).samples == (Sample(5, tag, 41.5),)


@pytest.mark.parametrize(
    ("metric", "samples", "refused"),
    [
        (Metric(42.0, alias=7, datatype=DataType.DOUBLE), (Sample(6, "press.Hydraulics.Oil", 42.0),), 0),
        (Metric(-70_000, alias=8, timestamp=9, datatype=DataType.INT32), (Sample(9, "press.count", -70_000),), 0),
        (Metric(-4, "count", datatype=DataType.INT32), (Sample(6, "press.count", -4),), 0),
        (Metric(None, alias=8), (Sample(6, "press.count", None, Quality.BAD),), 0),
        (
            Metric(1, alias=8, datatype=DataType.INT32, properties={"Quality": MetricProperty(DataType.INT32, 500)}),
            (Sample(6, "press.count", 1, Quality.BAD),),
            0,
        ),
        (Metric("x", alias=8, datatype=DataType.STRING), (), 1),
        (Metric(4.0, "count", datatype=DataType.DOUBLE), (), 1),
        (Metric(1, alias=8, timestamp=1 << 62, datatype=DataType.INT32), (Sample(NOW, "press.count", 1),), 0),
    ],
)
def test_data_is_decoded_by_its_birth(metric: Metric, samples: tuple[Sample, ...], refused: int) -> None:
    taken = born(OIL, COUNT).take(DATA, message(metric), NOW)
    assert (taken.samples, taken.refused, taken.ask) == (samples, refused, None)


@pytest.mark.parametrize("data", [Metric(1, alias=99, datatype=DataType.INT32), Metric(1, "new", datatype=3)])
def test_data_without_a_birth_is_refused_and_rebirth_requested(data: Metric) -> None:
    nodes = born(OIL)
    found = [nodes.take(DATA, message(data), NOW + after) for after in (0, 999, 1_000, 2_999, 3_000)]
    assert [(taken.samples, taken.refused, taken.ask) for taken in found] == [
        ((), 1, PRESS),
        ((), 1, None),
        ((), 1, PRESS),
        ((), 1, None),
        ((), 1, PRESS),
    ]


def test_rebirth_request_interval_grows_to_one_minute() -> None:
    nodes = born(OIL)
    asked = [after for after in range(0, 600_000, 500) if nodes.take(DATA, message(COUNT), NOW + after).ask]
    assert asked == [0, 1_000, 3_000, 7_000, 15_000, 31_000, *range(63_000, 600_000, 60_000)]


def test_rebirth_is_requested_at_once_after_a_broker_loss() -> None:
    nodes = born(OIL)
    nodes.take(DATA, message(Metric(1, "new", datatype=3)), NOW)
    nodes.forget(NOW + 1)
    assert nodes.take(DATA, message(OIL), NOW + 2).ask == PRESS


@pytest.mark.parametrize(
    ("topic", "metrics", "is_bad"),
    [
        ("spBv1.0/line/DDEATH/plc/press", (), True),
        (NODE_DEATH, (number(1),), True),
        (NODE_DEATH, (number(0),), False),
        (NODE_DEATH, (), True),
        ("spBv1.0/line/NDEATH/other", (number(1),), False),
        (NODE_BIRTH, (number(2),), True),
        (NODE_BIRTH, (number(1),), False),
        ("spBv1.0/line/NCMD/plc", (), False),
        ("spBv1.0/STATE/host", (), False),
    ],
)
def test_death_makes_the_tags_bad_until_the_next_birth(
    topic: str, metrics: tuple[Metric, ...], *, is_bad: bool
) -> None:
    nodes = born(OIL)
    assert nodes.take(topic, message(*metrics), NOW).samples == ((bad("press.Hydraulics.Oil"),) if is_bad else ())
    data = message(Metric(1.0, alias=7, datatype=DataType.DOUBLE))
    assert bool(nodes.take(DATA, data, NOW).samples) is not is_bad
    assert nodes.take(BIRTH, message(OIL), NOW).samples[-1].value == 41.5


def test_metric_missing_in_a_new_birth_becomes_bad() -> None:
    taken = born(OIL, COUNT).take(BIRTH, message(COUNT), NOW)
    assert taken.samples == (bad("press.Hydraulics.Oil"), Sample(5, "press.count", -3))


def test_broker_loss_makes_all_tags_bad() -> None:
    nodes = born(OIL, COUNT)
    assert nodes.forget(NOW) == (bad("press.Hydraulics.Oil"), bad("press.count"))
    assert nodes.take(DATA, message(Metric(1, alias=8, datatype=DataType.INT32)), NOW).refused == 1


def test_historical_value_is_one_late_sample() -> None:
    """The last value followed it, twice in the history."""
    late = Metric(1, alias=8, timestamp=2, datatype=DataType.INT32, is_historical=True)
    taken = born(COUNT).take(DATA, message(late), NOW)
    assert taken.samples == (Sample(2, "press.count", 1, late=True),)


@pytest.mark.parametrize(("datatype", "what"), [(16, "data set"), (19, "template"), (17, "bytes"), (34, "type 34")])
def test_other_data_types_are_refused_with_the_reason(datatype: int, what: str) -> None:
    raw = bytes_field(1, b"table") + varint_field(2, 3) + varint_field(4, datatype) + bytes_field(17, b"\x08\x01")
    nodes = BornNodes("{metric}")
    taken = nodes.take(BIRTH, bytes_field(2, raw), NOW)
    assert (taken.samples, taken.refused) == ((), 1)
    assert what in taken.faults[0]
    later = nodes.take(DATA, bytes_field(2, varint_field(2, 3) + bytes_field(17, b"\x08\x01")), NOW)
    assert (later.refused, later.ask, later.faults) == (1, None, taken.faults)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"{}", "no payload"),
        (bytes(MAX_PAYLOAD + 1), f"more than {MAX_PAYLOAD}"),
        (b"\x12\x00" * (MAX_METRICS + 1), f"more than {MAX_METRICS} metrics"),
        (message(OIL, OIL), "alias 7 twice"),
        (message(Metric(1.0, "x" * 201, 9, 5, DataType.DOUBLE)), "more than 200 characters"),
        (message(Metric(1.0, None, 9, 5, None)), "no name"),
    ],
)
def test_bad_births_are_refused_with_the_reason(payload: bytes, reason: str) -> None:
    taken = BornNodes("{topic}").take(BIRTH, payload, NOW)
    assert taken.samples == ()
    assert taken.refused >= 1
    assert reason in taken.faults[0]


def test_metrics_nodes_and_rebirth_requests_are_bounded() -> None:
    nodes = BornNodes("{topic}", Limits(metrics=6, nodes=2))
    assert nodes.take(BIRTH, message(OIL, COUNT), NOW).refused == 0
    many = (Metric(1, f"m{index}", index, 5, DataType.INT32) for index in range(6))
    assert "more than 6 metrics" in nodes.take(BIRTH + "2", message(*many), NOW).faults[0]
    assert nodes.take("spBv1.0/line/NBIRTH/second", message(), NOW).refused == 0
    assert "more than 2 edge nodes" in nodes.take("spBv1.0/line/NBIRTH/third", message(), NOW).faults[0]
    node_names = [nodes.take(f"spBv1.0/line/NDATA/n{index}", message(COUNT), NOW).ask for index in range(9)]
    assert len([node_name for node_name in node_names if node_name]) == 2


@given(st.lists(st.tuples(st.sampled_from([BIRTH, DATA, NODE_BIRTH, NODE_DEATH]), st.binary(max_size=80)), max_size=6))
def test_any_bytes_are_accepted_or_refused(messages: list[tuple[str, bytes]]) -> None:
    nodes = born(OIL)
    for topic, payload in messages:
        found: Any = nodes.take(topic, payload, NOW)
        assert isinstance(found, Taken)
