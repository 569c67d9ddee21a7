"""Topics follow one grammar, and no id of a job order leaves its level."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.northbound.topics import Topics, may_answer_to

TOPICS = Topics("app/jobs", "station-1")


def test_topics_of_a_scope_are_below_the_prefix() -> None:
    assert [TOPICS.commands, TOPICS.metadata, TOPICS.events, TOPICS.data] == [
        "app/jobs/station-1/commands",
        "app/jobs/station-1/metadata",
        "app/jobs/station-1/events",
        "app/jobs/station-1/data",
    ]
    assert TOPICS.read == (TOPICS.commands, TOPICS.metadata, "app/jobs/station-1/state-index")
    assert TOPICS.order("J1") == "app/jobs/station-1/order/J1"
    assert TOPICS.result("J1") == "app/jobs/station-1/result/J1"


def test_only_characters_special_in_mqtt_topics_are_encoded() -> None:
    assert TOPICS.order("2026/07 #1+é%") == "app/jobs/station-1/order/2026%2F07 %231%2Bé%25"


@given(st.lists(st.text(alphabet="/+#%a2F é", min_size=1), min_size=2, max_size=2, unique=True))
def test_every_id_is_a_distinct_topic_level(ids: list[str]) -> None:
    one, other = (TOPICS.order(job_order_id) for job_order_id in ids)
    assert one != other
    assert one.count("/") == other.count("/") == TOPICS.order("x").count("/")
    assert not set("+#") & set(one + other)


@pytest.mark.parametrize(
    ("topic", "allowed"),
    [
        ("app/jobs/answers/me", True),
        ("app/jobs/mes", True),
        ("app/jobs", False),
        ("wrench/commands", False),
        ("app/equipment/wrench/commands", False),
        ("app/jobs/station-2/commands", False),
        ("app/jobs/station-2/state-index", False),
        ("app/jobs/station-2/order/J1", False),
        ("mes/7/answers", True),
        ("mes/7/answers/deeper", False),
    ],
)
def test_answer_topic_must_be_below_the_prefix_or_allowed(topic: str, *, allowed: bool) -> None:
    assert may_answer_to(topic, "app/jobs", ["mes/+/answers"]) == allowed
