"""A client on another stack resolves the sub-states of a job, and receives the reason of a refused order."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.model.isa95 import JobOrderAndState
from edge.model.job_state import JobState, JobStatus, SubState, state_entries
from edge.model.user import Role
from edge.uaserver.server import UaServer
from tests.uaserver.other_stack import OtherStack, node, other_stack, value_of
from tests.uaserver.running import MACHINES, UA, Station, entry, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

STATUS = {
    SubState.READY: JobState.ALLOWED_TO_START,
    SubState.WAITING: JobState.NOT_ALLOWED_TO_START,
    SubState.HELD: JobState.INTERRUPTED,
    SubState.CLOSED: JobState.ENDED,
}
CONTROL = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl"


@pytest.fixture(scope="module")
def station() -> Station:
    return Station()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(station: Station) -> AsyncIterator[UaServer]:
    async with served(machines=MACHINES[:1], station=station, role=Role.ENGINEER) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other(seen: UaServer) -> AsyncIterator[OtherStack]:
    async with other_stack(seen.endpoint) as client:
        yield client


@pytest.mark.parametrize("substate", STATUS)
async def test_the_browse_path_of_a_substate_resolves_from_the_instance(
    seen: UaServer, other: OtherStack, substate: SubState
) -> None:
    state = state_entries(JobStatus(STATUS[substate], substate))
    seen.show("station-1", JobOrderAndState(job_order=entry("job-1").job_order, state=state), None)
    (shown,) = await other.send("structures", of=f"{CONTROL}/JobOrderList")
    _, entry_of_substate = shown["state"]
    path = {"startingNode": node(CONTROL), "relativePath": relative_path(entry_of_substate["browsePath"])}
    (result,) = (await other.send("TranslateBrowsePathsToNodeIds", browsePaths=[path]))["results"]
    assert result["statusCode"] == "Good"
    (target,) = result["targets"]
    (name,) = await other.read({"nodeId": node(target["targetId"]), "attributeId": 3})
    assert name["value"]["value"] == entry_of_substate["browsePath"]["elements"][-1]["targetName"]


async def test_inactive_substate_machine_reports_state_not_active(other: OtherStack) -> None:
    current = await other.read(value_of(f"{CONTROL}/EndedSubstates/CurrentState"))
    assert [fields["statusCode"] for fields in current] == ["BadStateNotActive"]


def relative_path(shown: dict[str, list[dict[str, object]]]) -> dict[str, object]:
    """Return a path that was read, in the form for a request."""
    elements = [
        {
            "referenceTypeId": node(str(element["referenceTypeId"])),
            "isInverse": element["isInverse"],
            "includeSubtypes": element["includeSubtypes"],
            "targetName": element["targetName"],
        }
        for element in shown["elements"]
    ]
    return {"elements": elements}


async def test_an_order_nested_too_deep_is_uncertain_with_invalid_request(other: OtherStack) -> None:
    types = {"order": f"ns={await index(other)};i=3008", "parameter": f"ns={await index(other)};i=3003"}
    response = await other.send("callWithNestedOrder", object=CONTROL, method=f"{CONTROL}/Store", depth=150, **types)
    (result,) = response["results"]
    assert result["statusCode"].startswith("Uncertain")
    assert result["outputArguments"][-1]["value"] == [1, 0]  # UInt64: 2 to the power of 32


async def index(other: OtherStack) -> int:
    (uris,) = await other.values("i=2255")
    return int(uris.index(UA + "ISA95-JOBCONTROL_V2/"))
