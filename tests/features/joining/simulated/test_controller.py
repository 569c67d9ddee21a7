"""Tests of the simulated tightening controller and its faults, with an OPC UA client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from edge.features.joining.simulated.controller import IjtFault, JoiningController, open_ijt
from edge.foundation.errors import Refused, Unavailable
from edge.links.opcua import ClientSession, EventField, Node, TypeName, open_client

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

IJT = "http://opcfoundation.org/UA/IJT/Base/"
RESULT = EventField(TypeName("http://opcfoundation.org/UA/Machinery/Result/", 1002), "Result")
MESSAGE = EventField(TypeName("http://opcfoundation.org/UA/", 2041), "Message")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[JoiningController]:
    async with open_ijt(delay=0.0) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def session(controller: JoiningController) -> AsyncIterator[ClientSession]:
    controller.forget()
    async with open_client(controller.device.url) as opened:
        yield opened


async def parts(session: ClientSession) -> dict[str, Node]:
    (system,) = await session.instances(TypeName(IJT, 1005))
    nodes = await session.children(system)
    return nodes | await session.children(nodes["AssetManagement"])


async def start(controller: JoiningController, session: ClientSession, fault: IjtFault) -> list[Any]:
    """Start a joining of 50 Nm; return the outputs of StartJoiningProcess."""
    controller.fault = fault
    nodes = await parts(session)
    assert await session.call(nodes["MethodSet"], "EnableAsset", "", True) == [0, "done"]
    entity = {"Name": "VIN", "EntityId": "WDB1", "EntityType": 20}
    process = {"SelectionName": "front 50Nm"}
    return await session.call(nodes["JoiningProcessManagement"], "StartJoiningProcess", "", process, [entity])


async def happening(controller: JoiningController, session: ClientSession, fault: IjtFault) -> dict[str, Any]:
    """Start a joining; return its first event."""
    async with session.watch(None, (RESULT, MESSAGE), {}) as happenings:
        assert await start(controller, session, fault) == [0, "done"]
        first = await anext(happenings)
        assert not isinstance(first, Refused)
        return dict(first)


async def is_reachable(url: str) -> bool:
    try:
        async with open_client(url):
            return True
    except Unavailable:
        return False


async def test_joining_ends_with_a_result_with_its_identifiers(
    controller: JoiningController, session: ClientSession
) -> None:
    event = (await happening(controller, session, IjtFault.NONE))["Result"]
    meta = event["ResultMetaData"]
    assert [entity["EntityId"] for entity in meta["AssociatedEntities"]] == ["WDB1"]
    assert (meta["Name"], meta["ResultEvaluation"]) == ("front 50Nm", 1)
    assert event["ResultContent"][0]["OverallResultValues"][0]["MeasuredValue"] == 50.1
    results = (await parts(session))["ResultManagement"]
    _, latest, error = await session.call(results, "GetLatestResult", 1000)
    assert (latest["ResultMetaData"]["ResultId"], error) == (meta["ResultId"], 0)
    assert await session.call(results, "AcknowledgeResults", [meta["ResultId"], "?"]) == [[0, 1], 1]
    assert await session.call(results, "RequestUnacknowledgedResults", 0, 0) == [0.0, 0, 0, "done"]


async def test_torque_fault_yields_a_not_ok_result(controller: JoiningController, session: ClientSession) -> None:
    event = (await happening(controller, session, IjtFault.NOK))["Result"]
    assert event["ResultMetaData"]["ResultEvaluation"] == 2
    assert event["ResultContent"][0]["OverallResultValues"][0]["MeasuredValue"] == 60.0


async def test_controller_fault_during_a_joining_is_simulated(
    controller: JoiningController, session: ClientSession
) -> None:
    event = await happening(controller, session, IjtFault.ERROR_STATE)
    assert (event["Result"], event["Message"]) == (None, "the spindle is jammed")
    assert not controller.enabled


async def test_refusal_of_a_joining_is_simulated(controller: JoiningController, session: ClientSession) -> None:
    assert await start(controller, session, IjtFault.REFUSED) == [1, "the tool is locked"]


@pytest.mark.parametrize(("fault", "results"), [(IjtFault.DISCONNECT, 1), (IjtFault.RESTART, 0)])
async def test_connection_loss_during_a_joining_is_simulated(
    controller: JoiningController, fault: IjtFault, results: int
) -> None:
    controller.forget()
    with pytest.raises(Unavailable):
        async with open_client(controller.device.url) as session:
            await happening(controller, session, fault)
    async with asyncio.timeout(60):
        while not await is_reachable(controller.device.url):
            pass
    async with open_client(controller.device.url) as session:
        management = (await parts(session))["ResultManagement"]
        assert (await session.call(management, "RequestUnacknowledgedResults", 0, 0))[1] == results


async def test_identifiers_are_sent_and_reset(controller: JoiningController, session: ClientSession) -> None:
    method_set = (await parts(session))["MethodSet"]
    entities = [{"Name": name, "EntityId": name, "EntityType": 1} for name in ("a", "b")]
    assert await session.call(method_set, "SendIdentifiers", "", entities) == [0, "done"]
    await session.call(method_set, "ResetIdentifiers", "", ["a"], False, False)
    ((left,), *_) = await session.call(method_set, "GetIdentifiers", "", [])
    assert left["EntityId"] == "b"
    await session.call(method_set, "ResetIdentifiers", "", [], True, False)
    assert controller.identifiers == []
