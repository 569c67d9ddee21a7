"""The whole gateway as a process: its start, and its load while nothing happens."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from edge.foundation.task_group import background_task
from edge.store.embedded import embedded_server
from tests.bench.engine import TYPE_ID
from tests.bench.measure import Row
from tests.local_broker import open_broker

EQUIPMENT = "wrench"
"""Name of the equipment that takes the commands of the recipe, over MQTT."""
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
async def gateway(
    directory: Path, url: str, further: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Gateway]:
    """Run `edge run` with OPC UA on a free port, until the block is left; its store runs before, as in the package.

    `further` are settings as environment variables.
    """
    async with embedded_server(str(directory)) as store, _gateway(directory, store, url, further) as running:
        yield running


@asynccontextmanager
async def _gateway(directory: Path, store: Path, url: str, further: Mapping[str, str]) -> AsyncIterator[Gateway]:
    settings = {
        "EDGE_GATEWAY__NAME": "bench",
        "EDGE_REDIS__URL": f"unix://{store}",
        "EDGE_MQTT__URL": url,
        "EDGE_OPCUA__ENDPOINT": "opc.tcp://127.0.0.1:0",
        f"EDGE_SOUTHBOUND__{EQUIPMENT.upper()}__KIND": "mqtt",
        f"EDGE_SOUTHBOUND__{EQUIPMENT.upper()}__TYPE_IDS": TYPE_ID,
        "EDGE_LOGGING__LEVEL": "warning",
        **further,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(directory / "notify"))
        notify.setblocking(False)
        began = time.perf_counter()
        environ = settings | {"NOTIFY_SOCKET": str(directory / "notify")}
        async with python_process("-m", "edge", "run", environ=environ) as process:
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
async def python_process(
    *arguments: str, environ: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run Python with these arguments; its input and output are pipes. End it with SIGTERM at the end of the block."""
    # A package has its modules compiled; here the first start does it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        env={**environment, **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # Its log has a line for each call of the MES: it hides the table.
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), 60)
        except TimeoutError:
            process.kill()


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
