"""The state of a camera is read from the best available source: Id, Number or text."""

from typing import Any, cast

import pytest

from edge.features.vision.state import StateReader, VisionState, call_method, find_part, find_states
from edge.foundation.errors import Refused
from edge.links.opcua import ClientSession, Node

MACHINES = {name: Node(f"i={number}", name) for number, name in enumerate(("machine", "mode"))}


class Server:
    """A server whose CurrentState offers some details; its state nodes have numbers."""

    def __init__(self, **details: Any) -> None:
        self.details = details
        self.reads = 0

    async def children(self, node: Node) -> dict[str, Node]:
        if node.id == "ns=2;i=5028":
            return {"StateNumber": Node("number", "StateNumber")}
        if node.id.startswith("ns=2"):
            raise Refused("unknown_node", "there is none")
        if node.id.startswith("i="):
            return {"CurrentState": Node(f"current {node.id}", "CurrentState")}
        return {name: Node(f"{name} {node.id}", name) for name in self.details}

    async def read(self, node: Node) -> Any:
        self.reads += 1
        return 1 if node.id == "number" else self.details[node.path]


@pytest.mark.parametrize(
    ("details", "watched"),
    [
        ({"Id": "ns=2;i=5028", "Number": 1}, "Id"),
        ({"Id": "i=0", "Number": 1}, "Number"),
        ({"Id": None, "Number": 0}, "CurrentState"),
        ({}, "CurrentState"),
    ],
)
async def test_most_specific_available_state_detail_is_watched(details: dict[str, Any], watched: str) -> None:
    states = await find_states(cast("ClientSession", Server(**details)), MACHINES)
    assert {name: variable.path for name, variable in states.variables.items()} == {"machine": watched, "mode": watched}


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("ns=2;i=5028", VisionState.PREOPERATIONAL),
        ("ns=2;i=1", VisionState.UNKNOWN),
        (7, VisionState.SINGLE_EXECUTION),
        (99, VisionState.UNKNOWN),
        ("Single Execution", VisionState.SINGLE_EXECUTION),
        ("i=0", VisionState.UNKNOWN),
        ("", VisionState.UNKNOWN),
        (None, VisionState.UNKNOWN),
    ],
)
async def test_value_is_mapped_to_a_state(value: Any, state: VisionState) -> None:
    reader = StateReader(cast("ClientSession", Server()), {})
    assert await reader.state(value) is state


async def test_state_node_is_read_once() -> None:
    server = Server()
    reader = StateReader(cast("ClientSession", server), {})
    for _ in range(3):
        await reader.state("ns=2;i=5028")
    assert server.reads == 1


async def test_camera_without_current_state_is_refused() -> None:
    class Bare(Server):
        async def children(self, node: Node) -> dict[str, Node]:
            return {}

    with pytest.raises(Refused, match="the camera has no CurrentState of machine"):
        await find_states(cast("ClientSession", Bare()), MACHINES)


OWNER = Node("i=1", "/Camera")


class Answering:
    """A session whose every call has the same outputs."""

    def __init__(self, outputs: list[Any]) -> None:
        self._outputs = outputs

    async def call(self, *_: object) -> list[Any]:
        return self._outputs


async def test_outputs_are_returned_without_the_error() -> None:
    session = cast("ClientSession", Answering(["V1", 0]))
    assert await call_method(session, OWNER, "StartSingleJob") == ["V1"]


@pytest.mark.parametrize(("outputs", "reason"), [(["V1", 7], "the camera says error 7"), (["V1"], "OPC 40100-1")])
async def test_error_of_a_method_is_a_refusal(outputs: list[Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        await call_method(cast("ClientSession", Answering(outputs)), OWNER, "StartSingleJob")


def test_missing_part_is_refused_by_name() -> None:
    assert find_part({"Camera": OWNER}, "Camera") is OWNER
    with pytest.raises(Refused, match="no RecipeManagement"):
        find_part({}, "RecipeManagement")
