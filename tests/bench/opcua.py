"""The OPC UA server with a thousand jobs that change, one client that has subscribed to them, another that reads.

Server, subscriber and reader are processes of their own, as they are in a plant.
"""

import asyncio
import itertools
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
import uvloop
from asyncua import Node, ua

from edge.config import OpcuaSettings
from edge.foundation.task_group import TaskGroup
from edge.model.isa95 import JobOrder, JobOrderAndState, Parameter, WorkMaster
from edge.model.job_state import JobState, JobStatus, state_entries
from edge.uaserver.methods import Services
from edge.uaserver.server import open_server
from edge.uaserver.space import MachineDescription
from tests.bench.measure import Row, spread
from tests.opcua_client import patient_client
from tests.uaserver.running import Station

JOBS = 1000
CHANGES_PER_S = 10
_LIST = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl/JobOrderList"


async def reads_beside_changes(seconds: float) -> AsyncIterator[Row]:
    """Measure the start of the server, then how long another client's reads take while jobs change."""
    with tempfile.TemporaryDirectory(prefix="bench-opcua-") as directory:
        # The first start makes a key, once in the life of a gateway.
        for scenario in ("opcua first start", "opcua start"):
            async with _child("serve", directory, str(time.monotonic())) as server:
                _, ready_s, cpu_s = (await _line(server)).split()
                yield Row(scenario, ready_s=round(float(ready_s), 3), cpu_s=round(float(cpu_s), 3))
        async with (
            _child("serve", directory, str(time.monotonic())) as server,
            _child("subscribe", endpoint := (await _line(server)).split()[0], str(seconds)) as subscriber,
        ):
            await _line(subscriber)
            latencies = await _read_for(endpoint, seconds)
            yield Row(
                f"opcua read, {CHANGES_PER_S} changes/s",
                stored_jobs=JOBS,
                latency_ms=spread(latencies),
                lists_received=int(await _line(subscriber)),
                rss_kb=_held_kb(server.pid),
            )


def _held_kb(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * (os.sysconf("SC_PAGE_SIZE") // 1024)


async def _read_for(endpoint: str, seconds: float) -> list[float]:
    latencies = []
    async with patient_client(endpoint) as client:
        node = client.get_node(ua.ObjectIds.Server_ServiceLevel)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            await node.read_value()
            latencies.append(time.perf_counter() - began)
            await asyncio.sleep(0.005)
    return latencies


@asynccontextmanager
async def _child(*arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.bench.opcua", *arguments, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _line(process: Process) -> str:
    assert process.stdout
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode()


def _publish(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------------------------------------------- children


def _entry(number: int, state: JobState) -> JobOrderAndState:
    order = JobOrder(
        job_order_id=f"job-{number:05}",
        work_master_id=(WorkMaster(id="rear-axle"),),
        priority=number % 10,
        job_order_parameters=(Parameter(id="torque", value=42.5), Parameter(id="vin", value=f"WVW{number:014}")),
    )
    return JobOrderAndState(job_order=order, state=state_entries(JobStatus(state)))


async def _serve(directory: str, began: str) -> None:
    settings = OpcuaSettings(
        endpoint="opc.tcp://127.0.0.1:0",
        security="none",
        users_file=f"{directory}/users",
        trusted=f"{directory}/trusted",
        pki=f"{directory}/pki",
    )
    station = Station()
    services = Services(station, station, station.intervene, station.release, station.switch_mode)
    machines = (MachineDescription("station-1", JOBS),)
    async with (
        TaskGroup() as tasks,
        open_server(settings, "bench", machines, services, tasks, kinds={"mqtt": 1}) as server,
    ):
        ready_s, cpu_s = time.monotonic() - float(began), time.process_time()
        for number in range(JOBS):
            server.show("station-1", _entry(number, JobState.ALLOWED_TO_START), None)
        _publish(f"{server.endpoint} {ready_s} {cpu_s}")
        for number in itertools.count():
            state = JobState.RUNNING if number // JOBS % 2 == 0 else JobState.ENDED
            server.show("station-1", _entry(number % JOBS, state), None)
            await asyncio.sleep(1 / CHANGES_PER_S)


async def _subscribe(endpoint: str, seconds: str) -> None:
    received = 0
    first = asyncio.Event()

    class Listener:
        def datachange_notification(self, _node: Node, _value: object, _data: object) -> None:
            nonlocal received
            received += 1
            first.set()

    async with patient_client(endpoint) as client:
        subscription = await client.create_subscription(100, Listener())
        await subscription.subscribe_data_change(client.get_node(_LIST))
        await first.wait()
        _publish("subscribed")
        await asyncio.sleep(float(seconds))
        _publish(str(received))
        await asyncio.sleep(60)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    uvloop.run({"serve": _serve, "subscribe": _subscribe}[sys.argv[1]](*sys.argv[2:]))
