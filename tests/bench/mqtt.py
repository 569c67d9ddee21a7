"""Jobs over a real broker: gateway, broker, store and controller are processes of their own, this one is the MES."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from edge.config import MqttSettings
from edge.features.simulator.controller import TOPIC_PREFIX
from edge.features.simulator.mes import Mes, open_mes
from edge.links.mqtt import Message, open_session, to_event
from edge.model.isa95 import JobOrder, OrderCall, ReturnStatus, WorkMaster
from edge.model.job_state import JobState
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.bench.controller import READY, WARM
from tests.bench.engine import linear_recipe
from tests.bench.gateway import EQUIPMENT, gateway, python_process
from tests.bench.measure import Row
from tests.local_broker import open_broker

SCOPE = "station-1"
_JOB_S = 120.0
_WARM_JOBS = 3
"""Jobs of each place before the measurement."""


class _Places:
    """The places of a number of jobs that run side by side: a place that becomes free takes the next job."""

    def __init__(self, mes: Mes, conc: int) -> None:
        self._mes = mes
        self._conc = conc
        self._running: dict[str, asyncio.Event] = {}

    async def note_event(self, message: Message) -> None:
        """Free the place of a job that has ended, as its status event says."""
        event = to_event(message)
        ended = self._running.get(event.data["JobOrder"]["JobOrderID"])
        # The broker may repeat an event.
        if ended and event.data["JobState"][0]["StateNumber"] == JobState.ENDED:
            ended.set()

    async def run(self, kind: str, count: int) -> None:
        """Run `count` jobs, whose ids begin with `kind`; return when the last has ended."""
        numbers = iter(range(count))

        async def place() -> None:
            for number in numbers:
                await self._run_job(f"{kind}-{number}")

        async with asyncio.TaskGroup() as places:
            for _ in range(self._conc):
                places.create_task(place(), name="place")

    async def _run_job(self, job_id: str) -> None:
        ended = self._running[job_id] = asyncio.Event()
        order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),))
        answer = await self._mes.call(SCOPE, "StoreAndStart", OrderCall(job_order=order))
        assert answer.status is ReturnStatus.NO_ERROR, answer
        async with asyncio.timeout(_JOB_S):
            await ended.wait()
        del self._running[job_id]


@asynccontextmanager
async def _controller(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the controller, which has subscribed to the commands: an earlier command would be lost."""
    async with python_process("-m", "tests.bench.controller", url, f"{TOPIC_PREFIX}/{EQUIPMENT}") as process:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            assert (await process.stdout.readline()).strip() == READY.encode()
        yield process


async def over_mqtt(steps: int, conc: int, least_steps: int = 1000) -> Row:
    """Measure jobs over a real broker, of which `conc` run at every moment; the latency is that of a step."""
    jobs = max(2 * conc, -(-least_steps // steps))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        async with (
            open_broker() as broker,
            gateway(Path(name), broker.url) as running,
            _controller(broker.url) as controller,
            open_mes(MqttSettings(url=broker.url), "bench-mes") as mes,
            open_session(MqttSettings(url=broker.url), "bench-watch") as watch,
        ):
            master = {"ID": "WM", "data": linear_recipe(steps), "dataschema": RECIPE_DATASCHEMA}
            await mes.configure(SCOPE, "workmaster", master)
            places = _Places(mes, conc)
            # Only the events of the end: a MES that listens to everything would be measured too.
            await watch.subscribe(f"app/jobs/{SCOPE}/events", places.note_event)
            await places.run(WARM, _WARM_JOBS * conc)
            cpu, began = running.cpu_s(), time.perf_counter()
            await places.run("job", jobs)
            wall = time.perf_counter() - began
            cpu = running.cpu_s() - cpu
            summary, _ = await controller.communicate(b"")
            total = steps * jobs
            return Row(
                "mqtt",
                steps=steps,
                conc=conc,
                aof="everysec",
                latency_ms=json.loads(summary),
                step_ms=round(wall / total * 1000, 4),
                jobs_per_s=round(jobs / wall, 1),
                steps_per_s=round(total / wall),
                cpu_s_per_1000_steps=round(cpu / total * 1000, 4),
                rss_kb=running.rss_kb(),
            )
