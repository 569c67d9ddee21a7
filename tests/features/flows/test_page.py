"""Flows are shown and changed over the API and on their pages."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.foundation.text import labels
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


DOSES = flow(
    [
        node("dose", "tag.latest", tag="dose"),
        node("double", "expression", expr="input * 2"),
        node("open", "tag.latest", tag="t"),
        node("sum", "expression", expr="input + 79"),
    ],
    "dose>double open>sum",
    interval_seconds=1,
)
"""Tag `dose` has the role operator; what the fake outside reads of any tag is 21."""


async def test_outputs_of_a_tag_with_a_role_are_hidden_from_lower_ones(
    flow_page: Browser, flow_plant: FlowPlant
) -> None:
    async with flow_plant.gateway():
        await flow_plant.run(DOSES)
        await flow_plant.ended()
    eve, alice = await flow_page.logged_in("eve"), await flow_page.logged_in("alice")
    # Graphs are shared between people of one role only: the operator reads first.
    for person, hides in ((alice, False), (eve, True)):
        nodes = {
            found["node"]: found for found in (await person.get("/api/v1/flows/flow?cycle=0")).json["cycle"]["nodes"]
        }
        assert {name for name, found in nodes.items() if found.get("hidden")} == (
            {"dose", "double"} if hides else set()
        )
        assert [found["output"] for found in nodes.values()] == ([None, None, 21, 100] if hides else [21, 42, 21, 100])
        for path in ("/api/v1/flows/flow/graph.svg?cycle=0&live", "/flow?id=flow&cycle=0"):
            text = (await person.get(path)).text
            assert (">42<" in text) == (not hides), path
            assert ">100<" in text
        assert ("hidden from your role" in (await person.get("/flow?id=flow&cycle=0")).text) == hides


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


BROKEN = flow(
    [node("read", "tag.latest", tag="t"), node("mean", "aggregate", of="mean"), node("after", "expression", expr="1")],
    "read>mean mean>after",
    interval_seconds=1,
)
"""Its second node takes a list, and gets a number."""


@pytest.mark.parametrize(
    ("language", "reason", "skipped"),
    [
        ("en", "the input is a number; this node takes a list of numbers or samples", "a node before it failed"),
        ("de", "der Eingang ist eine Zahl; dieser Knoten nimmt eine Liste", "ein Knoten davor ist fehlgeschlagen"),
        ("fr", "l&#39;entrée est un nombre ; ce nœud prend une liste", "un nœud précédent a échoué"),
    ],
)
async def test_reasons_are_in_the_language_of_the_reader(
    flow_page: Browser, flow_plant: FlowPlant, language: str, reason: str, skipped: str
) -> None:
    async with flow_plant.gateway():
        await flow_plant.run(BROKEN)
        await flow_plant.ended()
    alice = await flow_page.logged_in("alice")
    await alice.post("/api/v1/flows/flow/stop", {})
    page = (await alice.get("/flow?id=flow&cycle=0", accept_language=language)).text
    assert reason in page
    assert skipped in page
    graph = (await alice.get("/api/v1/flows/flow/graph.svg?cycle=0", accept_language=language)).text
    assert labels(language)["flow.skipped"] in graph
    found = (await alice.get("/api/v1/flows/flow?cycle=0", accept_language=language)).json
    assert [found["reason"] for found in found["cycle"]["nodes"]][2] == "dependency_failed"
    assert (
        found["flow"]["reason"]
        == {
            "en": "by alice at the station page",
            "de": "von alice an der Stationsseite",
            "fr": "par alice sur la page de la station",
        }[language]
    )


async def test_disabled_flows_are_reported(plant: Plant, users: Users) -> None:
    async with serving(services_of(plant, users)) as browser:
        eve = await browser.logged_in("eve")
        assert (await eve.get("/api/v1/flows")).json == {"enabled": False, "flows": []}
        assert (await eve.get("/api/v1/flows/flow")).json["kind"] == "flows_off"
        assert "Flows are off" in (await eve.get("/flows")).text
