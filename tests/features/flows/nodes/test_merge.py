"""A merge is the object of its inputs."""

from edge.features.flows.nodes.merge import KIND
from tests.features.flows.nodes.attempts import run


def test_output_is_an_object_of_the_inputs_by_node_id() -> None:
    assert run(KIND, {}, a=1, b=None).value == {"a": 1, "b": None}
