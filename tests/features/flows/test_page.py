"""Flows are shown and changed over the API and on their pages."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
import pytest_asyncio

from edge.access.login import Users
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import FakeOutside
from tests.features.flows.gateways import Plant as FlowPlant
from tests.features.flows.memory_state import MemoryFlowState
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of, serving
from tests.station.plant import Plant

REPORT = flow(
    [node("read", "tag.latest", tag="t"), node("<x", "expression", expr="input * 2")], "read><x", interval_seconds=1
)


@pytest.fixture
def flow_plant() -> FlowPlant:
    """Gateways that run flows, with a state in memory."""
    return FlowPlant(MemoryFlowState())


@pytest_asyncio.fixture
async def flow_page(plant: Plant, users: Users, flow_plant: FlowPlant) -> AsyncIterator[Browser]:
    """The page of a gateway with flows."""
    async with serving(
        services_of(plant, users, ports={"flows": SimpleNamespace(service=flow_plant.service)})
    ) as browser:
        yield browser


async def test_cycle_is_shown_with_its_nodes_and_graph(flow_page: Browser, flow_plant: FlowPlant) -> None:
    async with flow_plant.gateway():
        await flow_plant.run(REPORT)
        await flow_plant.ended()
    eve = await flow_page.logged_in("eve")
    assert (await eve.get("/api/v1/flows")).json["flows"][0]["ended"]["completed"] >= 1
    found = (await eve.get("/api/v1/flows/flow?cycle=0")).json
    assert [(value["node"], value["output"]) for value in found["cycle"]["nodes"]] == [("read", 21), ("<x", 42)]
    assert found["cycles"][-1]["number"] == 0
    assert (await eve.get("/api/v1/flows/flow/graph.svg?cycle=0")).text.startswith("<svg")
    assert (await eve.get("/api/v1/flows/flow?cycle=700")).json["kind"] == "unknown_cycle"
    assert (await eve.get("/api/v1/flows/flow?cycle=-1")).json["kind"] == "invalid_query"
    assert (await eve.get("/api/v1/flows/none")).status == 404
    page = (await eve.get("/flow?id=flow")).text
    assert "&lt;x" in page
    assert "<x" not in page


async def test_operator_stops_and_restarts_a_flow(flow_page: Browser, flow_plant: FlowPlant) -> None:
    outside = FakeOutside()
    outside.hold()
    async with flow_plant.gateway(outside=outside):
        await flow_plant.run(REPORT)
        await flow_plant.at("read")
        eve, alice = await flow_page.logged_in("eve"), await flow_page.logged_in("alice")
        assert (await eve.post("/api/v1/flows/flow/stop", {})).json["kind"] == "forbidden"
        both = {"node": "read", "component": 0}
        assert (await alice.post("/api/v1/flows/flow/terminate", both)).json["kind"] == "invalid_payload"
        ended = await alice.post("/api/v1/flows/flow/terminate", {"reason": "wrong tag"})
        assert (ended.json["flow"]["status"], ended.json["cycle"]["status"]) == ("stopped", "terminated")
        assert (await alice.post("/api/v1/flows/flow/terminate", {"node": "read"})).json["kind"] == "no_cycle"
    assert "wrong tag" in (await alice.get("/flow?id=flow")).text
    assert (await alice.post("/api/v1/flows/flow/start", {})).json["flow"]["status"] == "running"
    stopped = (await alice.post("/api/v1/flows/flow/stop", {})).json["flow"]
    assert (stopped["status"], stopped["reason"]) == ("stopped", "by alice at the station page")


async def test_disabled_flows_are_reported(plant: Plant, users: Users) -> None:
    async with serving(services_of(plant, users)) as browser:
        eve = await browser.logged_in("eve")
        assert (await eve.get("/api/v1/flows")).json == {"enabled": False, "flows": []}
        assert (await eve.get("/api/v1/flows/flow")).json["kind"] == "flows_off"
        assert "Flows are off" in (await eve.get("/flows")).text
