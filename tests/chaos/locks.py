"""Kill the gateway under jobs that share one tool; by the log of the device they never alternate in mid-part."""

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from edge.config import MqttSettings, RedisSettings
from edge.features.simulator.mes import open_mes
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.model.isa95 import WorkMaster
from edge.model.lock import LockKind
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.store import locks, runs
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.app.running import written
from tests.chaos.device_campaign import JOB_ENDS_WITHIN_S, SCOPE, Figures, RestartedGateway, settings_for, start_job
from tests.chaos.devices import PREFIX, TYPE_ID, WORK_S, open_device
from tests.chaos.standstill import standstill_reported
from tests.local_broker import open_broker
from tests.store.servers import own_server

JOBS, KILLS = 4, 4
"""The jobs that compete at a time, and the kills meanwhile."""

_ACTION = {
    "qualifier": "N",
    "interaction": "push_command",
    "type_id": TYPE_ID,
    "timeout_seconds": 60,
}
_END = "actions.{0}.done or actions.{0}.unknown or actions.{0}.timed_out or actions.{0}.failed"
RECIPE = {
    "steps": [
        {"name": "First", "initial": True, "lock": ["device"]},
        {"name": "Second", "lock": ["device"]},
        {"name": "Done"},
    ],
    "transitions": [
        {"source": "First", "target": "Second", "condition": _END.format("one")},
        {"source": "Second", "target": "Done", "condition": _END.format("two")},
    ],
    "actions": [_ACTION | {"name": "one", "step": "First"}, _ACTION | {"name": "two", "step": "Second"}],
}
"""A part of two bolts, for which a job holds the tool."""


@dataclass
class LockFigures:
    """What a campaign has counted; `order` are the jobs as the device began their works, one entry for each."""

    kills: int = 0
    order: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def faults(self) -> list[str]:
        """Return what must not be."""
        parts = [job for job, _ in itertools.groupby(self.order)]
        alternated = sorted({job for job in parts if parts.count(job) > 1})
        named = {"alternated": alternated, "stuck": self.stuck, "locks at the end": self.held}
        return [f"{what}: {', '.join(jobs)}" for what, jobs in named.items() if jobs]


async def carry_out(
    kind: str, kills: int, directory: Path, seed: int, publish_text: Callable[[str], None]
) -> LockFigures:
    """Start jobs side by side, kill the gateway at random instants, and wait for all; until it was killed so often."""
    figures, chance, opened_at = LockFigures(), random.Random(seed), time.monotonic()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        redis = RedisSettings(url=(await enter(own_server(directory))).url)
        broker = await enter(open_broker("autosave_interval 1"))
        device = await enter(open_device(kind, broker.url))
        settings = settings_for(redis, broker.url, device)
        gateway = RestartedGateway(written(settings, directory), Figures())
        await enter(background_task(gateway.run(), "gateway"))
        store = await enter(open_store(redis, None))
        mes = await enter(open_mes(MqttSettings(url=broker.url), "chaos-mes", topic_prefix=PREFIX))
        await enter(standstill_reported(lambda: (figures.kills, len(device.order())), lambda: gateway.process, broker))
        await gateway.ready.wait()
        await mes.configure(SCOPE, "workmaster", WorkMaster(id="WM", data=RECIPE, dataschema=RECIPE_DATASCHEMA))
        for group in itertools.count():
            if figures.kills >= kills:
                break
            jobs = [f"J{group}-{n}" for n in range(JOBS)]
            await asyncio.gather(*(start_job(job, mes) for job in jobs))
            for _ in range(KILLS):
                await asyncio.sleep(chance.uniform(0.0, 2.0 * WORK_S))
                await gateway.kill(0.0)
                figures.kills += 1
                await gateway.ready.wait()
            figures.stuck += [job for job in jobs if not await _has_ended(store, job)]
            publish_text(f"  {figures.kills} kills, {len(figures.order)} works, {len(figures.stuck)} stuck")
            figures.order = device.order()
        figures.held = [
            stored_lock.object_id
            for stored_lock in await locks.load_all(store, (LockKind.EQUIPMENT,))
            if stored_lock.lock is not None
        ]
    return replace(figures, seconds=time.monotonic() - opened_at)


async def _has_ended(store: Store, job_id: str) -> bool:
    end = time.monotonic() + JOB_ENDS_WITHIN_S
    while time.monotonic() < end:
        try:
            stored_run = await runs.load(store, job_id)
        except Unavailable:
            stored_run = None
        if stored_run is not None and stored_run.run.ended:
            return True
        await asyncio.sleep(0.05)
    return False
