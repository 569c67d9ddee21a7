"""Flows of station files are validated with the node kinds of the site."""

from edge.config import Settings
from edge.features.flows.documents import FlowDocuments

FLOW = {
    "id": "count",
    "interval_seconds": 10,
    "nodes": [{"id": "one", "kind": "constant", "config": {"value": 1}}],
    "edges": [],
}


def test_file_that_came_while_the_folder_was_read_is_a_fault() -> None:
    _, faults = FlowDocuments(Settings(), {}).read(FLOW, [])
    assert faults == ("the file came while the folder was read; read it again",)


async def test_faults_of_a_flow_are_reported_with_their_location() -> None:
    documents = FlowDocuments(Settings(), {})
    await documents.prepare()
    assert documents.read(FLOW, [])[1] == ()
    _, faults = documents.read({**FLOW, "nodes": [{"id": "a", "kind": "nope"}]}, [])
    assert faults == ["unknown_kind: a: there is no node kind 'nope'; 'edge flows kinds' lists them"]
