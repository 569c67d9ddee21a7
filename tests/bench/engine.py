"""The engine without a broker: the floor, one job after the other, many jobs side by side."""

import asyncio
import hashlib
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import hiredis
import redis.asyncio as aioredis

from edge.config import RedisSettings
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.model.equipment_connection import ConnectionState
from edge.model.isa95 import JobOrder, OrderCall, ReturnStatus, WorkMaster
from edge.model.job_state import NEW, Cause
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.signal import Phase
from edge.station.answers import Answers
from edge.station.equipment import Command, EquipmentAnswer, Repetition
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.station.runs import Progress, Runs
from edge.station.sender import Dispatch, Sender
from edge.station.settings import SettingsMethod, StationSettings
from edge.station.start import Starter
from edge.station.timers import Timers
from edge.station.worker import Worker
from edge.store import jobs
from edge.store.client import Store
from edge.store.commit import Commit, fields, pack
from edge.store.commit import spread as spread_fields
from edge.store.jobs import Job
from edge.store.open_store import open_store
from tests.bench.measure import Meter, Row, rss_kb, spread

SCOPE = "bench"
TYPE_ID = "com.example.bench.work.v1"
DAY_MS = 86_400_000
_COMMIT_LUA = resources.files("edge.store").joinpath("lua/commit.lua").read_bytes()


def linear_recipe(steps: int) -> dict[str, object]:
    """Return a recipe of steps in a row, each with one command that is supervised."""
    return {
        "steps": [{"name": f"Step{n}", "initial": n == 0} for n in range(steps)],
        "transitions": [
            {"source": f"Step{n}", "target": f"Step{n + 1}", "condition": "always"} for n in range(steps - 1)
        ],
        "branches": [],
        "actions": [
            {
                "name": f"work{n}",
                "step": f"Step{n}",
                "qualifier": "N",
                "interaction": "push_command",
                "type_id": TYPE_ID,
                "timeout_seconds": 30,
            }
            for n in range(steps)
        ],
    }


@dataclass(slots=True)
class PromptEquipment:
    """Equipment in this process that answers at once; keeps how long each job waited from answer to next command."""

    name: str = "prompt"
    connected: bool = True
    latencies: list[float] = field(default_factory=list)
    _answered: dict[str, float] = field(default_factory=dict)
    _commands: asyncio.Queue[Command] = field(default_factory=asyncio.Queue)

    @property
    def connection(self) -> ConnectionState:
        """Return that it is connected."""
        return ConnectionState(connected=True)

    @property
    def problem(self) -> str:
        """Return no problem."""
        return ""

    @property
    def connection_count(self) -> int:
        """Return 1: it is connected from the start."""
        return 1

    def repetition_of(self, type_id: str) -> Repetition:
        """Return that a repeated command id is dropped."""
        return Repetition.RECOGNISABLE

    async def reset(self, command: Command) -> None:
        """Receive a reset as any command."""
        await self.send(command)

    async def send(self, command: Command) -> None:
        """Take a command."""
        if answered := self._answered.pop(command.job_id, None):
            self.latencies.append(time.perf_counter() - answered)
        self._commands.put_nowait(command)

    async def stop(self, command: Command) -> None:
        """Nothing is ever stopped here."""
        assert command.phase is Phase.STOP

    def clear(self) -> None:
        """Drop what was measured: it must not count as memory of the engine."""
        self.latencies.clear()
        self._answered.clear()

    async def run(self, answers: Answers) -> None:
        """Answer each command as it comes, those of different jobs side by side."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                command = await self._commands.get()
                self._answered[command.job_id] = time.perf_counter()
                answer = EquipmentAnswer(command.command_id, {"torque": 85.2, "angle": 31.4})
                tasks.create_task(answers.answer(answer))


@asynccontextmanager
async def engine(store: Store, equipment: PromptEquipment) -> AsyncIterator[tuple[Runs, JobService]]:
    """Run the station over a store, without any adapter."""
    runs = Runs(store, now_ms, DAY_MS)
    answers = Answers(store, runs, DAY_MS)
    dispatch = Dispatch(runs, {TYPE_ID: equipment})
    worker = Worker(store, (SCOPE,), runs, Starter(store, runs, dispatch))
    timers = Timers(store, runs)
    async with (
        background_task(Sender(runs, dispatch).run(), "sender"),
        background_task(worker.run(), "worker"),
        background_task(timers.run(), "timers"),
        background_task(equipment.run(answers), "equipment"),
    ):
        yield runs, JobService(store, runs, 65535, DAY_MS)


_SIZES = {"rev": 13, "outbox:bench": 90, "step:A": 60, "step:B": 40, "action:a@A": 110, "action:b@B": 110}
_STEP = spread_fields("HSET", ("bench:run",), fields({name: "x" * size for name, size in _SIZES.items()}))
"""A commit of a step's size."""


class _RawLine(asyncio.Protocol):
    """The least that a commit takes: hiredis on a socket of uvloop, one call at a time."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader()
        self._transport: Any = None
        self._reply: asyncio.Future[object] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        if (reply := self._reader.gets()) is not False and self._reply:
            self._reply.set_result(reply)

    async def call(self, *command: str | bytes | int) -> object:
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(hiredis.pack_command(command))  # type: ignore[arg-type]
        return await self._reply


async def floors(aof: str, commits: int) -> tuple[Row, Row, Row]:
    """Measure one commit of a step's size over the Unix socket: raw protocol, our store, redis-py."""
    directory = tempfile.mkdtemp(prefix="bench-")
    url = f"embedded:{directory}"
    async with open_store(RedisSettings(url=url), "bench") as store:
        await store.execute("CONFIG SET", "appendfsync", aof)
        await store.commit(_STEP)
        path = f"{directory}/valkey.sock"
        _, raw = await asyncio.get_running_loop().create_unix_connection(_RawLine, path)
        plain = aioredis.Redis(unix_socket_path=path, protocol=3, decode_responses=True)
        script = hashlib.sha1(_COMMIT_LUA, usedforsecurity=False).hexdigest()

        async def by_redis_py() -> object:
            async with asyncio.timeout(60):
                return await plain.execute_command("EVALSHA", script, 0, pack(_STEP))

        found = (
            await _commits(store, "floor", aof, commits, lambda: raw.call("EVALSHA", script, 0, pack(_STEP))),
            await _commits(store, "commit", aof, commits, lambda: store.commit(_STEP)),
            await _commits(store, "redis-py", aof, commits, by_redis_py),
        )
        await plain.aclose()
    return found


async def _commits(store: Store, scenario: str, aof: str, commits: int, commit: Callable[[], Awaitable[object]]) -> Row:
    for _ in range(100):
        await commit()
    meter = Meter(store)
    await meter.start()
    seconds = []
    for _ in range(commits):
        began = time.perf_counter()
        await commit()
        seconds.append(time.perf_counter() - began)
    spent = await meter.since_start()
    return Row(
        scenario,
        aof=aof,
        latency_ms=spread(seconds),
        step_ms=round(spent["wall"] / commits * 1000, 4),
        cpu_s_per_1000_steps=round(spent["cpu"] / commits * 1000, 4),
        aof_bytes_per_step=round(spent["aof"] / commits),
    )


async def run_jobs(
    scenario: str,
    steps: int,
    conc: int,
    aof: str,
    stored_jobs: int,
    least_steps: int = 1000,
    beside: Callable[[Store, Runs], AbstractAsyncContextManager[None]] = lambda *_: nullcontext(),
) -> Row:
    """Measure batches of `conc` jobs of `steps` steps side by side, from their call to their end.

    There are as many batches as `least_steps` needs, after a warm-up of two jobs. `beside` is other work on the store.
    """
    batches = max(1, -(-least_steps // (steps * conc)))
    async with open_store(RedisSettings(url="embedded:"), "bench") as store:
        await store.execute("CONFIG SET", "appendfsync", aof)
        await _fill(store, stored_jobs)
        master = {"ID": "WM", "data": linear_recipe(steps), "dataschema": RECIPE_DATASCHEMA}
        await StationSettings(store).apply(SCOPE, "workmaster", SettingsMethod.PUT, master)
        equipment = PromptEquipment()
        async with engine(store, equipment) as (runs, service), beside(store, runs):
            # The first jobs compile the recipe and warm every path: they do not count.
            for warm in ("warm-1", "warm-2"):
                await run_batch(runs, service, [warm])
            equipment.latencies.clear()
            meter = Meter(store)
            await meter.start()
            for batch in range(batches):
                await run_batch(runs, service, [f"job-{batch}-{n}" for n in range(conc)])
            spent = await meter.since_start()
    total = steps * conc * batches
    return Row(
        scenario,
        steps=steps,
        conc=conc,
        stored_jobs=stored_jobs,
        aof=aof,
        latency_ms=spread(equipment.latencies),
        step_ms=round(spent["wall"] / total * 1000, 4),
        jobs_per_s=round(conc * batches / spent["wall"], 1),
        steps_per_s=round(total / spent["wall"]),
        cpu_s_per_1000_steps=round(spent["cpu"] / total * 1000, 4),
        round_trips_per_step=round(spent["trips"] / total, 2),
        aof_bytes_per_step=round(spent["aof"] / total),
        rss_kb=rss_kb(),
    )


async def run_batch(runs: Runs, service: JobService, job_ids: list[str]) -> None:
    """Store and start jobs, and wait until all have ended."""
    left = set(job_ids)
    ended = asyncio.Event()

    def watch(progress: Progress) -> None:
        if progress.loaded.job.ended_at is not None:
            assert progress.loaded.job.error is None, progress.loaded.job.error
            left.discard(progress.loaded.job.job_id)
            if not left:
                ended.set()

    runs.listeners.append(watch)
    for job_id in job_ids:
        order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),))
        call = JobCall(SCOPE, Cause.STORE_AND_START, OrderCall(job_order=order), "/bench", job_id)
        answer = await service.call(call)
        assert answer.status is ReturnStatus.NO_ERROR, answer
    async with asyncio.timeout(300):
        await ended.wait()
    runs.listeners.remove(watch)


async def _fill(store: Store, stored_jobs: int) -> None:
    """Store jobs that were never started."""
    status = NEW[Cause.STORE]
    now = now_ms()
    for number in range(stored_jobs):
        order = JobOrder(job_order_id=f"stored-{number}", work_master_id=(WorkMaster(id="WM"),), priority=number % 100)
        job = Job(order=order, scope=SCOPE, status=status, correlation_id=f"c-{number}", stored_at=now)
        commit: Commit = jobs.save(store.keys, None, job, ((Cause.STORE, status),), now)
        await store.commit(commit)
