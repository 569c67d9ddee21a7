import tracemalloc

import pytest

from edge.links.mqtt_publish import encode_topic
from edge.links.mqtt_topic import matches


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+", "a/b/c", False),
        ("+/b", "a/b", True),
        ("+", "/a", False),
        ("+/+", "/a", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("$SYS/#", "$SYS/a", True),
        ("$share/group/a/+", "a/b", True),
        ("a", "a/", False),
    ],
)
def test_topic_filters_match_as_in_the_standard(topic_filter: str, topic: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert matches(topic_filter, topic) is expected


def test_topics_that_others_choose_are_not_kept() -> None:
    """A response topic and the topic of a message can have 64 KiB each: caches by topic took up to 280 MB."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1_000):
            topic = f"answers/{number}/".ljust(60_000, "x")
            assert matches("answers/#", topic)
            assert not matches("commands", topic)
            assert encode_topic(topic)[:8] == b"answers/"
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000
