"""Runs the cycles of a flow in virtual time: nothing is stored, nothing outside is read or changed."""

import contextlib
import heapq
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, assert_never

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict

from edge.features.flows.cycle import (
    TIMEOUT,
    AttemptCompleted,
    AttemptFailed,
    AttemptStarted,
    Cycle,
    CycleDue,
    NodeTerminated,
    Outcome,
    advance,
    inputs_of,
    new_cycle,
)
from edge.features.flows.nodes.kind import Act, Attempt, Compute, NodeError, Output, Read
from edge.features.flows.nodes.outside import Action, LatestValue, Query, SampleWindow
from edge.features.flows.plan import Plan, PlannedNode
from edge.features.flows.ports.tags import SampleHistory
from edge.features.flows.public_flow import PublicCycle
from edge.features.flows.public_form import public_cycle
from edge.features.flows.schedule import first_due, next_due
from edge.features.flows.site_output import checked_output, reason_of
from edge.features.flows.state import CycleRecord
from edge.foundation.text import ENGLISH, Text

TERMINATED: Final = "terminated"

_Pending: TypeAlias = tuple[int, int, str, Outcome | None]
"""An instant, a serial number for order, a node, and what happens to it; None when it starts."""


class TrialInput(Struct, frozen=True):
    """The samples of a trial, and by cycle the components that are stopped and the nodes that are terminated."""

    history: SampleHistory
    stopped: Mapping[int, frozenset[int]] = field(default_factory=dict)
    terminated: Mapping[int, frozenset[str]] = field(default_factory=dict)


def run_trial(plan: Plan, given: TrialInput, cycles: int, start_ms: int) -> Iterator[Cycle]:
    """Yield at most this many cycles, each as it ended; the first is due at the start or after it."""
    at = first_due(plan.schedule, start_ms)
    memory: Mapping[str, Any] = {}
    for number in range(cycles):
        if at is None:
            return
        cycle = _run_cycle(plan, given, new_cycle(plan, number, at, memory))
        yield cycle
        memory = cycle.remembered()
        at = next_due(plan.schedule, at, cycle.ended_at)


def _run_cycle(plan: Plan, given: TrialInput, cycle: Cycle) -> Cycle:
    terminated = given.terminated.get(cycle.number, frozenset())
    pending: list[_Pending] = []
    serial = 0
    step = advance(plan, cycle, CycleDue(given.stopped.get(cycle.number, frozenset())), cycle.at)
    now = cycle.at
    while True:
        for node in step.start:
            heapq.heappush(pending, (now, serial, node, None))
            serial += 1
        cycle = step.cycle
        if not pending:
            return cycle
        now, _, node, outcome = heapq.heappop(pending)
        if outcome is not None:
            step = advance(plan, cycle, outcome, now)
            continue
        step = advance(plan, cycle, AttemptStarted(node), now)
        if node in terminated:
            step = advance(plan, step.cycle, NodeTerminated(node, TERMINATED), now)
            continue
        end, following = _attempt(plan, step.cycle, plan.nodes[node], given.history, now)
        heapq.heappush(pending, (end, serial, node, following))
        serial += 1


def _attempt(plan: Plan, cycle: Cycle, node: PlannedNode, history: SampleHistory, now: int) -> tuple[int, Outcome]:
    """Return when an attempt ends, and how."""
    inputs = inputs_of(plan, cycle, node.id)
    attempt = Attempt(plan.id, node.id, cycle.tasks[node.id].attempts, now, inputs, cycle.memory.get(node.id))
    try:
        output = _work(node, attempt, history)
        msgspec.json.encode(output.value)
    except NodeError as error:
        return now, AttemptFailed(node.id, error.text)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a defect in a kind of the site fails its node
        return now, AttemptFailed(node.id, Text.of("the node met a defect: {reason}", reason=reason_of(error)))
    if node.timeout_ms is not None and output.delay_ms > node.timeout_ms:
        return now + node.timeout_ms, AttemptFailed(node.id, TIMEOUT)
    return now + output.delay_ms, AttemptCompleted(node.id, output)


def _work(node: PlannedNode, attempt: Attempt, history: SampleHistory) -> Output:
    match node.kind.work:
        case Compute(run=run) if node.kind.in_worker:
            # What it prints must not be part of the output of the command, as in a worker.
            with contextlib.redirect_stdout(sys.stderr):
                return checked_output(run(node.config, attempt))
        case Compute(run=run):
            return run(node.config, attempt)
        case Read(query=query):
            return Output(_answer(query(node.config, attempt), history))
        case Act(action=action):
            return Output(describe_action(node.kind.name, action(node.config, attempt)))
        case _:
            assert_never(node.kind.work)


def _answer(query: Query, history: SampleHistory) -> Any:
    match query:
        case LatestValue() | SampleWindow():
            return history.answer(query)
        case _:
            raise NodeError("a trial reads tags only; put a constant node in place of this one")


def describe_action(kind: str, action: Action) -> dict[str, Any]:
    """Return what a node would do, as the output of its trial."""
    return {"would": kind, **asdict(action)}


def public_trial(cycle: Cycle, language: str = ENGLISH) -> PublicCycle:
    """Return the public form of a cycle of a trial, which has no owner, for a reader of a language."""
    record = CycleRecord(cycle=cycle, document="", owner="", started_at=cycle.at, ended_at=cycle.ended_at)
    return public_cycle(record, language=language)
