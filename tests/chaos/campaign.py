"""Has jobs run on real parts while something disturbs them, and says what was seen of it."""

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from edge.config import (
    GatewaySettings,
    MqttEquipmentSettings,
    MqttSettings,
    NorthboundSettings,
    RedisSettings,
    Settings,
)
from edge.features.archive.search import Search, find_jobs
from edge.foundation.errors import Unavailable
from edge.foundation.fault_points import FaultPoint
from edge.foundation.task_group import background_task
from edge.links.mqtt import open_session
from edge.store import jobs, runs
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.open_store import open_store
from edge.store.runs import StoredRun
from tests.app.running import NO_OPCUA, Gateway, edge_run, written
from tests.chaos.equipment import Camera, Controller
from tests.chaos.mes import Mes
from tests.chaos.recipes import DO, KINDS, MEASURE, SILENT
from tests.chaos.standstill import standstill_reported
from tests.local_broker import OwnBroker, open_broker
from tests.store.servers import Server, own_server

SCOPE, PREFIX = "station-1", "chaos"
JOBS_AT_A_TIME = 6
# A machine that is busy starts the gateway late: the campaign waits, and judges what became of the jobs.
RECOVERS_WITHIN_S = 300.0
ENDS_WITHIN_S = 60.0
SETTLES_WITHIN_S = 10.0
_FIRST_PASSES = 60


@dataclass(slots=True)
class Seen:
    """What became of it."""

    mes: Mes
    controller: Controller
    camera: Camera
    appendfsync: str
    kills: Counter[str] = field(default_factory=Counter)
    odd_ends: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    deadlines: dict[tuple[str, str], set[int | None]] = field(default_factory=lambda: defaultdict(set))
    stored: dict[str, tuple[Job | None, StoredRun | None]] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)
    timers: dict[str, float] = field(default_factory=dict)
    archived: dict[str, list[str]] = field(default_factory=dict)
    """The jobs that the archive of each gateway has."""
    seconds: float = 0.0
    starts: int = 0
    printed: set[str] = field(default_factory=set)

    def progress(self) -> tuple[int, int, int]:
        """Return the numbers of kills, of accepted jobs and of those that ended."""
        ended = sum(event.is_set() for event in self.mes.ended.values())
        return self.kills.total(), len(self.mes.answers), ended + len(self.stuck)


class Life:
    """The gateway, started again whenever it ends; every other time it kills itself at one of `points`."""

    def __init__(self, file: Path, chance: random.Random, seen: Seen) -> None:
        self.ready = asyncio.Event()
        self.points: tuple[FaultPoint, ...] = ()
        self.armed = ""
        self.over = False
        self._file = file
        self._chance = chance
        self._seen = seen
        self.process: Gateway | None = None
        self._dead = asyncio.Event()

    async def run(self) -> None:
        """Keep it running until `over`."""
        while not self.over:
            self.armed = ""
            if self.points and self._chance.random() < 0.5:
                self.armed = f"{self._chance.choice(self.points)}:{self._chance.randint(1, _FIRST_PASSES)}"
            self._dead.clear()
            self._seen.starts += 1
            async with edge_run(
                "--settings", self._file, module="tests.chaos.observed_gateway", EDGE_FAULT=self.armed
            ) as gateway:
                self.process = gateway
                with contextlib.suppress(AssertionError, TimeoutError):
                    await gateway.until("ready", RECOVERS_WITHIN_S)
                    self.ready.set()
                status = await gateway.ended(deadline=3600.0)
                self.ready.clear()
            self._note(status, gateway)
            self._dead.set()
            if status != -signal.SIGKILL:
                await asyncio.sleep(0.1)

    def _note(self, status: int, gateway: Gateway) -> None:
        self._seen.printed |= {record["event"] for record in gateway.records()}
        # What paho says of a connection that breaks is not an error of the gateway.
        errors = [
            record
            for record in gateway.records()
            if record["level"] in {"error", "critical"} and record["logger"] != "mqtt"
        ]
        self._seen.odd_ends += map(str, errors)
        # Status 1 is what it says when Redis or the broker is not there at its start: it is started again.
        if status not in {0, 1, -signal.SIGKILL}:
            self._seen.odd_ends.append(f"exit status {status}: {list(gateway.log)[-20:]}")

    async def recovered(self) -> None:
        """Wait until it is ready again. Raises AssertionError with what it said last when it is not in time."""
        try:
            async with asyncio.timeout(RECOVERS_WITHIN_S):
                await self.ready.wait()
        except TimeoutError:
            raise AssertionError(f"the gateway does not get ready: {self._seen.odd_ends[-3:]}") from None

    async def kill(self) -> str:
        """Kill it, or wait until it reaches its armed fault point; return where it died."""
        point = self.armed.partition(":")[0]
        if point:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._dead.wait(), 2.0)
                return point
        await self.strike()
        return "gateway"

    async def strike(self) -> None:
        """Kill it now; again if it was just being started."""
        while self.process:
            with contextlib.suppress(ProcessLookupError):
                self.process.send(signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._dead.wait(), 0.5)
                return

    async def stop(self) -> None:
        """End it in order: one that is still starting would end by the signal itself."""
        await self.recovered()
        self.over = True
        if self.process:
            self.process.send(signal.SIGTERM)
        await self._dead.wait()


@dataclass(frozen=True, slots=True)
class Parts:
    """What can be disturbed."""

    lives: tuple[Life, ...]
    redis: Server
    broker: OwnBroker
    seen: Seen
    chance: random.Random


async def carry_out(
    disturb: Callable[[Parts], Awaitable[None]],
    directory: Path,
    *,
    seed: int = 1,
    appendfsync: str = "always",
    gateways: int = 1,
) -> Seen:
    """Run jobs for as long as `disturb` takes; then let every job end, and read what the store holds of them.

    All `gateways` work on one store.
    """
    chance = random.Random(seed)
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        redis = await enter(own_server(directory, "--appendfsync", appendfsync))
        # mosquitto acknowledges before it stores: killed, it forgets up to a second.
        broker = await enter(open_broker("autosave_interval 1"))
        seen = await enter(_plant(broker.url, chance, appendfsync))
        store_settings = RedisSettings(url=redis.url)
        names = [f"edge-{number}" for number in range(1, gateways + 1)]
        files = [_written(_settings(name, store_settings, broker.url), directory / name) for name in names]
        lives = tuple(Life(file, chance, seen) for file in files)
        for life in lives:
            await enter(background_task(life.run(), "gateway"))
        await enter(standstill_reported(seen.progress, lambda: lives[0].process, broker))
        await asyncio.gather(*(life.recovered() for life in lives))
        await seen.mes.open()
        # Whose session the broker forgets reads the retained topics: that is tried elsewhere.
        await broker.save()
        store = await enter(open_store(store_settings, None))
        await enter(background_task(_watch_deadlines(store, seen), "deadlines"))
        async with asyncio.TaskGroup() as tasks:
            enough = asyncio.Event()
            for lane in range(JOBS_AT_A_TIME):
                tasks.create_task(_order_jobs(lane, seen, enough), name=f"lane {lane}")
            await disturb(Parts(lives, redis, broker, seen, chance))
            enough.set()
        await _settled(store, seen)
        await asyncio.gather(*(life.stop() for life in lives))
        await _read(store, seen)
        seen.archived = {file.parent.name: _archived(file.parent) for file in files}
        seen.seconds = time.monotonic() - began
        return seen


async def _order_jobs(lane: int, seen: Seen, enough: asyncio.Event) -> None:
    number = lane
    while not enough.is_set():
        job_id = f"J{number}"
        await seen.mes.start(job_id, KINDS[number % len(KINDS)])
        number += JOBS_AT_A_TIME + 1
        try:
            async with asyncio.timeout(ENDS_WITHIN_S):
                await seen.mes.ended[job_id].wait()
        except TimeoutError:
            seen.stuck.append(job_id)


async def _settled(store: Store, seen: Seen) -> None:
    """Wait for the events after the end of the last job, and for empty outboxes."""
    for _ in range(round(SETTLES_WITHIN_S / 0.05)):
        if seen.mes.heard_all() and not await runs.active_jobs(store):
            return
        await asyncio.sleep(0.05)


async def _watch_deadlines(store: Store, seen: Seen) -> None:
    """Look again and again which deadlines stand in the store."""
    while True:
        with contextlib.suppress(Unavailable):
            for job_id in await runs.active_jobs(store):
                stored_run = await runs.load(store, job_id)
                for key, association in stored_run.run.associations.items() if stored_run else ():
                    if association.deadline is not None and association.armed_at is not None:
                        seen.deadlines[job_id, str(key)].add(association.deadline - association.armed_at)
                        seen.deadlines[job_id, f"{key} instant"].add(association.deadline)
        await asyncio.sleep(0.1)


async def _read(store: Store, seen: Seen) -> None:
    for job_id in seen.mes.answers:
        seen.stored[job_id] = (await jobs.load(store, job_id), await runs.load(store, job_id))
    seen.active = await runs.active_jobs(store)
    for job_id in seen.active:
        seen.timers[job_id] = await store.execute("ZSCORE", store.keys.sfc_timers(), job_id)


def _archived(directory: Path) -> list[str]:
    file = directory / "archive" / "results.sqlite"
    return [job.job_order_id for job in find_jobs(file, Search(), 100_000).jobs] if file.exists() else []


@asynccontextmanager
async def _plant(url: str, chance: random.Random, appendfsync: str) -> AsyncIterator[Seen]:
    """Open MES and equipment."""
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(open_session(MqttSettings(url=url), name))
            for name in ("mes", "wrench", "camera")
        ]
        controller = Controller(sessions[1], f"{PREFIX}/wrench", chance)
        camera = Camera(sessions[2], f"{PREFIX}/camera", SCOPE)
        await stack.enter_async_context(background_task(controller.run(), "controller"))
        await stack.enter_async_context(background_task(camera.run(), "camera"))
        yield Seen(Mes(sessions[0], PREFIX, SCOPE), controller, camera, appendfsync)


def _written(settings: Settings, directory: Path) -> Path:
    directory.mkdir()
    file = written(settings, directory)
    file.write_text(f'{file.read_text()}\n[archive]\ndirectory = "{directory / "archive"}"\ninterval = 0.2\n')
    return file


def _settings(name: str, redis: RedisSettings, url: str) -> Settings:
    return Settings(
        gateway=GatewaySettings(name=name),
        redis=redis,
        mqtt=MqttSettings(url=url, client_id=name),
        northbound=NorthboundSettings(topic_prefix=PREFIX),
        southbound={
            "wrench": MqttEquipmentSettings(type_ids=(DO, MEASURE, SILENT), topic_prefix=PREFIX),
            "camera": MqttEquipmentSettings(type_ids=("chaos.unused.v1",), topic_prefix=PREFIX),
        },
        opcua=NO_OPCUA,
    )
