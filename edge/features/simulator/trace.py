"""The trace of a simulation: the commands that equipment received, the steps, the end of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct

from edge.features.simulator.script import Script
from edge.sfc.compiler import RejectedRecipe
from edge.sfc.intervention import HeldFailure
from edge.sfc.net import Net
from edge.sfc.run import Outcome, Run
from edge.sfc.signal import Ignored, Intervene, Mirrors, Phase, Resolve, StepChange
from edge.sfc.waiting import (
    ActionWaits,
    PersonWaits,
    TransitionWaits,
    Waiting,
    explain_waiting,
    possible_interventions,
    possible_resolutions,
)


class Trace(Struct, frozen=True):
    """The trace of a simulation; times are seconds."""

    commands: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    final: str
    final_by_job: dict[str, str]
    error: str | None
    warnings: list[str]
    end: float | None
    waiting: list[dict[str, Any]] = []
    """What the active steps of jobs wait for that have not ended."""
    verdict_by_job: Mapping[str, str] = {}
    """The verdict of each job that has ended; empty where nothing says it."""
    interventions: list[dict[str, Any]] = []
    """The decisions of persons; `ignored` says why one had no effect."""
    possible_interventions: list[dict[str, Any]] = []
    """What a person could do in the jobs that have not ended."""
    until: float = 0
    """The instant of the last event."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object that `--json` prints."""
        return {
            "commands": self.commands,
            "steps": self.steps,
            "final": self.final,
            "final_by_job": self.final_by_job,
            "error": self.error,
            "warnings": self.warnings,
            "end": self.end,
            "waiting": self.waiting,
            "verdict_by_job": self.verdict_by_job,
            "interventions": self.interventions,
            "possible_interventions": self.possible_interventions,
            "until": self.until,
        }


class TraceRecorder:
    """The recorder of a simulation; its times count from `zero`, an instant in milliseconds."""

    def __init__(self, zero: int = 0) -> None:
        self.zero = zero
        self.commands: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.waiting: list[dict[str, Any]] = []
        self.interventions: list[dict[str, Any]] = []
        self.possible: list[dict[str, Any]] = []
        self._received: dict[str, int] = {}

    def command(self, now: int, job: str, action: str, type_id: str, phase: Phase, attempt: int) -> int:
        """Record a received command; return the number of commands of its type so far, without stops."""
        entry = {"t": (now - self.zero) / 1000, "job": job, "action": action, "type_id": type_id}
        self.commands.append(entry | {"phase": phase.value, "attempt": attempt})
        nth = self._received.get(type_id, 0) + (phase is not Phase.STOP)
        self._received[type_id] = nth
        return nth

    def changes(self, job: str, changes: Sequence[StepChange]) -> None:
        """Record the changes of steps."""
        self.steps += [
            {"t": (change.at - self.zero) / 1000, "job": job, "step": change.step, "active": change.active}
            for change in changes
        ]

    def decided(self, now: int, job: str, decision: Intervene | Resolve, ignored: Ignored | None) -> None:
        """Record the decision of a person, and why it had no effect."""
        entry = {"t": (now - self.zero) / 1000, "job": job, **_decision(decision)}
        self.interventions.append(entry | {"ignored": str(ignored.reason) if ignored else ""})

    def trace(self, runs: Mapping[str, Run], verdicts: Mapping[str, str], now: int) -> Trace:
        """Return the trace, with the final state and the verdict of each run."""
        finals = {name: run.outcome.value for name, run in runs.items()}
        # The worst end of the jobs is the end of the simulation.
        worst = (Outcome.RUNNING, Outcome.FAILED, Outcome.ABORTED, Outcome.STOPPED, Outcome.COMPLETED)
        final = next(outcome.value for outcome in worst if outcome.value in finals.values())
        errors = [
            str(run.error) if len(runs) == 1 else f"{name}: {run.error}" for name, run in runs.items() if run.error
        ]
        ends = [run.ended_at for run in runs.values() if run.ended_at is not None]
        return Trace(
            commands=self.commands,
            steps=self.steps,
            final=final,
            final_by_job=finals,
            error="; ".join(errors) or None,
            warnings=self.warnings,
            end=(max(ends) - self.zero) / 1000 if len(ends) == len(runs) else None,
            waiting=self.waiting,
            verdict_by_job=verdicts,
            interventions=self.interventions,
            possible_interventions=self.possible,
            until=(now - self.zero) / 1000,
        )

    def waits(self, job: str, net: Net, run: Run, now: int, mirrors: Mirrors) -> None:
        """Record what each active step of a job waits for that has not ended, and what a person could do."""
        if run.ended:
            return
        self.possible += [{"job": job, **_decision(item)} for item in possible_interventions(net, run, now)]
        self.possible += [{"job": job, **_decision(item)} for item in possible_resolutions(net, run, now)]
        by_step: dict[str, list[str]] = {
            name: [] for name in sorted(run.active, key=lambda name: net.steps[name].index)
        }
        for item in explain_waiting(net, run, now, mirrors=mirrors):
            for step in _steps_of(item):
                by_step.setdefault(step, []).append(str(item))
        self.waiting += [{"job": job, "step": step, "waits_for": texts} for step, texts in by_step.items()]


def _decision(decision: Intervene | Resolve) -> dict[str, str]:
    match decision:
        case Intervene():
            names = {"action": decision.action, "step": decision.step, "target": decision.target}
            return {"kind": decision.kind.value, **names}
        case Resolve():
            return {"kind": decision.kind, "action": decision.action, "step": "", "target": ""}
        case _:
            assert_never(decision)


def _steps_of(item: Waiting) -> Sequence[str]:
    """Return the steps that wait; an empty name for a job that has not begun or is paused."""
    match item:
        case TransitionWaits(sources=sources) if sources:
            return sources
        case ActionWaits(step=step) | PersonWaits(failure=HeldFailure(step=step)):
            return (step,)
        case _:
            return ("",)


def rejected_at_load(script: Script, rejected: RejectedRecipe) -> Trace:
    """Return the trace of a recipe that the compiler rejects."""
    finals = {job.id: "rejected_at_load" for job in script.jobs}
    return Trace([], [], "rejected_at_load", finals, "; ".join(rejected.faults), [], None)
