"""A whole station over a real store, with equipment and a clock that a test holds in its hands."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.model.action_attempt import ATTEMPTS_ID
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.isa95 import IdCall, JobOrder, JobResponse, OrderCall, Parameter, WorkMaster
from edge.model.job_state import Cause, JobState, SubState
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.signal import Phase
from edge.station.answers import Answers
from edge.station.equipment import (
    Command,
    EquipmentAnswer,
    EquipmentEvent,
    EquipmentPort,
    Kept,
    Repetition,
    StationPort,
    Task,
)
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import AcceptedJobs, JobService
from edge.station.response import VERDICT_ID
from edge.station.runs import Runs
from edge.station.safing_sender import SafingSender
from edge.station.sender import Dispatch, Sender, routes_of
from edge.station.start import Starter
from edge.station.timers import Timers
from edge.station.waiting_runs import continue_with_locks
from edge.station.worker import Worker
from edge.store import jobs, resources, runs, work
from edge.store.client import Store
from edge.store.jobs import Job
from edge.store.keys import GROUP
from edge.store.open_store import open_store
from edge.store.work import UnreadableEntry, Work, WorkKind

SCOPE = "station-1"
NOW = 1_700_000_000_000
KEEP_ENDED_MS = 60_000
DEDUPE_MS = 30_000
TIGHTEN = "tighten.v1"
PHOTO = "photo.v1"
MIRRORS = ("carriers",)
"""The mirrored sets of the station."""
SCAN = "scan.v1"

_numbers = itertools.count(1)


class Clock:
    """Shows the instant it was set to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class FakeEquipment:
    """Records its commands; answers at once with `replies`, and is disconnected while it is not `reachable`."""

    def __init__(self, name: str = "tool") -> None:
        self.name = name
        self.commands: list[Command] = []
        self.connection_count = 1
        self.problem = ""
        self.holder = ""
        self._reachable = True
        self.refused = 0
        self.replies: Callable[[Command], EquipmentAnswer | None] = lambda _: None
        self.station: StationPort | None = None

    @property
    def reachable(self) -> bool:
        return self._reachable

    @reachable.setter
    def reachable(self, reachable: bool) -> None:
        self.connection_count += reachable and not self._reachable
        self._reachable = reachable

    @property
    def connected(self) -> bool | None:
        return None if self.holder else self.reachable

    @property
    def connection(self) -> ConnectionState:
        if self.holder:
            return ConnectionState(holder=self.holder)
        if self.reachable:
            return ConnectionState(connected=True)
        return ConnectionState(connected=False, fault=ConnectionFault.REFUSED, reason=f"{self.name} is away")

    def repetition_of(self, type_id: str) -> Repetition:
        """Return what a start that is sent a second time may do."""
        return Repetition.RECOGNISABLE

    async def reset(self, command: Command) -> None:
        """Receive a reset as any command."""
        await self.send(command)

    async def send(self, command: Command) -> None:
        if not self.reachable:
            self.refused += 1
            raise Unavailable(f"{self.name} is away")
        self.commands.append(command)
        answer = self.replies(command)
        if answer and self.station:
            await self.station.answer(answer)

    async def stop(self, command: Command) -> None:
        await self.send(replace(command, phase=Phase.STOP))

    def received(self, phase: Phase = Phase.START) -> list[str]:
        """Return the actions it had to start, stop or reset, in order."""
        return [command.action for command in self.commands if command.phase is phase]


def obliging(command: Command) -> EquipmentAnswer | None:
    """Do at once whatever is asked."""
    return EquipmentAnswer(command.command_id, {"ok": True}) if command.phase is not Phase.STOP else None


class Plant:
    """One instance of the station; several on one store are several instances."""

    def __init__(
        self,
        store: Store,
        equipment: Mapping[str, FakeEquipment],
        clock: Callable[[], int],
        *,
        max_job_orders: int = 100,
    ) -> None:
        """`equipment` is what takes each command type."""
        self.store = store
        self.runs = Runs(store, clock, KEEP_ENDED_MS)
        self.answers = Answers(store, self.runs, DEDUPE_MS)
        devices = {id(device): device for device in equipment.values()}
        routes = [
            (fake_equipment, [name for name, at in equipment.items() if at is fake_equipment])
            for fake_equipment in devices.values()
        ]
        self.dispatch = Dispatch(self.runs, routes_of(routes))
        for device in devices.values():
            device.station = self.answers
        self.starter = Starter(store, self.runs, self.dispatch, mirrors=MIRRORS)
        self.worker = Worker(store, (SCOPE,), self.runs, self.starter)
        self.sender = Sender(self.runs, self.dispatch)
        self.timers = Timers(store, self.runs)
        self.accepted_jobs = AcceptedJobs()
        self.jobs = JobService(store, self.runs, max_job_orders, DEDUPE_MS, accepted_jobs=self.accepted_jobs)
        self.jobs.listeners.append(self.timers.expect)

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator["Plant"]:
        """Do all pending work; expired timers are a separate call, `timers`."""
        async with background_task(self.sender.run(), "sender"), background_task(self.worker.run(), "worker"):
            yield self

    async def drive(self) -> None:
        """Do all the work there is, and what follows from it, without a worker."""
        await work.create_groups(self.store, (SCOPE,))
        while True:
            for asked in await self._taken():
                assert isinstance(asked, Work)
                if asked.kind is WorkKind.LOCK:
                    done = work.acknowledge(self.store.keys, asked.scope, (asked.entry_id,))
                    await continue_with_locks(self.runs, asked.job_id, done)
                    continue
                assert asked.kind is WorkKind.START_RECIPE
                await self.starter.start(asked)
            if self.runs.outbox.queue.empty():
                return
            await self.sender.send_all(self.runs.outbox.queue.get_nowait())

    async def _taken(self) -> list[Work | UnreadableEntry]:
        """Take all pending work and return it."""
        stream = self.store.keys.sfc_work(SCOPE)
        await self.store.execute("XREADGROUP", "GROUP", GROUP, self.store.consumer, "STREAMS", stream, ">")
        return await work.read_pending(self.store, (SCOPE,))

    async def order(self, method: Cause, order: JobOrder, *, scope: str = SCOPE, event_id: str = "") -> CallAnswer:
        """Call Store, StoreAndStart or Update."""
        return await self.jobs.call(JobCall(scope, method, OrderCall(job_order=order), "mes", event_id or _fresh()))

    async def ask(self, method: Cause, job_id: str, *, scope: str = SCOPE, event_id: str = "") -> CallAnswer:
        """Call a method that names a stored job."""
        return await self.jobs.call(JobCall(scope, method, IdCall(job_order_id=job_id), "mes", event_id or _fresh()))

    async def answer(self, command: Command, data: object = None, error: str | None = None) -> None:
        """Answer a command."""
        await self.answers.answer(EquipmentAnswer(command.command_id, data, error))

    async def happens(
        self,
        type_id: str = SCAN,
        *,
        event_id: str = "",
        job_id: str | None = None,
        correlation_id: str | None = None,
        data: object = None,
        source: str = "scanner",
    ) -> Task | Kept | None:
        """Deliver an event of equipment."""
        event = EquipmentEvent(source, event_id or _fresh(), type_id, SCOPE, data, job_id, correlation_id)
        return await self.answers.event(event)

    async def job(self, job_id: str) -> Job:
        """Read a job that must be there."""
        job = await jobs.load(self.store, job_id)
        assert job is not None, f"there is no job {job_id}"
        return job

    async def timer(self, job_id: str) -> int | None:
        """Return the instant of the next timer of a job."""
        score = await self.store.execute("ZSCORE", self.store.keys.sfc_timers(), job_id)
        return None if score is None else int(score)

    async def until_state(self, job_id: str, state: JobState, substate: SubState | None = None) -> Job:
        """Wait until a job is in a state, and return it."""
        await until(lambda: self._is_in(job_id, state))
        job = await self.job(job_id)
        assert substate is None or job.status.substate is substate
        return job

    async def _is_in(self, job_id: str, state: JobState) -> bool:
        job = await jobs.load(self.store, job_id)
        return job is not None and job.status.state is state

    async def teach(
        self, master_id: str, recipe: object, *, dataschema: str = RECIPE_DATASCHEMA, scope: str = SCOPE
    ) -> None:
        """Store a work master without looking at its recipe."""
        assert isinstance(recipe, dict)
        master = WorkMaster(id=master_id, data=recipe, dataschema=dataschema)
        await self.store.commit(resources.save_work_master(self.store.keys, scope, master))


def _fresh() -> str:
    return f"event-{next(_numbers)}"


async def until(condition: Callable[[], Awaitable[bool]], deadline: float = 60.0) -> None:
    """Wait for a condition that has to be asked for."""
    end = time.monotonic() + deadline
    while not await condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        await asyncio.sleep(0.005)


async def until_true(condition: Callable[[], object]) -> None:
    """Wait for a condition that can be looked at."""

    async def met() -> bool:
        return bool(condition())

    await until(met)


async def next_work(plant: Plant) -> Work:
    """Take one entry off the work stream, as the worker of a process that dies then."""
    await work.create_groups(plant.store, (SCOPE,))
    async for taken in work.follow(plant.store, (SCOPE,)):
        (entry,) = taken
        assert isinstance(entry, Work)
        return entry
    raise AssertionError


async def unacknowledged(plant: Plant) -> int:
    """Count the work that is taken and not acknowledged, and the jobs of which something is not surely sent."""
    pending, *_ = await plant.store.execute("XPENDING", plant.store.keys.sfc_work(SCOPE), GROUP)
    return int(pending) + len(await runs.jobs_with_outbox(plant.store, plant.store.consumer))


async def none_active(plant: Plant) -> bool:
    """Return whether every run has ended, and all its commands were surely sent."""
    return int(await plant.store.execute("SCARD", plant.store.keys.sfc_active_jobs())) == 0


async def until_all_is_acknowledged(plant: Plant) -> None:
    """Wait until the work stream is empty and everything is surely sent."""

    async def none_left() -> bool:
        waiting = int(await plant.store.execute("XLEN", plant.store.keys.sfc_work(SCOPE)))
        return waiting + await unacknowledged(plant) == 0

    await until(none_left)


@contextlib.asynccontextmanager
async def instance(
    redis: RedisSettings,
    equipment: Mapping[str, FakeEquipment],
    clock: Callable[[], int],
    *,
    consumer: str = "edge",
    max_job_orders: int = 100,
) -> AsyncIterator[Plant]:
    """Open one more instance on the store of the settings."""
    async with open_store(redis, consumer) as store:
        yield Plant(store, equipment, clock, max_job_orders=max_job_orders)


def order(job_id: str, master: str = "linear", **fields: Any) -> JobOrder:
    """Write a job order."""
    return JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id=master),), **fields)


def action(name: str, step: str, type_id: str = TIGHTEN, **fields: object) -> dict[str, object]:
    """Return an action of a recipe; by default an N with a command."""
    defaults = {"qualifier": "N", "interaction": "push_command", "type_id": type_id}
    return {"name": name, "step": step} | defaults | fields


def linear(*actions: dict[str, object]) -> dict[str, object]:
    """Write a recipe of one step after the other, each with one action."""
    steps = [str(entry["step"]) for entry in actions]
    return {
        "steps": [{"name": step, "initial": number == 0} for number, step in enumerate(steps)],
        "transitions": [
            {"source": source, "target": target, "condition": "true"} for source, target in itertools.pairwise(steps)
        ],
        "actions": list(actions),
    }


def pull(name: str, step: str, type_id: str = SCAN, **fields: object) -> dict[str, object]:
    """Write an action that waits for an event."""
    return action(name, step, type_id, interaction="pull_event", **fields)


LINEAR = linear(action("a", "one"), action("b", "two"))
SUPERVISED = linear(action("a", "one", timeout_seconds=5), action("b", "two"))
"""Two commands, one after the other."""


def results_of(response: JobResponse) -> tuple[Parameter, ...]:
    """Return the data of a response without the list of attempts and the verdict."""
    others = {ATTEMPTS_ID, VERDICT_ID}
    return tuple(parameter for parameter in response.job_response_data or () if parameter.id not in others)


async def all_keys(store: Store) -> Sequence[str]:
    """Name every key below the prefix of a store."""
    found: list[str] = []
    cursor = "0"
    while True:
        cursor, names = await store.execute("SCAN", cursor, "MATCH", f"{store.keys.prefix}:*", "COUNT", 1000)
        found += names
        if str(cursor) == "0":
            return sorted(set(found))


async def send_due(sender: SafingSender, equipment: EquipmentPort) -> None:
    """Read the open commands, and send each that is due to a piece of equipment once."""
    await sender.refresh()
    await sender.send_due_to(equipment)
