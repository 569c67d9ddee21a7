"""Measured values of results below the running charts, as another stack (node-opcua) and plain asyncua see them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Client, Node, ua
from msgspec.structs import replace

from edge.uaserver.charts import Charts
from edge.uaserver.namespaces import TYPES_URI
from edge.uaserver.server import UaServer
from edge.uaserver.view import ActionView, ChartView
from tests.opcua_client import patient_client
from tests.uaserver.other_stack import OtherStack
from tests.uaserver.running import Space

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

RESULT = {
    "evaluation": "OK",
    "torque": {"value": 85.2, "unit": "Nm"},
    "angle": {"value": 31, "unit": "°"},
    "results": {"1": {"torque": {"value": 85, "unit": "Nm"}}},
    "note": {"value": "tight", "unit": "Nm"},
}
IDLE = ActionView("dispatched", 1)
DONE = ActionView("completed", 1, RESULT)
PATH = "ns=9;s=station-1/job-1/Actions/tighten%40tighten/Result"
"""The NodeId of the result in its text."""


def chart(action: ActionView) -> ChartView:
    """Return a view with one action."""
    return ChartView("rear-axle", "running", None, {}, {"tighten@tighten": action})


@pytest_asyncio.fixture(loop_scope="module")
async def charts(observed: UaServer) -> AsyncIterator[Charts]:
    """The charts of the server; there are none before and after the test."""
    yield observed.charts
    observed.charts.hide("station-1", "job-1")


@pytest_asyncio.fixture(loop_scope="module")
async def client(observed: UaServer) -> AsyncIterator[Client]:
    """A plain client of asyncua."""
    async with patient_client(observed.endpoint) as connected:
        yield connected


async def members(node: Node) -> dict[str, Node]:
    return {(await child.read_browse_name()).Name: child for child in await node.get_children()}


async def test_numbers_of_a_result_are_analog_values_with_their_units(charts: Charts, client: Client) -> None:
    """A client found one text of JSON."""
    charts.show("station-1", "job-1", lambda: chart(DONE))
    found = await members(client.get_node(PATH))
    assert list(found) == ["torque", "angle", "results.1.torque"]
    for node in found.values():
        assert (await node.read_type_definition()).Identifier == ua.ObjectIds.AnalogUnitType
        assert (await node.read_data_type()).Identifier == ua.ObjectIds.Double
        assert (await node.read_description()).Text
    assert [(await node.read_value()) for node in found.values()] == [85.2, 31.0, 85.0]
    units = [await (await node.get_child("0:EngineeringUnits")).read_value() for node in found.values()]
    assert [(unit.UnitId, unit.DisplayName.Text) for unit in units] == [
        (int.from_bytes(b"NU"), "N·m"),
        (int.from_bytes(b"DD"), "°"),
        (int.from_bytes(b"NU"), "N·m"),
    ]
    assert units[0].NamespaceUri == "http://www.opcfoundation.org/UA/units/un/cefact"


async def test_another_stack_reads_a_measured_value_and_its_unit(charts: Charts, other: OtherStack) -> None:
    charts.show("station-1", "job-1", lambda: chart(DONE))
    value, unit = await other.values(f"{PATH}/torque", f"{PATH}/torque/EngineeringUnits")
    assert value == 85.2
    assert (unit["unitId"], unit["displayName"]["text"]) == (int.from_bytes(b"NU"), "N·m")


async def test_values_appear_with_the_result_of_a_chart_that_is_read(charts: Charts, client: Client) -> None:
    charts.show("station-1", "job-1", lambda: chart(IDLE))
    assert await members(client.get_node(PATH)) == {}
    charts.show("station-1", "job-1", lambda: chart(DONE))
    assert "torque" in await members(client.get_node(PATH))


async def test_subscriber_of_a_value_gets_the_next_result(charts: Charts, client: Client) -> None:
    charts.show("station-1", "job-1", lambda: chart(DONE))
    notified: asyncio.Queue[Any] = asyncio.Queue()

    class Listener:
        def datachange_notification(self, _node: Node, value: Any, data: Any) -> None:
            status = data.monitored_item.Value.StatusCode
            notified.put_nowait(value if status is None or status.is_good() else status.name)

    subscription = await client.create_subscription(50, Listener())
    await subscription.subscribe_data_change(client.get_node(f"{PATH}/torque"))
    async with asyncio.timeout(30):
        assert await notified.get() == 85.2
        charts.show("station-1", "job-1", lambda: chart(IDLE))
        assert await notified.get() == "BadWaitingForInitialData"
        again = replace(DONE, attempt=2, result={"torque": {"value": 90, "unit": "N·m"}})
        charts.show("station-1", "job-1", lambda: chart(again))
        while (value := await notified.get()) == "BadWaitingForInitialData":
            pass
        assert value == 90.0
    await subscription.delete()


async def test_number_in_another_unit_is_not_a_value_of_the_variable(charts: Charts, client: Client) -> None:
    """A client that has read the unit once must not take foot-pounds for newton metres."""
    charts.show("station-1", "job-1", lambda: chart(DONE))
    torque = client.get_node(f"{PATH}/torque")
    assert await torque.read_value() == 85.2
    pounds = replace(DONE, attempt=2, result={"torque": {"value": 62.8, "unit": "lbf·ft"}})
    charts.show("station-1", "job-1", lambda: chart(pounds))
    found = await torque.read_data_value(raise_on_bad_status=False)
    assert found.StatusCode.name == "BadTypeMismatch"
    assert (await torque.read_type_definition()).Identifier == ua.ObjectIds.AnalogUnitType


async def test_unknown_unit_keeps_its_symbol_without_a_code(charts: Charts, client: Client) -> None:
    strange = ActionView("completed", 1, {"value": 3, "unit": "furlong"})
    charts.show("station-1", "job-1", lambda: chart(strange))
    unit = await client.get_node(f"{PATH}/value/EngineeringUnits").read_value()
    assert (unit.UnitId, unit.DisplayName.Text) == (-1, "furlong")


async def test_type_of_an_action_declares_its_measured_values(client: Client) -> None:
    space = Space(client, await client.get_namespace_array())
    kinds = client.nodes.base_object_type
    action = await kinds.get_child([space.name("ChartActionType", TYPES_URI)])
    value = await action.get_child([space.name("Result", TYPES_URI), space.name("<Value>", TYPES_URI)])
    assert (await value.read_type_definition()).Identifier == ua.ObjectIds.AnalogUnitType
    assert "EngineeringUnits" in await members(value)
