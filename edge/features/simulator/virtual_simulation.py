"""Runs a recipe against a script in virtual time: no clock, no Redis, no broker, no equipment.

This module replaces the station of the real engine: an event goes to the run that has waited longest, an answer to the
run of its command id, duplicates are dropped, and a run keeps the recipe with which it started.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from msgspec import Struct, field

from edge.access.lock_queue import acquire, is_held_by, release
from edge.features.simulator.script import (
    AnswerPlan,
    EventQueue,
    EventRank,
    Script,
    ScriptEvent,
    TimelineEntry,
    milliseconds,
    mirrored,
    parse_script,
)
from edge.features.simulator.trace import Trace, TraceRecorder, rejected_at_load
from edge.model.lock import Lock, LockClaim
from edge.sfc.advance import advance
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.condition import RunAccess
from edge.sfc.identifiers import parse_command_id
from edge.sfc.net import Net
from edge.sfc.run import LockChange, Run, lock_change, new_run, waits
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    CommandRequest,
    Event,
    Granted,
    Ignored,
    Intervene,
    MirrorCopy,
    Pause,
    Phase,
    Resolve,
    Resume,
    Signal,
    Start,
    Tick,
    Unknown,
)
from edge.sfc.verdict import verdict_of
from edge.sfc.view import next_deadline


class LockTable(Struct):
    """The holder of each lock, and those that wait for it."""

    locks: dict[str, Lock] = field(default_factory=dict)

    def change(self, job_id: str, change: LockChange, now: int) -> list[str]:
        """Apply what a decision does with the locks of its job; return the jobs that may continue."""
        woken = []
        for name in change.names:
            if name in change.released:
                after = release(self.locks.pop(name), job_id, now)
                if after is not None:
                    self.locks[name] = after
                    woken.append(after.holder.owner)
        return [*woken, job_id] if change.claimed else woken

    def acquire(self, job_id: str, names: Sequence[str], now: int) -> bool:
        """Acquire locks in their order up to the first that is not free; return whether the job holds all of them."""
        for name in names:
            self.locks[name] = acquire(self.locks.get(name), LockClaim(owner=job_id, since=now))
            if not is_held_by(self.locks[name], job_id):
                return False
        return True


def simulate(recipe: object, script: Script) -> Trace:
    """Run a recipe (decoded JSON) against a script until all jobs have ended or the horizon is reached."""
    simulation = VirtualSimulation(script)
    net = compile_recipe(recipe, simulation.identifiers)
    if isinstance(net, RejectedRecipe):
        return rejected_at_load(script, net)
    simulation.play(net)
    jobs, recorder = simulation.jobs, simulation.recorder
    for name, job in jobs.items():
        recorder.waits(name, job.net, job.run, simulation.clock, simulation.mirrors)
    verdicts = {name: verdict_of(job.net, job.run, simulation.clock) for name, job in jobs.items()}
    return recorder.trace({name: job.run for name, job in jobs.items()}, verdicts, simulation.clock)


def simulate_script(recipe: object, script: object) -> dict[str, Any]:
    """Run a recipe against a script, both decoded JSON, and return its trace. Raises ScriptError."""
    return simulate(recipe, parse_script(script)).as_json()


class _Job(Struct):
    """A job of the simulation; its net is pinned at its start."""

    net: Net
    run: Run


class VirtualSimulation(Struct):
    """The environment of the runs: the event queue, the equipment, the recorder."""

    script: Script
    identifiers: dict[str, Callable[[RunAccess], object]] = field(default_factory=dict)
    """The values that the script has set so far, by plain identifier."""
    jobs: dict[str, _Job] = field(default_factory=dict)
    queue: EventQueue[Callable[[int], None]] = field(default_factory=EventQueue)
    recorder: TraceRecorder = field(default_factory=TraceRecorder)
    unnamed: Iterator[int] = field(default_factory=count)
    seen: set[str] = field(default_factory=set)
    locks: LockTable = field(default_factory=LockTable)
    mirrors: dict[str, MirrorCopy] = field(default_factory=dict)
    master: Net | None = None
    clock: int = 0
    """The present instant, in milliseconds."""

    def play(self, net: Net) -> None:
        """Run the script until all jobs have ended, no event is left, or the horizon or bound of changes is reached."""
        self.master = net
        self.recorder.warnings += net.warnings
        for job in self.script.jobs:
            self.jobs[job.id] = _Job(net, new_run(job.id, "simulation", "1", job.parameters))
            self.queue.push(milliseconds(job.starts_at), EventRank.START, self._starter(job.id))
        for entry in self.script.timeline:
            rank = EventRank.SET if entry.sets_names else EventRank.TIMELINE
            self.queue.push(milliseconds(entry.at), rank, self._entry(entry))
        horizon, most = milliseconds(self.script.horizon), self.script.most_changes
        while not all(job.run.ended for job in self.jobs.values()):
            if most is not None and len(self.recorder.steps) >= most:
                self.recorder.warnings.append(f"the simulation was ended after {most} changes of steps")
                break
            deadlines = [next_deadline(job.net, job.run) for job in self.jobs.values()]
            due = min((at for at in deadlines if at is not None), default=None)
            planned = self.queue.next_at
            if planned is not None and (due is None or planned <= due):
                now, happen = self.queue.pop()
                if now > horizon:
                    break
                self.clock = now
                happen(now)
            elif due is not None and due <= horizon:
                # A reloaded run may report a past deadline; the clock must not go back.
                self.clock = max(self.clock, due)
                self._tick(self.clock)
            else:
                break

    def _starter(self, job_id: str) -> Callable[[int], None]:
        def start(now: int) -> None:
            job = self.jobs[job_id]
            if self.master is not None:
                job.net = self.master
            self._signal(job_id, Start(), now)

        return start

    def _entry(self, entry: TimelineEntry) -> Callable[[int], None]:
        def happen(now: int) -> None:
            if entry.event is not None:
                self._event(entry.event, now)
            elif entry.set is not None:
                self.identifiers.update({name: _constant(value) for name, value in entry.set.items()})
                self._tick(now)
            elif entry.mirror is not None:
                self.mirrors = mirrored(self.mirrors, entry.mirror)
                self._tick(now)
            elif entry.operator is not None:
                self._operate(entry.operator, entry.job, now)
            elif entry.decision is not None:
                for name in [entry.job] if entry.job in self.jobs else list(self.jobs):
                    self._decide(name, entry.decision.signal(), now)
            elif entry.system == "restart":
                for job in self.jobs.values():
                    self._restart(job)
            else:
                self._replace(entry.recipe)

        return happen

    def _restart(self, job: _Job) -> None:
        """Encode and decode a run, and compile its pinned recipe again."""
        job.run = decode(encode(job.run))
        net = compile_recipe(json.loads(job.net.source), self.identifiers)
        if isinstance(net, Net):
            job.net = net

    def _replace(self, recipe: object) -> None:
        net = compile_recipe(recipe, self.identifiers)
        if isinstance(net, RejectedRecipe):
            self.recorder.warnings.append(f"the new recipe is refused: {'; '.join(net.faults)}")
        else:
            self.master = net

    def _operate(self, word: str, job_id: str | None, now: int) -> None:
        signals: dict[str, Signal] = {
            "pause": Pause(),
            "resume": Resume(),
            "abort": Abort("aborted by the MES"),
        }
        for name in [job_id] if job_id is not None else list(self.jobs):
            if name in self.jobs:
                self._signal(name, signals[word], now)

    def _decide(self, job_id: str, decision: Intervene | Resolve, now: int) -> None:
        ignored = self._signal(job_id, decision, now)
        self.recorder.decided(now, job_id, decision, ignored)

    def _event(self, event: ScriptEvent, now: int) -> None:
        """Deliver an event to its named job, else to the longest-waiting job; drop it without one or when repeated."""
        if event.id is not None and event.id in self.seen:
            return
        event_id = event.id if event.id is not None else f"unnamed-{next(self.unnamed)}"
        self.seen.add(event_id)
        job_id = event.job
        if job_id is None:
            waiting = [
                (since, number, name)
                for number, (name, job) in enumerate(self.jobs.items())
                if (since := waits(job.run).get(event.type_id)) is not None
            ]
            if not waiting:
                return
            job_id = min(waiting)[2]
        if job_id in self.jobs:
            named = event.job is not None
            self._signal(job_id, Event(event.type_id, event.data, event_id, named=named), now)

    def _tick(self, now: int) -> None:
        for name in self.jobs:
            self._signal(name, Tick(), now)

    def _signal(self, job_id: str, signal: Signal, now: int) -> Ignored | None:
        job = self.jobs[job_id]
        advanced = advance(job.net, job.run, signal, now, self.mirrors)
        if not isinstance(advanced, Advanced):
            return advanced
        change = lock_change(job.run.locks, advanced.run.locks)
        job.run = advanced.run
        self.recorder.changes(job_id, advanced.steps)
        for request in advanced.requests:
            self._receive(job_id, request, now)
        for woken in self.locks.change(job_id, change, now):
            self._continue(woken, now)
        return None

    def _continue(self, job_id: str, now: int) -> None:
        """Acquire the next locks of a job that waits, and continue it once it holds all."""
        missing = self.jobs[job_id].run.locks.missing
        if missing and self.locks.acquire(job_id, missing, now):
            self._signal(job_id, Granted(missing), now)

    def _receive(self, job_id: str, request: CommandRequest, now: int) -> None:
        """Receive a command as the equipment and queue its answers."""
        nth = self.recorder.command(now, job_id, request.action, request.type_id, request.phase, request.attempt)
        if request.phase is not Phase.STOP:
            how = self.script.answer_plan(request.type_id, request.action, job_id, nth)
            for delay in how.delays():
                self.queue.push(now + delay, EventRank.ANSWER, self._answerer(request.command_id, how))

    def _answerer(self, command_id: str, how: AnswerPlan) -> Callable[[int], None]:
        ok = how.result == "ok"
        answer: Signal = Answer(command_id, ok=ok, data=how.data, error=None if ok else how.error)
        if how.result == "unknown":
            answer = Unknown(command_id, how.reason)

        def happen(now: int) -> None:
            key = parse_command_id(command_id)
            if key is not None:
                self._signal(key.job_id, answer, now)

        return happen


def _constant(value: object) -> Callable[[RunAccess], object]:
    return lambda _view: value
