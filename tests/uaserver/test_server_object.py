"""A client on another stack reads the mandatory content of the Server object (OPC 10000-5)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import edge
from edge.model.user import Role
from edge.opcua import limits
from edge.uaserver.namespaces import Namespace
from edge.uaserver.view import ActionView, ChartView, StepView
from tests.uaserver.other_stack import OtherStack, node, other_stack, value_of
from tests.uaserver.running import MACHINES, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

PROFILES, LOCALES, MAX_SESSIONS, MAX_READ = "i=2269", "i=2271", "i=24095", "i=11705"
BUILD_DATE, AUDITING, REDUNDANCY, ENABLED = "i=2266", "i=2994", "i=3709", "i=2294"
SUMMARY, CURRENT_SESSIONS, CURRENT_SUBSCRIPTIONS = "i=2275", "i=2277", "i=2285"
SERVER_ARRAY, NAMESPACE_ARRAY = "i=2254", "i=2255"
REJECTED_REQUESTS = "i=2288"
SUBSCRIPTIONS, SESSIONS, SECURITY = "i=2290", "i=3707", "i=3708"
DESCRIPTION, BROWSE_NAME = 5, 3
BUILT = datetime.fromtimestamp(int(Path(edge.__file__).stat().st_mtime), UTC)
UNSERVED = {
    "ServerConfiguration": "i=12637",
    "PublishSubscribe": "i=14443",
    "RoleSet": "i=15606",
    "HistoryServerCapabilities": "i=11192",
    "AccessHistoryDataCapability": "i=11193",
    "DefaultHAConfiguration": "i=32637",
    "SetSubscriptionDurable": "i=12749",
    "Aliases": "i=23470",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engineer() -> AsyncIterator[OtherStack]:
    async with (
        served(machines=MACHINES[:1], role=Role.ENGINEER, equipment=("wrench",)) as server,
        other_stack(server.endpoint) as client,
    ):
        server.charts.show("station-1", "job-1", lambda: CHART)
        yield client


async def test_capabilities_have_profiles_and_limits(other: OtherStack) -> None:
    profiles, locales, sessions, reads = await other.values(PROFILES, LOCALES, MAX_SESSIONS, MAX_READ)
    assert "http://opcfoundation.org/UA-Profile/Server/EmbeddedUA2017" in profiles
    assert locales[0] == "en"
    assert {"de", "fr"} <= set(locales)
    assert (sessions, reads) == (limits.DEFAULTS.sessions, limits.DEFAULTS.operations["MaxNodesPerRead"])


async def test_the_server_has_no_variable_without_a_value(other: OtherStack) -> None:
    found = await descendants(other, ("i=2253",), {0})
    variables = [text for text, node_class in found.items() if node_class == "Variable" and namespace_of(text) == 0]
    empty = [
        name
        for name, value in zip(variables, await other.read(*map(value_of, variables)), strict=True)
        if value["statusCode"] == "Good" and value["value"] is None
    ]
    assert len(variables) > 50
    assert empty == []


async def test_server_array_has_one_server(other: OtherStack) -> None:
    servers, namespaces = await other.values(SERVER_ARRAY, NAMESPACE_ARRAY)
    assert servers == [namespaces[1]]


async def test_the_build_date_is_that_of_the_program(other: OtherStack) -> None:
    (shown,) = await other.values(BUILD_DATE)
    assert datetime.fromisoformat(shown) == BUILT


async def test_auditing_and_redundancy_are_disabled(other: OtherStack) -> None:
    assert await other.values(AUDITING, REDUNDANCY, ENABLED) == [False, 0, True]


@pytest.mark.parametrize("name", UNSERVED)
async def test_unserved_node_is_absent(other: OtherStack, name: str) -> None:
    (read,) = await other.read({"nodeId": node(UNSERVED[name]), "attributeId": BROWSE_NAME})
    assert read["statusCode"] == "BadNodeIdUnknown"


async def test_the_summary_counts_sessions_subscriptions_and_faults(engineer: OtherStack) -> None:
    session = await engineer.send("connect")
    made = await engineer.subscription(at=session)
    await engineer.monitor(made, value_of(CURRENT_SUBSCRIPTIONS), at=session)
    counts = await engineer.changes(1, at=session)
    while counts[-1]["value"]["value"]["value"] != 1:
        counts = await engineer.changes(1, at=session)
    summary = await until(engineer, SUMMARY, lambda shown: shown["currentSubscriptionCount"] == 1)
    assert summary["currentSessionCount"] >= 2
    assert summary["cumulatedSessionCount"] >= summary["currentSessionCount"]
    assert await engineer.values(REJECTED_REQUESTS) == [summary["rejectedRequestsCount"]]
    await engineer.send("close", at=session)


async def test_diagnostics_describe_each_session_and_subscription(engineer: OtherStack) -> None:
    made = await engineer.subscription()
    await engineer.monitor(made, value_of(AUDITING), value_of(ENABLED, mode=0))
    shown = await until(
        engineer, SUBSCRIPTIONS, lambda entries: any(entry["monitoredItemCount"] == 2 for entry in entries)
    )
    subscription = next(value for value in shown if value["subscriptionId"] == made)
    assert (subscription["publishingInterval"], subscription["disabledMonitoredItemCount"]) == (50, 1)
    sessions = await until(engineer, SESSIONS, lambda entries: entries[0]["readCount"]["totalCount"] > 0)
    assert sessions[0]["clientDescription"]["applicationName"]["text"]
    assert subscription["sessionId"] in {session["sessionId"] for session in sessions}
    security = await until(engineer, SECURITY, bool)
    assert {value["authenticationMechanism"] for value in security} == {"Anonymous"}
    await engineer.send("DeleteSubscriptions", subscriptionIds=[made])


async def test_an_observer_reads_the_summary_only(other: OtherStack, subscription: int) -> None:
    read = await other.read(*map(value_of, (SUMMARY, SUBSCRIPTIONS, SESSIONS, SECURITY)))
    denied = ["BadUserAccessDenied"] * 3
    assert [entry["statusCode"] for entry in read] == ["Good", *denied]
    monitored = await other.monitor(subscription, *map(value_of, (SUBSCRIPTIONS, SESSIONS, SECURITY)))
    assert [entry["statusCode"] for entry in monitored] == denied


async def test_every_own_node_has_a_description(engineer: OtherStack) -> None:
    ours = {namespace.value for namespace in (Namespace.APPLICATION, Namespace.TYPES, *PLACES)}
    found = [descendant for descendant in await descendants(engineer, ROOTS, ours) if namespace_of(descendant) in ours]
    asked = [{"nodeId": node(text), "attributeId": DESCRIPTION} for text in found]
    read = await engineer.read(*asked)
    bare = [name for name, value in zip(found, read, strict=True) if not value["value"]["value"]["text"]]
    assert len(found) > 150
    assert bare == []


ROOTS = ("i=85", "i=58", "i=11715", "ns=4;i=1001", "ns=5;i=1006")
"""The nodes Objects, BaseObjectType, Namespaces, Machines and the abstract event type."""
PLACES = (Namespace.MACHINES, Namespace.CHARTS)
CHART = ChartView(
    recipe="rear-axle",
    state="running",
    started_at=0,
    steps={"tighten": StepView(active=True)},
    actions={"tighten@tighten": ActionView("dispatched")},
)


def namespace_of(text: str) -> int:
    return int(text.removeprefix("ns=").partition(";")[0]) if text.startswith("ns=") else 0


async def until(other: OtherStack, of: str, holds: Callable[[Any], bool]) -> Any:
    """Read diagnostics until they fulfil the condition; they are computed once per second."""
    async with asyncio.timeout(30):
        while True:
            if holds(shown := await other.send("structures", of=of)):
                return shown
            await asyncio.sleep(0.1)


async def descendants(other: OtherStack, roots: Iterable[str], namespaces: Container[int]) -> dict[str, str]:
    """Return the nodes of the namespaces below the roots, with their class; follow forward hierarchical references."""
    found: dict[str, str] = {}
    pending = list(roots)
    while pending:
        asked = [
            {
                "nodeId": node(text),
                "referenceTypeId": node("i=33"),
                "includeSubtypes": True,
                "browseDirection": 0,
                "resultMask": 63,
            }
            for text in pending[:20]
        ]
        pending = pending[20:]
        for result in (await other.send("Browse", nodesToBrowse=asked))["results"]:
            for reference in result["references"] or ():
                if reference["nodeId"] not in found and namespace_of(reference["nodeId"]) in namespaces:
                    found[reference["nodeId"]] = CLASSES.get(reference["nodeClass"], "")
                    pending.append(reference["nodeId"])
    return found


CLASSES = {1: "Object", 2: "Variable", 4: "Method"}
