"""Injects one fault after the other and compares, after each, what MES and tools saw with what has to hold."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from redis import RedisError

from tests.outside.servers import wait_for
from tests.sentinel.faults import Fault, repair, scene_of
from tests.sentinel.line import DataNode
from tests.sentinel.plant import ONCE_ACTIONS, Plant

LANES = 4
SETTLES_S = 90.0
ENDS_S = 45.0
RESTARTS_S = 15.0
LATENESS_S = 0.3
"""From the commit of a job to its answer at the MES, on a machine that is busy."""
_PROGRESS_S = 6.0
_PRESSURE = Path("/proc/pressure/cpu")
_VARIED = (0.8, 1.6)
"""Factors of the shortest and the longest duration of a fault."""
STATES = ["Running", "Ended"]


@dataclass
class Round:
    """The outcome of one fault; each list holds ids of jobs. A job is lost when it was accepted and is not stored."""

    fault: Fault
    accepted: int = 0
    lost: list[str] = field(default_factory=list)
    lost_late: list[str] = field(default_factory=list)
    """The lost ones that no gateway had to accept any more."""
    unnamed: list[str] = field(default_factory=list)
    """The lost ones that no gateway names in its log."""
    twice: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    """Jobs that have ended in the store, and no event said so."""
    disordered: list[str] = field(default_factory=list)
    repeated_ends: list[str] = field(default_factory=list)
    resolved: int = 0
    """Actions of unknown outcome that a person decided."""
    sentinel_s: float | None = None
    """From the fault until a majority of all sentinels names another primary."""
    step_s: float | None = None
    """From the fault until a tool receives the first command after that."""
    once_s: float | None = None
    """The same of a tool without a memory."""
    paused_s: float = 0.0
    """The longest time, until the repair, in which no tool received a command."""
    notes: list[str] = field(default_factory=list)

    def faults(self, *, replicated: bool = False) -> dict[str, list[str]]:
        """Return what must not be, by its kind."""
        found = {
            "done twice": self.twice,
            "without end": self.stuck,
            "end not published": self.untold,
            "events out of order": self.disordered,
            "lost": self.lost if replicated else self.lost_late,
            "lost and not named in a log": self.unnamed,
            "ended again under another id": self.repeated_ends if replicated else [],
            "not working": self.notes,
        }
        if self.fault.forgets:
            found = {"without end": self.stuck, "not working": self.notes}
        return {kind: jobs for kind, jobs in found.items() if jobs}


class Campaign:
    """Runs faults on a plant under jobs; `rounds` are their outcomes."""

    def __init__(self, plant: Plant, report: Callable[[Round], None] = lambda _: None) -> None:
        self.rounds: list[Round] = []
        self._plant = plant
        self._report = report
        self._judged: set[str] = set()
        self._twice: set[tuple[str, str]] = set()
        self._forgotten: dict[str, Round] = {}
        """The jobs that were ordered before a store forgot all it had, with that round."""

    def run(self, faults: Sequence[Fault]) -> None:
        """Inject each fault once."""
        lanes = self._plant.start_lanes(LANES)
        for fault in faults:
            self.rounds.append(self._live_through(fault))
            self._report(self.rounds[-1])
        self._plant.over.set()
        for lane in lanes:
            lane.join(30)

    def _live_through(self, fault: Fault) -> Round:
        plant = self._plant
        outcome = Round(fault)
        self._until_settled(outcome)
        self._until_flowing(outcome)
        offsets = [gateway.log.stat().st_size for gateway in plant.gateways]
        scene = scene_of(plant)
        readies = scene.publisher.readies
        began, waited_s = time.monotonic(), _waited_s()
        try:
            fault.prepare(scene)
            began, waited_s = time.monotonic(), _waited_s()
            fault.inject(scene)
        except AssertionError as error:
            outcome.notes.append(str(error))
        if fault.fails_over:
            self._measure_failover(outcome, scene.primary, began)
        lasts_s = fault.lasts_s * plant.chance.uniform(*_VARIED)
        time.sleep(max(0.0, began + lasts_s - time.monotonic()))
        if fault.restarts_gateway:
            self._until(outcome, lambda: scene.publisher.readies > readies, "the gateway is ready", RESTARTS_S)
        self._check_pause(outcome, began, waited_s)
        repair(plant)
        self._until_settled(outcome)
        self._until_flowing(outcome)
        self._judge(outcome, offsets, self._may_lose_until(fault, scene.primary, began))
        return outcome

    def _check_pause(self, outcome: Round, began: float, waited_s: float) -> None:
        """Compare the longest time since the fault in which no tool received a command with what is allowed.

        The time in which programs waited for a processor of a busy machine is allowed, too.
        """
        starts = sorted(at for tool in self._plant.tools for at in list(tool.starts) if at > began)
        instants = [began, *starts, time.monotonic()]
        outcome.paused_s = max(after - before for before, after in itertools.pairwise(instants))
        if outcome.paused_s > outcome.fault.pauses_s + _waited_s() - waited_s:
            outcome.notes.append(f"no command for {outcome.paused_s:.2f} s")

    def _may_lose_until(self, fault: Fault, old: DataNode, began: float) -> float:
        """Return the instant until which an accepted job may be lost."""
        if not fault.from_promotion:
            return began + fault.loses_until_s
        roles = {name: changes for name, changes in self._plant.line.watch.roles.items() if name != old.name}
        promotions = (at for changes in roles.values() for at, role in changes if at > began and role == "master")
        return min(promotions, default=began) + fault.loses_until_s

    def _until(self, outcome: Round, condition: Callable[[], object], what: str, deadline: float) -> None:
        """Wait for a condition; note it when it does not come true in time."""
        try:
            wait_for(condition, what, deadline)
        except AssertionError as error:
            outcome.notes.append(str(error))

    def _until_settled(self, outcome: Round) -> None:
        self._until(outcome, self._plant.line.settled, "one primary and its replicas", SETTLES_S)

    def _until_flowing(self, outcome: Round) -> None:
        """Wait until a job that is ordered now has ended."""
        began = time.monotonic()
        mes = self._plant.mes
        job_id = self._plant.order()
        if not mes.wait(lambda: mes.has_ended(job_id), SETTLES_S):
            outcome.notes.append(f"{job_id} does not end within {time.monotonic() - began:.0f} s of a settled line")

    def _measure_failover(self, outcome: Round, old: DataNode, began: float) -> None:
        """Wait until another node is named, and until the next command of a job reaches a tool."""
        self._until(outcome, lambda: self._named_after(old, began), "another primary", 30)
        named = self._named_after(old, began)
        if named is None:
            return
        outcome.sentinel_s = named - began
        if not outcome.fault.serves:
            return
        lists = [tool.starts for tool in self._plant.tools]
        self._until(outcome, lambda: _first_after(named, lists), "a next step", 30)
        if step := _first_after(named, lists):
            outcome.step_s = step - began
            # Also a work whose beginning must be on a replica, with those that are left.
            self._until(outcome, lambda: self._plant.mes.ends_after(step), "an end before the repair", 30)
            once = [tool.starts for tool in self._plant.tools if not tool.remembers]
            self._until(outcome, lambda: _first_after(named, once), "a next step of a tool without memory", 30)
            outcome.once_s = (_first_after(named, once) or math.inf) - began

    def _named_after(self, old: DataNode, began: float) -> float | None:
        """Return when a majority had named another node since the fault."""
        line = self._plant.line
        for node in line.nodes:
            instants = sorted(
                min(at for at, address in changes if at > began and address == str(node.address))
                for changes in line.watch.named.values()
                if any(at > began and address == str(node.address) for at, address in changes)
            )
            if node is not old and len(instants) >= line.quorum:
                return instants[line.quorum - 1]
        return None

    def _judge(self, outcome: Round, offsets: list[int], may_lose_until: float) -> None:
        plant = self._plant
        accepted = plant.mes.accepted()
        open_jobs = [job for job in accepted if job not in self._judged]
        outcome.accepted = len(open_jobs)
        self._until_ended(outcome, open_jobs)
        outcome.lost = [job for job in open_jobs if self._state(job) is None]
        plant.lost.update(outcome.lost)
        outcome.lost_late = [job for job in outcome.lost if accepted[job] > may_lose_until + LATENESS_S]
        named = {
            job
            for gateway, offset in zip(plant.gateways, offsets, strict=True)
            for record in gateway.records(offset)
            if record["event"] == "accepted jobs lost in a failover"
            for job in record["accepted_seconds_ago"]
        }
        outcome.unnamed = [job for job in outcome.lost if job not in named]
        self._judge_works(outcome)
        for job in open_jobs:
            self._judge_events(outcome, job)
        self._judged.update(open_jobs)

    def _judge_works(self, outcome: Round) -> None:
        """Count each work that was done twice to the round that caused it."""
        if outcome.fault.forgets:
            # The MES may repeat any of these calls later: to the empty store it is a new one.
            self._forgotten = dict.fromkeys(self._plant.mes.orders.copy(), outcome) | self._forgotten
        for tool in self._plant.tools:
            for (job, action), count in tool.works().items():
                if count > 1 and (job, action) not in self._twice:
                    self._twice.add((job, action))
                    cause = self._forgotten.get(job, outcome)
                    cause.twice.append(f"{job} {action} ({tool.name}, {count} times)")

    def _judge_events(self, outcome: Round, job: str) -> None:
        states = self._plant.mes.states(job)
        if job in (*outcome.lost, *outcome.stuck, *outcome.untold):
            return
        if states.count("Ended") > 1:
            outcome.repeated_ends.append(job)
        if [state for state, _ in itertools.groupby(states)] != STATES:
            outcome.disordered.append(f"{job} {states}")

    def _until_ended(self, outcome: Round, jobs: list[str]) -> None:
        """Wait for the ends of the jobs that the store knows; a person decides what is unknown."""
        mes = self._plant.mes
        end = time.monotonic() + ENDS_S
        waiting = jobs
        while time.monotonic() < end:
            waiting = [job for job in jobs if not mes.has_ended(job) and self._state(job) is not None]
            if mes.wait(functools.partial(self._have_ended, waiting), _PROGRESS_S):
                return
            for job in waiting:
                outcome.resolved += not mes.has_ended(job) and self._decide(job)
        silent = [job for job in waiting if not mes.has_ended(job)]
        outcome.untold = [job for job in silent if self._state(job) == "ENDED"]
        outcome.stuck = [job for job in silent if job not in outcome.untold]

    def _have_ended(self, jobs: list[str]) -> bool:
        return all(map(self._plant.mes.has_ended, jobs))

    def _state(self, job: str) -> str | None:
        try:
            return self._plant.stored_state(job)
        except RedisError:
            return "unknown"

    def _decide(self, job: str) -> bool:
        """Decide about the action without a known outcome by what the tool has done."""
        (press,) = [tool for tool in self._plant.tools if not tool.remembers]
        works = press.works()
        return any(
            self._plant.mes.resolve(job, action, "done" if works[job, action] else "repeat") for action in ONCE_ACTIONS
        )


def _waited_s() -> float:
    """Return for how long some program has waited for a processor since the start of this machine (PSI of Linux)."""
    try:
        return int(_PRESSURE.read_text().partition("total=")[2].split()[0]) / 1e6
    except OSError:
        return 0.0


def _first_after(instant: float, lists: list[list[float]]) -> float | None:
    """Return the first instant after another one."""
    return min((at for item in lists for at in list(item) if at > instant), default=None)
