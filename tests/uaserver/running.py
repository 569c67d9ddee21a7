"""Shared parts of the server tests: a running server, a fake station, nodes by browse path, sample jobs."""

import asyncio
import atexit
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
from asyncua import Client, Node, ua

from edge.access.audit_trail import AuditTrail
from edge.access.mode import ModeRequest
from edge.app.features import equipment_kinds
from edge.config import OpcuaSettings
from edge.foundation.task_group import TaskGroup
from edge.model.isa95 import (
    JobOrder,
    JobOrderAndState,
    JobResponse,
    Parameter,
    ReturnStatus,
    State,
    StateQuery,
    WorkMaster,
)
from edge.model.job_state import JobState, JobStatus, SubState, state_entries
from edge.model.user import Role
from edge.opcua import limits
from edge.opcua.access import Caller
from edge.station.intervene import InterventionRequest, ReleaseRequest
from edge.station.job_call import CallAnswer, JobCall
from edge.station.response import PAGE, FoundResponses, PageLimit
from edge.uaserver.methods import Services
from edge.uaserver.namespaces import machines_uri
from edge.uaserver.parts import AddPart
from edge.uaserver.server import UaServer, open_server
from edge.uaserver.space import MachineDescription

UA = "http://opcfoundation.org/UA/"

_directory = tempfile.TemporaryDirectory(prefix="uaserver-")
atexit.register(_directory.cleanup)

SETTINGS = OpcuaSettings(
    endpoint="opc.tcp://127.0.0.1:0",
    security="none",
    users_file=f"{_directory.name}/users",
    trusted=f"{_directory.name}/trusted",
    pki=f"{_directory.name}/pki",  # shared by all tests: generating a key is slow
    manufacturer="Tightening Works",
    serial_number="4711",
    product_instance_uri="https://example.com/4711",
)
MACHINES = (MachineDescription("station-1", 1000), MachineDescription("station-2"))


class Station:
    """A fake station: it records every call and returns the configured answer."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.calls: list[JobCall] = []
        self.asked: list[tuple[str, str | tuple[State, ...]]] = []
        self.status = ReturnStatus.NO_ERROR
        self.responses: tuple[JobResponse, ...] = ()
        self.next = ""
        self.resolved: list[InterventionRequest] = []
        self.released: list[ReleaseRequest] = []
        self.switched: list[ModeRequest] = []
        self.failure: Exception | None = None

    async def call(self, call: JobCall) -> CallAnswer:
        if self.failure:
            raise self.failure
        self.calls.append(call)
        return CallAnswer(self.status)

    async def of_job(self, scope: str, job_order_id: str) -> FoundResponses:
        self.asked.append((scope, job_order_id))
        return FoundResponses(self.status, self.responses[:1])

    async def in_state(
        self, scope: str, query: Sequence[StateQuery | State], after: str, limit: PageLimit
    ) -> FoundResponses:
        assert (after, limit) == ("", PAGE)
        self.asked.append((scope, tuple(item for item in query if isinstance(item, State))))
        return FoundResponses(self.status, self.responses, next=self.next)

    async def release(self, request: ReleaseRequest) -> None:
        if self.failure:
            raise self.failure
        self.released.append(request)

    async def switch_mode(self, request: ModeRequest, _caller: Caller) -> None:
        if self.failure:
            raise self.failure
        self.switched.append(request)

    async def intervene(self, request: InterventionRequest) -> CallAnswer:
        self.resolved.append(request)
        return CallAnswer(self.status)


KINDS = {name: kind.number for name, kind in equipment_kinds().items()}


@asynccontextmanager
async def served(
    settings: OpcuaSettings = SETTINGS,
    machines: Sequence[MachineDescription] = MACHINES,
    station: Station | None = None,
    role: Role | None = None,
    activation_s: float = limits.ACTIVATION_S,
    equipment: Sequence[str] = (),
    trail: AuditTrail | None = None,
    parts: Sequence[AddPart] = (),
) -> AsyncIterator[UaServer]:
    """Run a server in a task of its own, as pytest enters and exits a fixture in different tasks.

    If a role is passed, anonymous clients have it.
    """
    if role:
        settings = msgspec.structs.replace(settings, anonymous=role.name.lower())
    behind = station or Station()
    opened: asyncio.Future[UaServer] = asyncio.get_running_loop().create_future()
    enough = asyncio.Event()

    async def hold() -> None:
        scopes = [machine.scope for machine in machines]
        services = Services(behind, behind, behind.intervene, behind.release, behind.switch_mode, scopes)
        async with (
            TaskGroup() as tasks,
            open_server(
                settings, "edge", machines, services, tasks, activation_s, equipment, trail, parts=parts, kinds=KINDS
            ) as server,
        ):
            opened.set_result(server)
            await enough.wait()

    task = asyncio.create_task(hold())
    task.add_done_callback(lambda _: opened.done() or opened.cancel())
    try:
        running = await opened
    except asyncio.CancelledError:
        await task
        raise
    yield running
    enough.set()
    await task


def entry(job_order_id: str, state: JobState = JobState.ALLOWED_TO_START) -> JobOrderAndState:
    order = JobOrder(job_order_id=job_order_id, priority=3, work_master_id=(WorkMaster(id="rear-axle"),))
    return JobOrderAndState(job_order=order, state=state_entries(JobStatus(state)))


def response(job_order_id: str) -> JobResponse:
    return JobResponse(
        job_response_id=f"{job_order_id}-1",
        job_order_id=job_order_id,
        start_time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        job_state=state_entries(JobStatus(JobState.ENDED, SubState.COMPLETED)),
        job_response_data=(Parameter(id="torque", value=42.5),),
    )


class Space:
    """The address space of a server: finds nodes by browse path, with the namespace indexes of this server."""

    def __init__(self, client: Client, namespaces: list[str]) -> None:
        self.client = client
        self.index = {uri: index for index, uri in enumerate(namespaces)}

    def name(self, name: str, uri: str) -> ua.QualifiedName:
        return ua.QualifiedName(name, self.index[uri])

    async def machine(self, scope: str = "station-1") -> Node:
        return await self.client.nodes.objects.get_child(
            [self.name("Machines", UA + "Machinery/"), self.name(scope, machines_uri("edge"))]
        )

    async def job_management(self, scope: str = "station-1") -> Node:
        machine = await self.machine(scope)
        return await machine.get_child(
            [
                self.name("MachineryBuildingBlocks", UA + "Machinery/"),
                self.name("JobManagement", UA + "Machinery/Jobs/"),
            ]
        )

    async def member(self, part: str, name: str, scope: str = "station-1") -> Node:
        management = await self.job_management(scope)
        return await management.get_child(
            [self.name(part, UA + "Machinery/Jobs/"), self.name(name, UA + "ISA95-JOBCONTROL_V2/")]
        )

    async def job_order_list(self, scope: str = "station-1") -> Node:
        return await self.member("JobOrderControl", "JobOrderList", scope)

    async def response_list(self, scope: str = "station-1") -> Node:
        return await self.member("JobOrderResults", "JobOrderResponseList", scope)
