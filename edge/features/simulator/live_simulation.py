"""Runs a recipe against a script in the real engine: real store, dispatch and timers, simulated equipment.

The clock of the engine runs `speed` times as fast as real time, so that all delays are divided by the speed. The trace
is that of the virtual simulation, plus the computing time of the machine multiplied by the speed.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Any

import msgspec
from msgspec import Struct, field

from edge.config import RedisSettings
from edge.features.simulator.script import (
    AnswerPlan,
    EventQueue,
    EventRank,
    Script,
    ScriptError,
    ScriptEvent,
    ScriptJob,
    TimelineEntry,
    milliseconds,
    mirrored,
)
from edge.features.simulator.trace import Trace, TraceRecorder, rejected_at_load
from edge.foundation.instant import Clock, now_ms
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionState
from edge.model.isa95 import IdCall, JobOrder, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.job_state import Cause
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.condition import RunAccess
from edge.sfc.net import Net
from edge.sfc.run import Outcome, Run, new_run
from edge.sfc.signal import Ignored, Intervene, MirrorCopy, Phase, Resolve, Tick
from edge.sfc.verdict import verdict_of
from edge.station.answers import Answers
from edge.station.decision import LoadedJob
from edge.station.equipment import Command, EquipmentAnswer, EquipmentEvent, OutcomeUnknown, Repetition
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import JobService
from edge.station.runs import Progress, Runs
from edge.station.sender import Dispatch, Sender
from edge.station.start import Starter
from edge.station.timers import Timers
from edge.station.worker import Worker
from edge.store import resources
from edge.store.client import Store
from edge.store.open_store import open_store

_SCOPE = "simulation"
_MASTER = "simulation"
_SOURCE = "urn:simulation"
_MOST_JOBS = 65_535
_DEDUPE_MS = 86_400_000
_KEEP_ENDED_MS = 1 << 45
_STARTS_WITHIN_S = 30.0
_LOOK_AGAIN_S = 0.1
_CAUSES = {"pause": Cause.PAUSE, "resume": Cause.RESUME, "abort": Cause.ABORT}


async def simulate_live(recipe: object, script: Script, speed: float, redis: RedisSettings) -> Trace:
    """Run a recipe (decoded JSON) until all jobs have ended, no event is left, or the horizon is reached.

    `redis` selects a store without data of an earlier simulation. Raises ScriptError for a script that the station
    cannot execute, Unavailable or SettingsError when the store cannot be used.
    """
    net = compile_recipe(recipe)
    if isinstance(net, RejectedRecipe):
        return rejected_at_load(script, net)
    began, epoch = time.monotonic(), now_ms()

    def clock() -> int:
        return epoch + int((time.monotonic() - began) * 1000 * speed)

    async with open_store(redis, "simulation") as store:
        simulation = LiveSimulation(store, recipe, script, speed, clock)
        await simulation.play(net)
        for name, loaded in simulation.loaded.items():
            simulation.recorder.waits(name, loaded.net, loaded.stored.run, clock(), simulation.mirrors)
        verdicts = {
            name: verdict_of(loaded.net, loaded.stored.run, clock()) for name, loaded in simulation.loaded.items()
        }
        return simulation.recorder.trace(simulation.runs, verdicts, clock())


class _Engine(Struct, frozen=True):
    """The parts of the station that the simulation calls."""

    runs: Runs
    answers: Answers
    jobs: JobService


class _PlannedAnswer(Struct, frozen=True):
    command_id: str
    how: AnswerPlan


_Planned = ScriptJob | TimelineEntry | _PlannedAnswer


class LiveSimulation(Struct):
    """The environment of the engine: the event queue, the equipment, the recorder."""

    store: Store
    recipe: object
    script: Script
    speed: float
    clock: Clock
    name: str = "simulated equipment"
    connected: bool = True
    identifiers: dict[str, Callable[[RunAccess], object]] = field(default_factory=dict)
    """The values that the script has set so far, by plain identifier."""
    mirrors: dict[str, MirrorCopy] = field(default_factory=dict)
    queue: EventQueue[_Planned] = field(default_factory=EventQueue)
    recorder: TraceRecorder = field(default_factory=TraceRecorder)
    runs: dict[str, Run] = field(default_factory=dict)
    loaded: dict[str, LoadedJob] = field(default_factory=dict)
    """The jobs that have begun, as they were decided last."""
    due: dict[str, int | None] = field(default_factory=dict)
    """The next deadline of each started job; None without one."""
    received: set[tuple[str, Phase]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    numbers: Iterator[int] = field(default_factory=count)

    async def play(self, net: Net) -> None:
        """Run the script to its end; continue with a new engine after each restart."""
        async with self._engine() as engine:
            await self._prepare(engine, net)
            over = await self._play(engine)
        while not over:
            async with self._engine() as engine:
                over = await self._play(engine)

    @contextlib.asynccontextmanager
    async def _engine(self) -> AsyncIterator[_Engine]:
        store = self.store
        runs = Runs(store, self.clock, _KEEP_ENDED_MS, functools.cache(self._compiled))
        runs.listeners.append(self._watch)
        runs.mirrors = lambda: self.mirrors
        answers = Answers(store, runs, _DEDUPE_MS)
        dispatch = Dispatch(runs, dict.fromkeys(self._command_types(), self))
        timers = Timers(store, runs, self.speed)
        starter = Starter(store, runs, dispatch, mirrors=self._mirror_names())
        worker = Worker(store, (_SCOPE,), runs, starter)
        async with (
            background_task(Sender(runs, dispatch).run(), "sender"),
            background_task(worker.run(), "worker"),
            background_task(timers.run(), "timers"),
        ):
            yield _Engine(runs, answers, JobService(store, runs, _MOST_JOBS, _DEDUPE_MS))

    def _compiled(self, recipe: str) -> Net | RejectedRecipe:
        return compile_recipe(msgspec.json.decode(recipe), self.identifiers)

    def _command_types(self) -> set[str]:
        """Return the command types of the equipment: those of every recipe of the simulation."""
        return {type_id for net in self._nets() for type_id in net.command_types}

    def _mirror_names(self) -> set[str]:
        """Return the mirrors for which any recipe of the simulation asks; without an entry they stay unread."""
        return {name for net in self._nets() for name in net.mirrors}

    def _nets(self) -> list[Net]:
        recipes = [self.recipe, *(entry.recipe for entry in self.script.timeline if entry.recipe is not None)]
        return [net for recipe in recipes if isinstance(net := compile_recipe(recipe), Net)]

    async def _prepare(self, engine: _Engine, net: Net) -> None:
        """Store the recipe and the jobs, and queue the entries of the script from now on."""
        self.recorder.warnings += net.warnings
        await self._teach(self.recipe)
        for job in self.script.jobs:
            given = tuple(_parameter(name, value) for name, value in job.parameters.items())
            masters = (WorkMaster(id=_MASTER),)
            order = JobOrder(job_order_id=job.id, work_master_id=masters, job_order_parameters=given)
            answer = await self._call(engine, Cause.STORE, OrderCall(job_order=order))
            if answer.status is not ReturnStatus.NO_ERROR:
                raise ScriptError(Text.of("job {job!r} cannot be stored: {reasons}", job=job.id, reasons=answer.reason))
            self.runs[job.id] = new_run(job.id, _SCOPE, "", job.parameters)
        zero = self.recorder.zero = self.clock()
        for job in self.script.jobs:
            self.queue.push(zero + milliseconds(job.starts_at), EventRank.START, job)
        for entry in self.script.timeline:
            rank = EventRank.SET if entry.sets_names else EventRank.TIMELINE
            self.queue.push(zero + milliseconds(entry.at), rank, entry)

    async def _teach(self, recipe: Any) -> None:
        master = WorkMaster(id=_MASTER, data=recipe, dataschema=RECIPE_DATASCHEMA)
        await self.store.commit(resources.save_work_master(self.store.keys, _SCOPE, master))

    async def _call(self, engine: _Engine, method: Cause, arguments: OrderCall | IdCall) -> CallAnswer:
        return await engine.jobs.call(JobCall(_SCOPE, method, arguments, _SOURCE, f"call {next(self.numbers)}"))

    async def _play(self, engine: _Engine) -> bool:
        """Process the queue; return True at the end of the simulation, False for a restart of the engine."""
        while (what := await self._next(engine)) is not None:
            match what:
                case ScriptJob():
                    await self._start(engine, what.id)
                case TimelineEntry(system="restart"):
                    return False
                case TimelineEntry():
                    await self._enter(engine, what)
                case _PlannedAnswer(command_id, how):
                    # An empty text is an error, too; only None is a success.
                    error = None if how.result == "ok" else how.error or ""
                    if how.result == "unknown":
                        await engine.answers.answer(OutcomeUnknown(command_id, how.reason))
                    else:
                        await engine.answers.answer(EquipmentAnswer(command_id, how.data, error))
        return True

    async def _next(self, engine: _Engine) -> _Planned | None:
        """Wait for the next event of the queue; None at the end of the simulation."""
        horizon = self.recorder.zero + milliseconds(self.script.horizon)
        while not self._is_over(engine):
            now, planned = self.clock(), self.queue.next_at
            if planned is not None and planned <= min(now, horizon):
                return self.queue.pop()[1]
            if now > horizon:
                return None
            until = horizon + 1 if planned is None else min(planned, horizon + 1)
            await self._change_within(min((until - now) / 1000 / self.speed, _LOOK_AGAIN_S))
        return None

    async def _change_within(self, seconds: float) -> None:
        self.changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()

    def _is_over(self, engine: _Engine) -> bool:
        if any(engine.runs.outbox.unsent(job_id) for job_id in self.runs):
            return False
        if all(run.ended for run in self.runs.values()):
            return True
        return self.queue.next_at is None and not any(self.due.values())

    async def _start(self, engine: _Engine, job_id: str) -> None:
        """Start a job and wait until it has started, before the next entry of the script."""
        answer = await self._call(engine, Cause.START, IdCall(job_order_id=job_id))
        if answer.status is ReturnStatus.NO_ERROR:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                while self.runs[job_id].started_at is None:
                    await self._change_within(_LOOK_AGAIN_S)

    async def _enter(self, engine: _Engine, entry: TimelineEntry) -> None:
        if entry.event is not None:
            await self._event(engine, entry.event)
        elif entry.set is not None:
            self.identifiers.update({name: _constant(value) for name, value in entry.set.items()})
            await self._tick(engine)
        elif entry.mirror is not None:
            self.mirrors = mirrored(self.mirrors, entry.mirror)
            await self._tick(engine)
        elif entry.operator is not None:
            for job_id in [entry.job] if entry.job is not None else list(self.runs):
                await self._operate(engine, _CAUSES[entry.operator], job_id)
        elif entry.decision is not None:
            for job_id in [entry.job] if entry.job in self.runs else list(self.runs):
                await self._decide(engine, job_id, entry.decision.signal())
        elif isinstance(net := compile_recipe(entry.recipe), RejectedRecipe):
            self.recorder.warnings.append(f"the new recipe is refused: {'; '.join(net.faults)}")
        else:
            await self._teach(entry.recipe)

    async def _tick(self, engine: _Engine) -> None:
        for job_id in self.runs:
            await engine.runs.signal(job_id, Tick())

    async def _decide(self, engine: _Engine, job_id: str, decision: Intervene | Resolve) -> None:
        now = self.clock()
        result = await engine.runs.signal(job_id, decision)
        self.recorder.decided(now, job_id, decision, result if isinstance(result, Ignored) else None)

    async def _event(self, engine: _Engine, event: ScriptEvent) -> None:
        event_id = event.id if event.id is not None else f"unnamed {next(self.numbers)}"
        await engine.answers.event(
            EquipmentEvent(_SOURCE, event_id, event.type_id, _SCOPE, event.data, job_id=event.job)
        )

    async def _operate(self, engine: _Engine, cause: Cause, job_id: str) -> None:
        answer = await self._call(engine, cause, IdCall(job_order_id=job_id))
        run = self.runs.get(job_id)
        if cause is Cause.ABORT and answer.status is ReturnStatus.NO_ERROR and run and not run.ended:
            # The job was aborted before its start: the engine has no run of it.
            aborted = {"outcome": Outcome.ABORTED, "error": "aborted by the MES", "ended_at": self.clock()}
            self.runs[job_id] = msgspec.structs.replace(run, **aborted)

    def _watch(self, progress: Progress) -> None:
        job_id, run = progress.loaded.job.job_id, progress.loaded.stored.run
        self.runs[job_id] = run
        self.loaded[job_id] = progress.loaded
        self.due[job_id] = None if run.ended else progress.due
        self.recorder.changes(job_id, progress.steps)
        self.changed.set()

    @property
    def problem(self) -> str:
        """Return an empty reason: simulated equipment can always work."""
        return ""

    @property
    def connection(self) -> ConnectionState:
        """Return that it is connected."""
        return ConnectionState(connected=True)

    @property
    def connection_count(self) -> int:
        """Return 1: it is connected from the start."""
        return 1

    def repetition_of(self, type_id: str) -> Repetition:
        """Return RECOGNISABLE: this equipment drops a repeated command id."""
        return Repetition.RECOGNISABLE

    async def reset(self, command: Command) -> None:
        """Handle a reset like any command."""
        await self.send(command)

    async def send(self, command: Command) -> None:
        """Receive a command as the equipment and queue its answers; drop a repeated command."""
        if (command.command_id, command.phase) in self.received:
            return
        self.received.add((command.command_id, command.phase))
        now = self.clock()
        self.changed.set()
        nth = self.recorder.command(
            now, command.job_id, command.action, command.type_id, command.phase, command.attempt
        )
        if command.phase is not Phase.STOP:
            how = self.script.answer_plan(command.type_id, command.action, command.job_id, nth)
            for delay in how.delays():
                self.queue.push(now + delay, EventRank.ANSWER, _PlannedAnswer(command.command_id, how))

    async def stop(self, command: Command) -> None:
        """Receive a stop as the equipment."""
        await self.send(command)


def _parameter(name: str, value: object) -> Parameter:
    if isinstance(value, dict):
        return Parameter(id=name, subparameters=tuple(_parameter(key, item) for key, item in value.items()))
    return Parameter(id=name, value=value)


def _constant(value: object) -> Callable[[RunAccess], object]:
    return lambda _view: value
