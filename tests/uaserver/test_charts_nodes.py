"""The nodes of one chart: their references and their shared attributes."""

from typing import Any

from asyncua import ua
from asyncua.server.address_space import NodeData

from edge.opcua.access import reading_in
from edge.uaserver.charts import FOLDER_TYPE, METHODS, chart_node_id, nodes_of, object_node
from edge.uaserver.node_parts import object_attributes
from edge.uaserver.own_types import type_name
from edge.uaserver.view import ActionView, ChartView, PartTexts, StepView


def made(steps: int) -> dict[ua.NodeId, NodeData]:
    view = ChartView(
        recipe="r",
        state="running",
        started_at=0,
        steps={f"step-{number}": StepView() for number in range(steps)},
        actions={"a@step-0": ActionView("pending")},
    )
    return chart_nodes(view)


def chart_nodes(view: ChartView) -> dict[ua.NodeId, NodeData]:
    machine = NodeData(ua.NodeId("s", 8))
    machine.attributes = object_attributes(machine.nodeid, ua.QualifiedName("s", 8), "")
    folder = object_node(chart_node_id("s"), type_name("RunningCharts"), FOLDER_TYPE, machine)
    return {node.nodeid: node for node in nodes_of("s/job", "job", folder, lambda: view)}


def test_every_reference_within_a_chart_has_its_inverse() -> None:
    nodes = made(3)
    for node in nodes.values():
        for reference in node.references:
            if reference.NodeId in nodes:
                back = [value for value in nodes[reference.NodeId].references if value.NodeId == node.nodeid]
                assert [value.IsForward for value in back] == [not reference.IsForward]
    reached = {reference.NodeId for node in nodes.values() for reference in node.references if reference.IsForward}
    assert nodes.keys() - reached == {chart_node_id("s/job")}


def test_methods_of_a_chart_are_those_of_its_type() -> None:
    root = made(1)[chart_node_id("s/job")]
    assert {reference.NodeId for reference in root.references} >= METHODS.keys()


def test_variables_of_the_same_name_share_common_attributes() -> None:
    nodes = made(2)
    one, other = (nodes[chart_node_id(f"s/job/Steps/step-{number}/X")] for number in range(2))
    assert one.attributes[ua.AttributeIds.DataType] is other.attributes[ua.AttributeIds.DataType]
    assert one.attributes[ua.AttributeIds.Value] is not other.attributes[ua.AttributeIds.Value]


def test_part_is_shown_by_its_title_in_the_locale_of_the_session() -> None:
    step = StepView(texts=PartTexts({"en": "Seat the cable", "de": "Kabel einlegen"}, "On the left side"))
    view = ChartView("r", "running", 0, {"SeatCable": step}, {"tighten_left@SeatCable": ActionView("pending")})
    nodes = chart_nodes(view)
    seat = nodes[chart_node_id("s/job/Steps/SeatCable")]
    assert read(seat, ua.AttributeIds.BrowseName).Name == "SeatCable"
    assert read(seat, ua.AttributeIds.Description).Text == "On the left side"
    with reading_in(("de-AT", "en")):
        assert read(seat, ua.AttributeIds.DisplayName) == ua.LocalizedText("Kabel einlegen", "de")
    assert read(seat, ua.AttributeIds.DisplayName) == ua.LocalizedText("Seat the cable", "en")
    action = nodes[chart_node_id("s/job/Actions/tighten_left%40SeatCable")]
    assert read(action, ua.AttributeIds.DisplayName).Text == "Tighten left"


def read(node: NodeData, attribute: ua.AttributeIds) -> Any:
    held = node.attributes[attribute]
    value = held.value_callback(node.nodeid, attribute) if held.value_callback else held.value
    assert value is not None
    assert value.Value is not None
    return value.Value.Value
