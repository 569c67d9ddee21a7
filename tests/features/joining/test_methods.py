"""The methods of a joining system, in every place where a controller may have them."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio
from asyncua import ua

from edge.features.joining.methods import IjtMethods, find_methods
from edge.foundation.errors import Refused
from edge.links.opcua import ClientSession, Node, open_client
from edge.links.simulated_device import OpcuaDevice, open_device

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def declines(_: ua.NodeId) -> list[ua.Variant]:
    return [ua.Variant(7), ua.Variant(ua.LocalizedText("no tool"))]


async def succeeds(_: ua.NodeId) -> list[ua.Variant]:
    return [ua.Variant("R1"), ua.Variant(0), ua.Variant(ua.LocalizedText("done"))]


async def has_error(_: ua.NodeId) -> list[ua.Variant]:
    return [ua.Variant(0), ua.Variant(3)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def device() -> AsyncIterator[OpcuaDevice]:
    async with open_device("system", ()) as running:
        system = await running.server.nodes.objects.add_object(running.index, "system")
        blocks = await system.add_object(running.index, "MachineryBuildingBlocks")
        results = await blocks.add_object(running.index, "ResultManagement")
        await results.add_method(running.index, "GetLatestResult", has_error)
        assets = await system.add_object(running.index, "AssetManagement")
        method_set = await assets.add_object(running.index, "MethodSet")
        await method_set.add_method(running.index, "EnableAsset", declines)
        await method_set.add_method(running.index, "GetIdentifiers", succeeds)
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(device: OpcuaDevice) -> AsyncIterator[ClientSession]:
    async with open_client(device.url) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def methods(session: ClientSession) -> IjtMethods:
    return await find_methods(session, await session.find("system"))


async def test_methods_are_found_by_browsing(methods: IjtMethods) -> None:
    names = ("EnableAsset", "GetIdentifiers", "GetLatestResult", "SelectJoiningProcess")
    assert [name in methods for name in names] == [True, True, True, False]


async def test_status_other_than_0_is_a_refusal_with_its_message(methods: IjtMethods) -> None:
    with pytest.raises(Refused, match="EnableAsset: no tool"):
        await methods.call("EnableAsset")
    assert await methods.call("GetIdentifiers") == ["R1"]


async def test_an_error_of_a_result_method_is_a_refusal(methods: IjtMethods) -> None:
    with pytest.raises(Refused, match="GetLatestResult: the controller says error 3"):
        await methods.call_result_method("GetLatestResult")


async def test_object_without_methods_has_no_joining_methods(device: OpcuaDevice, session: ClientSession) -> None:
    await device.server.nodes.objects.add_object(device.index, "bare")
    assert "EnableAsset" not in await find_methods(session, await session.find("bare"))


class Mouth:
    """A session that returns the same outputs for every method."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)

    async def call(self, *_: Any) -> list[Any]:
        return self.outputs


@pytest.mark.parametrize("outputs", [(), (0,), ("R1", 0, ""), ("0", ""), (None, ""), (0, 7)])
async def test_method_answer_of_a_wrong_shape_is_refused(outputs: tuple[Any, ...]) -> None:
    methods = IjtMethods(cast("ClientSession", Mouth(*outputs)), {"EnableAsset": Node("i=1", "/Tool")})
    with pytest.raises(Refused, match="EnableAsset: what the controller answers is not what OPC 40450-1 says"):
        await methods.call("EnableAsset", output_count=0)


@pytest.mark.parametrize("outputs", [(), ("handle", 0), ("handle", {}, None)])
async def test_result_method_answer_without_all_outputs_is_refused(outputs: tuple[Any, ...]) -> None:
    methods = IjtMethods(cast("ClientSession", Mouth(*outputs)), {"GetLatestResult": Node("i=1", "/Results")})
    with pytest.raises(Refused, match="GetLatestResult: what the controller answers"):
        await methods.call_result_method("GetLatestResult", output_count=2)
