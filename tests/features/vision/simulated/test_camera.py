"""Tests of the simulated camera and its faults, with an OPC UA client."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.features.vision.simulated.camera import NAMESPACE_URI, VisionCamera, VisionFault, open_vision
from edge.foundation.errors import Unavailable
from edge.links.opcua import ClientSession, Node, TypeName, open_client

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def camera() -> AsyncIterator[VisionCamera]:
    async with open_vision(delay=0.0) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(camera: VisionCamera) -> AsyncIterator[ClientSession]:
    async with open_client(camera.device.url) as opened:
        yield opened


async def machine(session: ClientSession) -> Node:
    (system,) = await session.instances(TypeName(NAMESPACE_URI, 1003))
    return (await session.children(system))["VisionStateMachine"]


async def state(session: ClientSession) -> str:
    text: str = await session.read((await session.children(await machine(session)))["CurrentState"])
    return text


async def started(camera: VisionCamera, session: ClientSession, fault: VisionFault) -> list[object]:
    """Start a job from the state Preoperational; return the outputs of StartSingleJob."""
    await camera.forget()
    camera.fault = fault
    at = await machine(session)
    assert await session.call(at, "SelectModeAutomatic") == [0]
    (system,) = await session.instances(TypeName(NAMESPACE_URI, 1003))
    recipes = (await session.children(system))["RecipeManagement"]
    prepared = await session.call(recipes, "PrepareRecipe", {"Id": "P1"})
    assert prepared == [{"Id": "P1"}, True, 0]
    automatic = (await session.children(at))["AutomaticModeStateMachine"]
    return await session.call(automatic, "StartSingleJob", {"Id": "M1"}, {"Id": "SN-7"}, {"Id": "P1"})


async def test_job_ends_with_a_retrievable_result(camera: VisionCamera, session: ClientSession) -> None:
    job, error = await started(camera, session, VisionFault.NONE)
    assert error == 0
    (system,) = await session.instances(TypeName(NAMESPACE_URI, 1003))
    results = (await session.children(system))["ResultManagement"]
    nothing = (None,) * 7
    while True:
        _, count, _, found, _ = await session.call(
            results, "GetResultListFiltered", 0, {"Id": "M1"}, *nothing, 1, 0, 1000
        )
        if count:
            break
    (result,) = found
    assert (result["JobId"], result["PartId"], result["ResultState"]) == (job, {"Id": "SN-7"}, 1)
    _, same, _ = await session.call(results, "GetResultById", result["ResultId"], 1000)
    assert same == result
    assert result["ResultContent"] == [True]


async def test_refusal_of_a_job_is_simulated(camera: VisionCamera, session: ClientSession) -> None:
    _, error = await started(camera, session, VisionFault.REFUSED)
    assert error == 1


async def test_camera_fault_during_a_job_is_simulated(camera: VisionCamera, session: ClientSession) -> None:
    await started(camera, session, VisionFault.ERROR_STATE)
    while await state(session) != "Error":
        pass
    assert await session.call(await machine(session), "SelectModeAutomatic") == [1]
    assert await session.call(await machine(session), "Reset", 0, "") == [0]
    assert await state(session) == "Preoperational"


async def is_reachable(url: str) -> bool:
    try:
        async with open_client(url):
            return True
    except Unavailable:
        return False


async def follow(camera: VisionCamera, fault: VisionFault) -> None:
    """Start a job; poll the camera until it is unreachable."""
    async with open_client(camera.device.url) as session:
        await started(camera, session, fault)
        while True:
            await state(session)


@pytest.mark.parametrize(("fault", "results"), [(VisionFault.DISCONNECT, 1), (VisionFault.RESTART, 0)])
async def test_connection_loss_during_a_job_is_simulated(
    camera: VisionCamera, fault: VisionFault, results: int
) -> None:
    with pytest.raises(Unavailable):
        await follow(camera, fault)
    async with asyncio.timeout(60):
        while not await is_reachable(camera.device.url):
            pass
    async with open_client(camera.device.url) as session:
        (system,) = await session.instances(TypeName(NAMESPACE_URI, 1003))
        management = (await session.children(system))["ResultManagement"]
        nothing = (None,) * 7
        _, count, *_ = await session.call(management, "GetResultListFiltered", 0, {"Id": "M1"}, *nothing, 1, 0, 1000)
        assert count == results
