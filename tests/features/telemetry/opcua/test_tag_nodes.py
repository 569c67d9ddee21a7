"""Tags are variables with their last samples; their history can be read only if it is stored."""

import pytest
from asyncua import ua
from asyncua.server.address_space import NodeData

from edge.features.telemetry.opcua.tag_nodes import TagNodes, data_value, property_id, tag_node_id
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.uaserver.node_parts import object_attributes

A = ua.AttributeIds
DEFINED = (TagDefinition(tag="oven", unit="CEL", low=0, high=300, description="Oven"),)


def tags(*, has_history: bool) -> TagNodes:
    parent = NodeData(ua.NodeId("Gateway", 1))
    parent.attributes = object_attributes(parent.nodeid, ua.QualifiedName("Gateway", 1), "")
    tag_nodes = TagNodes(parent, TagDefinitions(DEFINED), has_history=has_history)
    tag_nodes.show({"wrench.temp": encode_line(Sample(1_000, "wrench.temp", 81.5, Quality.UNCERTAIN)), "torn": "{"})
    return tag_nodes


@pytest.mark.parametrize(("has_history", "level"), [(False, 1), (True, 5)])
def test_access_level_has_the_history_bit_if_history_exists(has_history: bool, level: int) -> None:  # noqa: FBT001 - a parameter
    attributes = tags(has_history=has_history).node(tag_node_id("wrench.temp")).attributes
    assert attributes[A.AccessLevel].value.Value.Value == level
    assert attributes[A.Historizing].value.Value.Value is has_history


def test_value_is_the_last_sample() -> None:
    node = tags(has_history=True).node(tag_node_id("wrench.temp"))
    read = node.attributes[A.Value].value_callback(node.nodeid, A.Value)
    assert (read.Value.Value, read.StatusCode.name) == (81.5, "Uncertain")
    assert read.SourceTimestamp.timestamp() == 1


def test_unknown_tag_has_no_node_and_unreadable_sample_no_value() -> None:
    tag_nodes = tags(has_history=True)
    with pytest.raises(KeyError):
        tag_nodes.node(tag_node_id("other"))
    assert data_value("{").StatusCode.name == "BadWaitingForInitialData"
    assert tag_nodes.has("torn")


def test_property_of_a_tag_is_a_node_and_its_tag_may_have_any_name() -> None:
    tag_nodes = tags(has_history=True)
    tag_nodes.show({"oven": encode_line(Sample(1_000, "oven", 5)), "oven#EURange": encode_line(Sample(1_000, "x", 7))})
    unit = tag_nodes.node(property_id("oven", "EngineeringUnits"))
    assert unit.attributes[A.Value].value.Value.Value.DisplayName.Text == "°C"
    assert unit.attributes[A.DataType].value.Value.Value == ua.NodeId(ua.ObjectIds.EUInformation)
    # The name of a tag wins.
    assert (
        tag_nodes.node(property_id("oven", "EURange")).attributes[A.BrowseName].value.Value.Value.Name == "oven#EURange"
    )
    for missing in (property_id("oven", "TrueState"), property_id("other", "EURange")):
        with pytest.raises(KeyError):
            tag_nodes.node(missing)
