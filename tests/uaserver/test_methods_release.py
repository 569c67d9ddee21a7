"""An operator on another stack releases the stops that equipment never confirmed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from edge.foundation.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.model.user import Role
from tests.uaserver.other_stack import OtherStack, other_stack
from tests.uaserver.running import MACHINES, Station, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

WRENCH = "ns=1;s=Gateway/Equipment/wrench"
STRING = 12


@pytest.fixture(scope="module")
def behind() -> Station:
    return Station()


@pytest.fixture
def station(behind: Station) -> Station:
    behind.reset()
    return behind


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def operator(behind: Station) -> AsyncIterator[OtherStack]:
    async with (
        served(machines=MACHINES[:1], station=behind, role=Role.OPERATOR, equipment=("wrench",)) as server,
        other_stack(server.endpoint) as client,
    ):
        yield client


async def release(client: OtherStack, *texts: str, method: str = f"{WRENCH}/ReleaseStops") -> dict[str, Any]:
    arguments = [{"dataType": STRING, "value": text} for text in texts]
    call = {"objectId": WRENCH, "methodId": method, "inputArguments": arguments}
    response = await client.send("Call", methodsToCall=[call])
    result: dict[str, Any] = response["results"][0]
    return result


@pytest.mark.parametrize("method", [f"{WRENCH}/ReleaseStops", "ns=7;s=EquipmentType/ReleaseStops"])
async def test_an_operator_releases_the_stops_of_equipment(operator: OtherStack, station: Station, method: str) -> None:
    result = await release(operator, "", "air cut off", method=method)
    assert result["statusCode"] == "Good"
    (request,) = station.released
    assert (request.equipment, request.command_id, request.scopes) == ("wrench", None, ["station-1"])
    assert (request.by, request.reason) == ("anonymous", "air cut off")


async def test_release_with_a_command_id_releases_that_command(operator: OtherStack, station: Station) -> None:
    await release(operator, "J1/R/tighten/1", "air cut off")
    assert station.released[0].command_id == "J1/R/tighten/1"


async def test_a_release_without_an_open_stop_is_uncertain(operator: OtherStack, station: Station) -> None:
    station.failure = Refused("nothing_open", "no stop is open")
    result = await release(operator, "", "air cut off")
    assert result["statusCode"].startswith("Uncertain")
    assert int(result["outputArguments"][0]["value"][0]) == ReturnStatus.INVALID_REQUEST >> 32


async def test_a_release_without_a_reason_is_invalid(operator: OtherStack, station: Station) -> None:
    assert (await release(operator, "", " "))["statusCode"] == "BadInvalidArgument"
    assert station.released == []


async def test_observer_may_not_release_stops(behind: Station) -> None:
    behind.reset()
    async with (
        served(machines=MACHINES[:1], station=behind, role=Role.OBSERVER, equipment=("wrench",)) as server,
        other_stack(server.endpoint) as observer,
    ):
        result = await release(observer, "", "air cut off")
    assert result["statusCode"] == "BadUserAccessDenied"
    assert behind.released == []
