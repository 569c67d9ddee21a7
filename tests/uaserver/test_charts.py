"""Running charts for clients: added and removed with the runs, without a memory leak."""

import asyncio
import resource
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Client, Node, ua
from msgspec.structs import replace

from edge.model.isa95 import IdCall, LocalizedText
from edge.model.job_state import Cause
from edge.model.recipe_name import RecipeName
from edge.model.user import Role
from edge.uaserver.chart_types import ACTION_STATE, CHART_STATE
from edge.uaserver.charts import Charts
from edge.uaserver.namespaces import TYPES_URI, charts_uri
from edge.uaserver.server import UaServer
from edge.uaserver.view import ActionView, ChartView, StepView
from tests.uaserver.running import Space, Station, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

STARTED = 1_767_322_800_000  # 2026-01-02 03:00 UTC
RUNNING = ChartView(
    recipe="rear-axle",
    recipe_name=RecipeName(12, "3f0c7b12aa45"),
    state="running",
    started_at=STARTED,
    steps={
        "position": StepView(elapsed_ms=1200, count=1),
        "tighten": StepView(True, 300, 2),
        "end/1": StepView(),
    },
    actions={
        "tighten@tighten": ActionView("dispatched", 2, deadline=STARTED + 30_000),
        "photo@position": ActionView("completed", 1, {"ok": True}),
        "clamp@position": ActionView("failed", 1, error="no air"),
    },
    waiting=("tighten → end [verified] waits for verified: it is unknown", "action tighten is dispatched"),
    deadline=STARTED + 30_000,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def station() -> Station:
    return Station()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(station: Station) -> AsyncIterator[UaServer]:
    async with served(station=station, role=Role.OPERATOR) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def charts(server: UaServer) -> AsyncIterator[Charts]:
    """The charts of the server; there are none before and after the test."""
    yield server.charts
    for scope in ("station-1", "station-2"):
        for job in ("job-1", "job/2 ü"):
            server.charts.hide(scope, job)


async def folder(space: Space, scope: str = "station-1") -> Node:
    return await (await space.machine(scope)).get_child([space.name("RunningCharts", TYPES_URI)])


async def named(node: Node) -> dict[str, Node]:
    return {(await child.read_browse_name()).Name: child for child in await node.get_children()}


async def values(node: Node) -> dict[str, Any]:
    found = {}
    for name, child in (await named(node)).items():
        if await child.read_node_class() is ua.NodeClass.Variable:
            value = await child.read_data_value()
            found[name] = (value.Value.VariantType, value.Value.Value)
    return found


T = ua.VariantType


async def test_chart_shows_the_current_state_of_its_run(charts: Charts, space: Space) -> None:
    charts.show("station-1", "job-1", lambda: RUNNING)
    (chart,) = await (await folder(space)).get_children()
    assert await values(chart) == {
        "Recipe": (T.String, "rear-axle"),
        "RecipeRevision": (T.UInt32, 12),
        "RecipeHash": (T.String, "3f0c7b12aa45"),
        "State": (T.Int32, CHART_STATE.values.index("running")),
        "StartTime": (T.DateTime, datetime(2026, 1, 2, 3, tzinfo=UTC)),
        "ActiveSteps": (T.String, ["tighten"]),
        "WhyWaiting": (T.String, list(RUNNING.waiting)),
        "Deadline": (T.DateTime, datetime(2026, 1, 2, 3, 0, 30, tzinfo=UTC)),
        "Error": (T.String, ""),
    }
    steps = await named((await named(chart))["Steps"])
    assert list(steps) == ["position", "tighten", "end/1"]
    assert await values(steps["tighten"]) == {"X": (T.Boolean, True), "T": (T.Double, 300.0), "Count": (T.UInt32, 2)}
    actions = await named((await named(chart))["Actions"])
    assert await values(actions["photo@position"]) == {
        "State": (T.Int32, ACTION_STATE.values.index("completed")),
        "Attempt": (T.UInt32, 1),
        "Result": (T.String, '{"ok":true}'),
        "Deadline": (T.Null, None),
        "Error": (T.String, ""),
    }
    assert (await values(actions["clamp@position"]))["Error"] == (T.String, "no air")


async def test_every_node_of_a_chart_matches_its_type(charts: Charts, client: Client, space: Space) -> None:
    charts.show("station-1", "job-1", lambda: RUNNING)
    (chart,) = await (await folder(space)).get_children()
    kinds = {
        "RunningChartType": chart,
        "ChartStepType": (await named((await named(chart))["Steps"]))["tighten"],
        "ChartActionType": (await named((await named(chart))["Actions"]))["tighten@tighten"],
    }
    for name, node in kinds.items():
        declared = client.get_node(await node.read_type_definition())
        assert (await declared.read_browse_name()).Name == name
        members, wanted = await named(node), await named(declared)
        assert members.keys() == wanted.keys()
        for member, node_id in wanted.items():
            for attribute in (ua.AttributeIds.BrowseName, ua.AttributeIds.DataType, ua.AttributeIds.ValueRank):
                if await node_id.read_node_class() is ua.NodeClass.Variable:
                    ours = await members[member].read_attribute(attribute)
                    assert ours.Value == (await node_id.read_attribute(attribute)).Value
        assert (await members[next(iter(wanted))].get_parent()).nodeid == node.nodeid


async def test_chart_ids_are_derived_from_scope_and_job(charts: Charts, space: Space) -> None:
    charts.show("station-2", "job/2 ü", lambda: RUNNING)
    (chart,) = await (await folder(space, "station-2")).get_children()
    assert chart.nodeid == ua.NodeId("station-2/job%2F2%20%C3%BC", space.index[charts_uri("edge")])
    assert (await chart.read_browse_name()).Name == "job/2 ü"
    step = (await named((await named(chart))["Steps"]))["end/1"]
    assert step.nodeid.Identifier == "station-2/job%2F2%20%C3%BC/Steps/end%2F1"


async def test_chart_is_removed_with_its_run(charts: Charts, client: Client, space: Space) -> None:
    charts.show("station-1", "job-1", lambda: RUNNING)
    (chart,) = await (await folder(space)).get_children()
    await values(chart)
    charts.hide("station-1", "job-1")
    assert await (await folder(space)).get_children() == []
    for node in (chart, client.get_node(ua.NodeId(5, chart.nodeid.NamespaceIndex))):
        with pytest.raises(ua.uaerrors.BadNodeIdUnknown):
            await node.read_browse_name()


class Ear:
    def __init__(self) -> None:
        self.heard: asyncio.Queue[Any] = asyncio.Queue()

    def datachange_notification(self, _node: Node, value: Any, data: Any) -> None:
        self.heard.put_nowait(value if data.monitored_item.Value.StatusCode.is_good() else data.monitored_item.Value)

    async def next(self) -> Any:
        async with asyncio.timeout(60):
            return await self.heard.get()


async def test_subscriber_receives_every_change_and_the_end_of_a_chart(
    charts: Charts, client: Client, space: Space
) -> None:
    charts.show("station-1", "job-1", lambda: RUNNING)
    (chart,) = await (await folder(space)).get_children()
    ear = Ear()
    subscription = await client.create_subscription(20, ear)
    item = await subscription.subscribe_data_change((await named(chart))["ActiveSteps"])
    assert await ear.next() == ["tighten"]
    moved = replace(RUNNING, steps={**RUNNING.steps, "tighten": StepView(), "end/1": StepView(active=True)})
    charts.show("station-1", "job-1", lambda: moved)
    assert await ear.next() == ["end/1"]
    charts.hide("station-1", "job-1")
    assert (await ear.next()).StatusCode.value == ua.StatusCodes.BadNodeIdUnknown
    await subscription.unsubscribe(item)
    await subscription.delete()


async def test_unreadable_value_does_not_stop_other_notifications(charts: Charts, client: Client, space: Space) -> None:
    pictures = {"job-1": RUNNING, "job/2 ü": RUNNING}
    ears = {}
    subscriptions = []
    for job in pictures:
        charts.show("station-1", job, partial(pictures.__getitem__, job))
        chart = (await named(await folder(space)))[job]
        ears[job] = Ear()
        subscriptions.append(subscription := await client.create_subscription(20, ears[job]))
        tighten = (await named((await named(chart))["Steps"]))["tighten"]
        await subscription.subscribe_data_change((await named(tighten))["Count"])
        assert await ears[job].next() == 2
    pictures["job-1"] = replace(RUNNING, steps={})
    pictures["job/2 ü"] = replace(RUNNING, steps={"tighten": StepView(count=3)})
    for job in pictures:
        charts.show("station-1", job, partial(pictures.__getitem__, job))
    assert await ears["job/2 ü"].next() == 3
    assert ears["job-1"].heard.empty()
    for subscription in subscriptions:
        await subscription.delete()


async def test_the_first_subscription_starts_the_ticks_of_a_chart(charts: Charts, client: Client, space: Space) -> None:
    ticks = iter(range(1, 1000))

    def read_view() -> ChartView:
        return replace(RUNNING, steps={"tighten": StepView(active=True, elapsed_ms=next(ticks))})

    charts.show("station-1", "job-1", read_view)
    (chart,) = await (await folder(space)).get_children()
    ear = Ear()
    subscription = await client.create_subscription(50, ear)
    steps = await named((await named(chart))["Steps"])
    await subscription.subscribe_data_change((await named(steps["tighten"]))["T"])
    heard = [await ear.next() for _ in range(2)]
    assert heard == sorted(set(heard))
    await subscription.delete()


class TestMethods:
    async def call(self, chart: Node, method: str, *arguments: ua.Variant) -> ua.CallMethodResult:
        node = (await named(chart))[method]
        request = ua.CallMethodRequest(chart.nodeid, node.nodeid, list(arguments))
        (result,) = await chart.session.call([request])
        return result

    @pytest.mark.parametrize("method", ["Pause", "Resume", "Stop", "Abort"])
    async def test_chart_method_controls_the_job_of_the_chart(
        self, charts: Charts, space: Space, station: Station, method: str
    ) -> None:
        station.reset()
        charts.show("station-2", "job/2 ü", lambda: RUNNING)
        (chart,) = await (await folder(space, "station-2")).get_children()
        comment = ua.Variant([ua.LocalizedText("Werkzeug klemmt", "de")], T.LocalizedText, is_array=True)
        result = await self.call(chart, method, comment)
        assert (result.StatusCode.is_good(), [output.Value for output in result.OutputArguments]) == (True, [1])
        (call,) = station.calls
        assert (call.scope, call.method) == ("station-2", Cause(method))
        assert call.arguments == IdCall(
            job_order_id="job/2 ü", comment=(LocalizedText(text="Werkzeug klemmt", locale="de"),)
        )

    async def test_method_arguments_are_described_and_validated(self, charts: Charts, space: Space) -> None:
        charts.show("station-1", "job-1", lambda: RUNNING)
        (chart,) = await (await folder(space)).get_children()
        method = (await named(chart))["Pause"]
        given = await (await method.get_child("0:InputArguments")).read_value()
        answered = await (await method.get_child("0:OutputArguments")).read_value()
        assert [(value.Name, value.DataType.Identifier, value.ValueRank) for value in given] == [("Comment", 21, 1)]
        assert [(value.Name, value.DataType.Identifier, value.ValueRank) for value in answered] == [
            ("ReturnStatus", 9, -1)
        ]
        assert (await self.call(chart, "Pause")).StatusCode.value == ua.StatusCodes.BadArgumentsMissing
        charts.hide("station-1", "job-1")
        gone = await chart.session.call([ua.CallMethodRequest(chart.nodeid, method.nodeid, [])])
        assert gone[0].StatusCode.value == ua.StatusCodes.BadNodeIdUnknown


async def test_thousand_ended_runs_leak_no_memory(charts: Charts, space: Space) -> None:
    async def one(number: int, *, watched: bool) -> None:
        job = f"many-{number}"
        charts.show("station-1", job, lambda: RUNNING)
        if watched:
            (chart,) = await (await folder(space)).get_children()
            await values((await named((await named(chart))["Steps"]))["tighten"])
        charts.show("station-1", job, lambda: RUNNING)
        charts.hide("station-1", job)

    for number in range(50):
        await one(number, watched=True)
    held, used = nodes_held(charts), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(1000):
        await one(number, watched=number % 10 == 0)
    assert nodes_held(charts) == held
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 4096  # KiB


def nodes_held(charts: Charts) -> int:
    # No public attribute shows the number of stored nodes.
    return len(charts._aspace._nodes) + len(charts._aspace._handle_to_attribute_map) + len(charts._charts)  # noqa: SLF001
