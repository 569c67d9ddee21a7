"""With `job_order_list = "limited"` the lists hold MaxDownloadableJobOrders at most (OPC 10031-4, Table 12)."""

import msgspec

from edge.model.acceptance import Allowed
from edge.model.job_state import JobState
from edge.uaserver.server import UaServer
from edge.uaserver.space import MachineDescription
from tests.opcua_client import patient_client
from tests.uaserver.running import SETTINGS, entry, response, served

SCOPE = "station-1"
PATH = f"ns=8;s={SCOPE}/MachineryBuildingBlocks/JobManagement"
ORDERS, RESPONSES = f"{PATH}/JobOrderControl/JobOrderList", f"{PATH}/JobOrderResults/JobOrderResponseList"
MOST = f"{PATH}/JobOrderControl/MaxDownloadableJobOrders"


def show(server: UaServer, number: int, state: JobState) -> None:
    name = f"job-{number}"
    server.show(SCOPE, entry(name, state), response(name) if state is JobState.ENDED else None)


async def test_ended_jobs_leave_limited_lists_the_oldest_first() -> None:
    settings = msgspec.structs.replace(SETTINGS, job_order_list="limited")
    machines = (MachineDescription(SCOPE, 3),)
    async with served(settings, machines) as server, patient_client(server.endpoint) as client:
        await client.load_data_type_definitions()

        async def listed() -> tuple[list[str], list[str]]:
            orders, responses = [await client.get_node(node).read_value() for node in (ORDERS, RESPONSES)]
            return [one.JobOrder.JobOrderID for one in orders], [one.JobOrderID for one in responses or ()]

        for number in range(5):
            show(server, number, JobState.ENDED)
        assert await listed() == (["job-2", "job-3", "job-4"], ["job-2", "job-3", "job-4"])
        show(server, 5, JobState.ALLOWED_TO_START)
        assert await listed() == (["job-3", "job-4", "job-5"], ["job-3", "job-4"])
        await server.show_allowed(SCOPE, Allowed(max_job_orders=2))
        assert await client.get_node(MOST).read_value() == 2
        assert await listed() == (["job-4", "job-5"], ["job-4"])
        for number in (6, 7):
            show(server, number, JobState.ALLOWED_TO_START)
        # Jobs that have not ended stay: the limit was lowered below their number.
        assert await listed() == (["job-5", "job-6", "job-7"], [])


async def test_lists_without_a_limit_keep_ended_jobs() -> None:
    async with served(SETTINGS, (MachineDescription(SCOPE, 3),)) as server:
        for number in range(5):
            show(server, number, JobState.ENDED)
        assert len(server.shown(SCOPE)) == 5
