"""An action has an id of its own, which names its node task."""

from edge.features.flows.nodes.outside import action_id, task_of


def test_action_id_holds_its_node_task() -> None:
    assert action_id("f_0_a@b", 5) != action_id("f_0_a@b", 6)
    assert task_of(action_id("f_0_a@b", 5)) == "f_0_a@b"
