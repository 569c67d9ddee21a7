"""Topics of an edge node."""

import pytest

from edge.features.sparkplug.topics import NodeTopics, as_id, state_topic
from edge.links.mqtt_publish import encode_topic


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
