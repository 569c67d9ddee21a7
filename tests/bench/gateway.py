"""The whole gateway as a process: start, idle, and jobs over a real broker with a simulated controller."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from edge.config import MqttSettings
from edge.links.background_task import background_task
from edge.links.mqtt import Message, open_session, to_event
from edge.model.isa95 import JobOrder, OrderCall, ReturnStatus, WorkMaster
from edge.model.job_state import JobState
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sim.broker import open_broker
from edge.sim.mes import open_mes
from edge.sim.process import READY
from edge.store.embedded import embedded_server
from tests.bench.engine import TYPE_ID, linear_recipe
from tests.bench.measure import Row

SCOPE = "station-1"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway process that is ready, after so many seconds."""

    pid: int
    ready_s: float

    def cpu_s(self) -> float:
        """Return the CPU time of the process so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_kb(self) -> int:
        """Return its memory now, in KiB."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KB


@asynccontextmanager
async def gateway(directory: Path, url: str) -> AsyncIterator[Gateway]:
    """Run `edge run` with OPC UA on a free port, until the block is left; its store runs before, as in the package."""
    async with embedded_server(str(directory)) as store, _gateway(directory, store, url) as running:
        yield running


@asynccontextmanager
async def _gateway(directory: Path, store: Path, url: str) -> AsyncIterator[Gateway]:
    settings = {
        "EDGE_GATEWAY__NAME": "bench",
        "EDGE_REDIS__URL": f"unix://{store}",
        "EDGE_MQTT__URL": url,
        "EDGE_OPCUA__ENDPOINT": "opc.tcp://127.0.0.1:0",
        "EDGE_SOUTHBOUND__WRENCH__KIND": "mqtt",
        "EDGE_SOUTHBOUND__WRENCH__TYPE_IDS": TYPE_ID,
        "EDGE_LOGGING__LEVEL": "warning",
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(directory / "notify"))
        notify.setblocking(False)
        began = time.perf_counter()
        async with _process("run", environ=settings | {"NOTIFY_SOCKET": str(directory / "notify")}) as process:
            async with asyncio.timeout(30):
                while b"READY=1" not in await asyncio.get_running_loop().sock_recv(notify, 4096):
                    pass
            ready_s = time.perf_counter() - began
            async with background_task(_drain(notify), "notifications"):
                yield Gateway(process.pid, ready_s)


async def _drain(notify: socket.socket) -> None:
    """Read the notifications as systemd does: a full socket would hold the gateway."""
    while True:
        await asyncio.get_running_loop().sock_recv(notify, 4096)


@asynccontextmanager
async def _process(
    *arguments: str, environ: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[asyncio.subprocess.Process]:
    # A package has its modules compiled; here the first start does it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "edge", *arguments),
        env={**environment, **environ},
        stdout=asyncio.subprocess.PIPE,
        # Its log has a line for each call of the MES: it hides the table.
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), 60)
        except TimeoutError:
            process.kill()


@asynccontextmanager
async def _controller(url: str) -> AsyncIterator[None]:
    """Run the simulated controller; it says on its first line that it listens, a command before that were lost."""
    async with _process("sim", "controller", "--url", url, "--name", "wrench", "--delay", "0") as process:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            while READY.encode() not in await process.stdout.readline():
                pass
        drained = asyncio.create_task(process.stdout.read(), name="controller output")
        yield
        drained.cancel()


async def start_and_idle(seconds: float) -> list[Row]:
    """Measure the time from start to READY, then the CPU it takes while nothing happens."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        async with open_broker() as broker, gateway(Path(name), broker.url) as running:
            started = Row("start", ready_s=round(running.ready_s, 3), cpu_s=running.cpu_s(), rss_kb=running.rss_kb())
            # What the start leaves to be done is not idleness.
            await asyncio.sleep(2)
            before = running.cpu_s()
            await asyncio.sleep(seconds)
            percent = (running.cpu_s() - before) / seconds * 100
            return [started, Row("idle", idle_cpu_percent=round(percent, 2), rss_kb=running.rss_kb())]


async def over_mqtt(steps: int, conc: int, least_steps: int = 1000) -> Row:
    """Measure jobs over a real broker: gateway and controller are processes of their own, this one is the MES."""
    batches = max(1, -(-least_steps // (steps * conc)))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        async with (
            open_broker() as broker,
            gateway(Path(name), broker.url) as running,
            _controller(broker.url),
            open_mes(MqttSettings(url=broker.url), "bench-mes") as mes,
            open_session(MqttSettings(url=broker.url), "bench-watch") as watch,
        ):
            master = {"ID": "WM", "data": linear_recipe(steps), "dataschema": RECIPE_DATASCHEMA}
            await mes.configure(SCOPE, "workmaster", master)
            left: set[str] = set()
            ended = asyncio.Event()

            async def take(message: Message) -> None:
                event = to_event(message)
                if event.data["JobState"][0]["StateNumber"] == JobState.ENDED:
                    left.discard(event.data["JobOrder"]["JobOrderID"])
                    if not left:
                        ended.set()

            async def run(job_ids: list[str]) -> None:
                left.update(job_ids)
                ended.clear()
                for job_id in job_ids:
                    order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),))
                    answer = await mes.call(SCOPE, "StoreAndStart", OrderCall(job_order=order))
                    assert answer.status is ReturnStatus.NO_ERROR, answer
                async with asyncio.timeout(120):
                    await ended.wait()

            # Only the events of the end: a MES that listens to everything would be measured too.
            await watch.subscribe(f"app/jobs/{SCOPE}/events", take)
            await run(["warm-1", "warm-2"])
            cpu, began = running.cpu_s(), time.perf_counter()
            for batch in range(batches):
                await run([f"job-{batch}-{n}" for n in range(conc)])
            wall = time.perf_counter() - began
            total = steps * conc * batches
            return Row(
                "mqtt",
                steps=steps,
                conc=conc,
                aof="everysec",
                step_ms=round(wall / total * 1000, 4),
                jobs_per_s=round(conc * batches / wall, 1),
                steps_per_s=round(total / wall),
                cpu_s_per_1000_steps=round((running.cpu_s() - cpu) / total * 1000, 4),
                rss_kb=running.rss_kb(),
            )
