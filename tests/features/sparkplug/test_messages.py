"""The order of messages and their sequence numbers."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from edge.features.sparkplug.messages import DraftMessage, NodeMessages, next_number, node_death
from edge.features.sparkplug.payload import MetricPayload, decode_payload
from edge.features.sparkplug.table import MetricTable, NodeTopics
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinitions

TOPICS = NodeTopics("g", "n")


def messages_of(*samples: Sample) -> NodeMessages:
    """Return the messages of an edge node that knows samples."""
    table = MetricTable(TagDefinitions())
    for sample in samples:
        table.learn(sample)
    return NodeMessages(TOPICS, table, 7)


def read(drafts: Iterable[DraftMessage]) -> list[tuple[str, MetricPayload]]:
    """Return topic and payload of messages."""
    return [(draft.topic, decode_payload(b"".join(draft.parts))) for draft in drafts]


def test_node_death_contains_only_bd_seq() -> None:
    will = node_death(TOPICS, 7, 99)
    payload = decode_payload(will.payload)
    assert not will.retain
    assert will.topic == "spBv1.0/g/NDEATH/n"
    assert payload.seq is None
    assert [(metric.name, metric.value, metric.datatype) for metric in payload.metrics] == [("bdSeq", 7, 4)]


def test_births_begin_with_the_node_and_sequence_number_0() -> None:
    messages = messages_of(Sample(1, "b.x", 1), Sample(2, "a.x", 2), Sample(3, "gateway.m", 3))
    found = read(messages.births(["c"], 50))
    assert [(topic, payload.seq, payload.timestamp) for topic, payload in found] == [
        ("spBv1.0/g/NBIRTH/n", 0, 50),
        ("spBv1.0/g/DBIRTH/n/a", 1, 50),
        ("spBv1.0/g/DBIRTH/n/b", 2, 50),
    ]
    node = found[0][1].metrics
    assert [(metric.name, metric.value, metric.alias) for metric in node[:2]] == [
        *[("bdSeq", 7, None), ("Node Control/Rebirth", False, None)]
    ]
    announced = [(metric.datatype, metric.timestamp) for _, payload in found for metric in payload.metrics]
    assert not any(None in row for row in announced)


def test_disconnected_device_has_no_birth_and_no_data() -> None:
    messages = messages_of(Sample(1, "a.x", 1), Sample(1, "b.x", 1))
    assert [topic for topic, _ in read(messages.births(["a"], 1))] == ["spBv1.0/g/NBIRTH/n", "spBv1.0/g/DBIRTH/n/b"]
    samples = [Sample(2, "a.x", 2), Sample(2, "b.x", 2)]
    assert [topic for topic, _ in read(messages.data(samples, 2))] == ["spBv1.0/g/DDATA/n/b"]
    ((topic, payload),) = read([messages.device_death("b", 3)])
    assert (topic, payload.seq, payload.metrics) == ("spBv1.0/g/DDEATH/n/b", 3, ())
    assert messages.alive == set()


def test_data_message_of_a_device_is_sorted_by_time() -> None:
    messages = messages_of(Sample(1, "a.x", 1), Sample(1, "a.y", 1), Sample(1, "m", 1))
    read(messages.births([], 1))
    samples = [Sample(9, "a.x", 2), Sample(5, "a.y", 2), Sample(7, "m", 2), Sample(4, "m", 3)]
    metric_payloads = dict(read(messages.data(samples, 10)))
    assert set(metric_payloads) == {"spBv1.0/g/NDATA/n", "spBv1.0/g/DDATA/n/a"}
    for payload in metric_payloads.values():
        times = [metric.timestamp or 0 for metric in payload.metrics]
        assert times == sorted(times)
        assert all(metric.name is None and metric.alias and metric.datatype is None for metric in payload.metrics)


def test_every_message_has_the_time_of_its_creation() -> None:
    messages = messages_of(Sample(1, "a.x", 1), Sample(1, "m", 1))
    found = read(messages.births([], 50)) + read(messages.data([Sample(2, "a.x", 2), Sample(2, "m", 2)], 60))
    found += read([messages.device_death("a", 70)])
    kinds = [(topic.split("/")[2], payload.timestamp) for topic, payload in found]
    assert kinds == [("NBIRTH", 50), ("DBIRTH", 50), ("DDATA", 60), ("NDATA", 60), ("DDEATH", 70)]


@given(st.integers(1, 600))
def test_sequence_numbers_run_from_0_to_255(count: int) -> None:
    messages = messages_of(Sample(1, "a.x", 0))
    found = read(messages.births([], 1))
    for number in range(1, count):
        found += read(messages.data([Sample(number + 1, "a.x", number)], 1))
    assert [payload.seq for _, payload in found] == [number % 256 for number in range(len(found))]


def test_bd_seq_restarts_after_255() -> None:
    assert (next_number(0), next_number(254), next_number(255)) == (1, 255, 0)
