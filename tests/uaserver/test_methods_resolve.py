"""An operator on another stack resolves an action of unknown outcome; the answer for many jobs is bounded."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from edge.model.isa95 import ReturnStatus
from edge.model.user import Role
from edge.sfc.signal import Resolution, Resolve
from edge.uaserver.methods import MORE_RESPONSES
from tests.uaserver.other_stack import OtherStack, node, other_stack
from tests.uaserver.running import MACHINES, Station, response, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MANAGEMENT = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement"
STRING, DOUBLE = 12, 11


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
        served(machines=MACHINES[:1], station=behind, role=Role.OPERATOR) as server,
        other_stack(server.endpoint) as client,
    ):
        yield client


def text(content: str) -> dict[str, Any]:
    return {"dataType": STRING, "value": content}


async def resolve(client: OtherStack, *arguments: dict[str, Any]) -> dict[str, Any]:
    control = f"{MANAGEMENT}/JobOrderControl"
    call = {
        "objectId": node(control),
        "methodId": node(f"{control}/ResolveAction"),
        "inputArguments": list(arguments),
    }
    response = await client.send("Call", methodsToCall=[call])
    result: dict[str, Any] = response["results"][0]
    return result


def status_of(result: dict[str, Any]) -> int:
    high, low = result["outputArguments"][-1]["value"]
    return int(high) << 32 | int(low)


async def test_an_operator_resolves_an_action_of_unknown_outcome(operator: OtherStack, station: Station) -> None:
    data = {"dataType": STRING, "value": '{"torque": 85}'}
    result = await resolve(operator, text("job-1"), text("tighten"), text("done"), text("seen"), data)
    assert (result["statusCode"], status_of(result)) == ("Good", ReturnStatus.NO_ERROR)
    (request,) = station.resolved
    assert (request.scope, request.job_id) == ("station-1", "job-1")
    assert request.signal == Resolve("tighten", Resolution.DONE, {"torque": 85}, "seen", "anonymous")


async def test_a_refused_resolution_is_uncertain(operator: OtherStack, station: Station) -> None:
    station.status = ReturnStatus.INVALID_JOB_ORDER_STATUS
    data = {"dataType": DOUBLE, "value": 85.5}
    result = await resolve(operator, text("job-1"), text("tighten"), text("failed"), text("seen"), data)
    assert result["statusCode"].startswith("Uncertain")
    assert status_of(result) == ReturnStatus.INVALID_JOB_ORDER_STATUS
    assert station.resolved[0].signal.data == 85.5


@pytest.mark.parametrize(
    "arguments",
    [("job-1", "tighten", "perhaps", "seen"), ("job-1", "tighten", "done", " ")],
    ids=["decision", "reason"],
)
async def test_a_resolution_without_decision_or_reason_is_invalid(
    operator: OtherStack, station: Station, arguments: tuple[str, ...]
) -> None:
    result = await resolve(operator, *map(text, arguments), {"dataType": 0})
    assert result["statusCode"] == "BadInvalidArgument"
    assert station.resolved == []


async def test_observer_may_not_resolve_actions(behind: Station) -> None:
    behind.reset()
    async with (
        served(machines=MACHINES[:1], station=behind, role=Role.OBSERVER) as server,
        other_stack(server.endpoint) as observer,
    ):
        result = await resolve(observer, *map(text, ("job-1", "tighten", "done", "seen")), {"dataType": 0})
    assert result["statusCode"] == "BadUserAccessDenied"
    assert behind.resolved == []


async def test_truncated_list_of_responses_reports_uncertain(operator: OtherStack, station: Station) -> None:
    station.responses, station.next = (response("job-1"), response("job-2")), "1:job-2-1"
    results = f"{MANAGEMENT}/JobOrderResults"
    asked = {"object": results, "method": f"{results}/RequestJobResponseByJobOrderState", "state": "Ended"}
    (result,) = (await operator.send("callWithState", **asked))["results"]
    assert result["statusCode"].startswith("Uncertain")
    assert len(result["outputArguments"][0]["value"]) == 2
    assert status_of(result) == ReturnStatus.NO_ERROR | MORE_RESPONSES
