"""The status of a flow is read from the store, with the progress of its workers."""

import pytest

from edge.features.flows import keys as flows_keys
from edge.features.flows.cli.stored_flows import print_faults
from edge.features.flows.plan import Fault, FaultKind
from edge.features.flows.public_flow import PublicNode
from edge.features.flows.public_form import public_detail
from edge.features.flows.redis_state import RedisFlowState
from edge.store.client import Store
from tests.features.flows.gateways import CHAIN, FakeOutside, Plant


async def read_node(plant: Plant, name: str) -> PublicNode:
    cycle = (await public_detail(plant.service, "flow", None)).cycle
    assert cycle
    return next(node for node in cycle.nodes if node.node == name)


async def test_status_has_the_progress_of_workers(store: Store, outside: FakeOutside) -> None:
    plant = Plant(RedisFlowState(store))
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        await plant.at("read")
        mark = '{"worker_id":"w","progress":7,"message":"on its way"}'
        await store.execute("SET", flows_keys.node_worker(store.keys, "flow", 0, "read"), mark)
        public_node = await read_node(plant, "read")
        outside.release()
        await plant.ended()
    assert (public_node.worker, public_node.progress, public_node.message) == ("w", 7, "on its way")
    ended = await read_node(plant, "read")
    assert (ended.worker, ended.progress, ended.message) == ("", 100, "")


def test_each_fault_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_faults("f.json", [Fault(FaultKind.EMPTY, "nodes", "no nodes"), Fault(FaultKind.CYCLE, ("a", "b"), "a loop")])
    assert capsys.readouterr().out == "empty: nodes: no nodes\ncycle: a, b: a loop\nf.json: 2 faults\n"
