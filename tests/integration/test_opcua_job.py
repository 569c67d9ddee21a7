"""A job over OPC UA alone, from its order to its response: called, monitored, paused and queried."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asyncua import Node, ua

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings
from edge.model.isa95 import Parameter
from edge.uaserver.chart_types import ACTION_STATE, CHART_STATE
from edge.uaserver.encoding import extension_object
from edge.uaserver.namespaces import TYPES_URI
from tests.app.running import opcua_in, settings_of
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, Plant, opened_plant, order
from tests.opcua_client import patient_client
from tests.uaserver.running import UA, Space

NO_COMMENT = ua.Variant([], ua.VariantType.LocalizedText, is_array=True)


@pytest.fixture
async def plant(mqtt: MqttSettings, unique: str) -> AsyncIterator[Plant]:
    async with opened_plant(mqtt, unique) as plant:
        yield plant


class Ear:
    """Hears the events of the server: the job's state in each."""

    def __init__(self) -> None:
        self.states: list[str] = []

    def event_notification(self, event: Any) -> None:
        self.states.append(event.JobState[0].StateText.Text)


async def call(node: Node, name: str, uri_index: int, *arguments: ua.Variant) -> list[Any]:
    method = await node.get_child([ua.QualifiedName(name, uri_index)])
    request = ua.CallMethodRequest(node.nodeid, method.nodeid, list(arguments))
    (result,) = await node.session.call([request])
    assert result.StatusCode.value == ua.StatusCodes.Good
    return [output.Value for output in result.OutputArguments]


async def chart_of(space: Space, job_order_id: str) -> Node:
    folder = await (await space.machine()).get_child([space.name("RunningCharts", TYPES_URI)])
    async with asyncio.timeout(60):
        while True:
            for chart in await folder.get_children():
                if (await chart.read_browse_name()).Name == job_order_id:
                    return chart


async def value(chart: Node, space: Space, *path: str) -> Any:
    names = [
        space.name(path[0], TYPES_URI),
        *(ua.QualifiedName(name, chart.nodeid.NamespaceIndex) for name in path[1:2]),
    ]
    last = [space.name(name, TYPES_URI) for name in path[2:]]
    return await (await chart.get_child([*names, *last])).read_value()


async def test_job_is_ordered_monitored_paused_and_queried_over_opcua(
    plant: Plant, redis: RedisSettings, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    opcua = msgspec.structs.replace(opcua_in(tmp_path), anonymous="engineer")
    async with open_gateway(settings_of(redis, mqtt, unique, opcua)) as gateway:
        endpoint = re.search(r"opc\.tcp://\S+:[1-9]\d+", gateway.serving)
        assert endpoint
        async with patient_client(endpoint[0]) as client:
            await client.load_data_type_definitions()
            await plant.configure(PUSHING)
            space = Space(client, await client.get_namespace_array())
            ear = Ear()
            subscription = await client.create_subscription(50, ear)
            event_type = client.get_node(ua.NodeId("JobOrderStatusEventType", space.index[TYPES_URI]))
            await subscription.subscribe_events(client.nodes.server, event_type)
            management = await space.job_management()
            control = await management.get_child([space.name("JobOrderControl", UA + "Machinery/Jobs/")])
            results = await management.get_child([space.name("JobOrderResults", UA + "Machinery/Jobs/")])
            isa95, types = space.index[UA + "ISA95-JOBCONTROL_V2/"], space.index[TYPES_URI]

            job_order = order("J1").job_order
            limit = Parameter(id="limit", value={"UaType": 6, "Value": 7})
            job_order = msgspec.structs.replace(job_order, job_order_parameters=(limit,))
            assert await call(control, "StoreAndStart", isa95, ua.Variant(extension_object(job_order)), NO_COMMENT) == [
                1
            ]

            chart = await chart_of(space, "J1")
            await wait_until(lambda: plant.wrench.commands)
            assert await value(chart, space, "ActiveSteps") == ["Position"]
            assert await value(chart, space, "Actions", "position@Position", "State") == ACTION_STATE.values.index(
                "dispatched"
            )
            assert any("position" in reason for reason in await value(chart, space, "WhyWaiting"))
            assert plant.wrench.commands[0].data["parameters"] == {"limit": 7}
            (shown,) = await (await space.job_order_list()).read_value()
            (parameter,) = shown.JobOrder.JobOrderParameters
            assert parameter.Value == ua.Variant(7, ua.VariantType.Int32)

            assert await call(chart, "Pause", types, NO_COMMENT) == [1]
            assert await value(chart, space, "State") == CHART_STATE.values.index("paused")
            assert await call(chart, "Resume", types, NO_COMMENT) == [1]
            await plant.wrench.release()
            await wait_until(lambda: ear.states == ["Running", "Interrupted", "Running", "Ended"])
            response, status = await call(results, "RequestJobResponseByJobOrderID", isa95, ua.Variant("J1"))
            assert status == 1
            assert {item.ID for item in response.JobResponseData} == {
                "position",
                "tighten",
                "Attempts",
                "Recipe",
                "Verdict",
            }
            with pytest.raises(ua.uaerrors.BadNodeIdUnknown):
                await chart.read_browse_name()
            assert await call(control, "Clear", isa95, ua.Variant("J1"), NO_COMMENT) == [1]
            await subscription.delete()
