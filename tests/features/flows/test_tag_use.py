"""A flow names the tags that it reads or writes."""

from edge.features.flows.plan import Plan, plan_flow
from edge.features.flows.tag_use import used_tags
from tests.features.flows.documents import flow, node


def test_tags_of_reading_and_writing_nodes_are_used() -> None:
    nodes = [
        node("a", "tag.latest", tag="x"),
        node("b", "tag.window", tag="y", seconds=1),
        node("c", "constant", value="z"),
        node("d", "tag.write", tag="w"),
    ]
    plan = plan_flow(flow(nodes, "a>d"))
    assert isinstance(plan, Plan), plan
    assert used_tags(plan) == {"x", "y", "w"}
