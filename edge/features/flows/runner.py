"""Runs one cycle of a flow: decides with each outcome, commits once, then performs what was committed."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.features.flows import decision
from edge.features.flows.attempt import Outside, checked, compute_now, perform
from edge.features.flows.cycle import (
    AttemptCompleted,
    AttemptFailed,
    AttemptInterrupted,
    AttemptStarted,
    Cycle,
    CycleDue,
    CycleStatus,
    NodeStatus,
    Outcome,
    advance,
    inputs_of,
)
from edge.features.flows.keys import node_task_id
from edge.features.flows.node_task import QueuedTask, ReceivedResult, is_running_attempt, outcome_of
from edge.features.flows.nodes.kind import Attempt, NodeError, Output
from edge.features.flows.nodes.outside import action_id
from edge.features.flows.plan import LONGEST_TIMEOUT_S, Plan, PlannedNode, Plans
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, FlowState, KeptAnswer, Written
from edge.foundation.backoff import doubled
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.store.background import retry_while_unavailable

logger = structlog.get_logger(__name__)

_LONGEST_PAUSE_S: Final = 60.0
_NEARLY_FULL: Final = 0.5
"""Used part of the memory of the store from which on few ended cycles are kept."""


class CycleLostError(Exception):
    """The cycle was deleted, or another gateway has taken it over."""


def _empty() -> float:
    return 0.0


async def _unchanged() -> None:
    """Measure nothing: the clock is always current."""


class RunnerContext(Struct, frozen=True):
    """What the runners of a gateway share; `retry_pause_s` doubles with each further attempt at a node.

    `measure_clock` lets the clock follow a step now. It raises Unavailable.

    A task for workers fails when it has not ended `worker_wait_s` after its time limit. When the gateway stops, actions
    that must not run twice have `stop_within_s` to end.
    """

    state: FlowState
    outside: Outside
    plans: Plans
    clock: Clock
    owner: str
    kept_cycles: int = 0
    kept_bytes: int = 32 << 20
    store_fullness: Callable[[], float] = _empty
    retry_pause_s: float = 1.0
    worker_wait_s: float = 300.0
    stop_within_s: float = 3.0
    measure_clock: Callable[[], Awaitable[None]] = _unchanged


class CycleRunner:
    """One running cycle of a gateway."""

    def __init__(self, context: RunnerContext, plan: Plan, flow: FlowRecord, record: CycleRecord) -> None:
        """Run a cycle that is stored already, in `flow` and `record`."""
        self._context = context
        self._plan = plan
        self._flow = flow
        self._record = record
        self._attempts: dict[str, asyncio.Task[None]] = {}
        self._begun: list[str] = []
        self._outcomes: list[Outcome] = []
        self._paused: dict[str, asyncio.TimerHandle] = {}
        self._resumed: frozenset[str] = frozenset()
        """Nodes whose next attempt starts without a pause: a gateway that is killed repeatedly must finish them."""
        self._changed = asyncio.Event()
        self._announced = False
        self._is_stopping = False
        self._taken: list[str] = []

    @classmethod
    async def begin(cls, context: RunnerContext, plan: Plan, flow: FlowRecord) -> "CycleRunner | None":
        """Begin the next cycle of a flow that is due; None when another process was faster.

        Nodes that only compute run in the same decision: a flow of such nodes is one commit.
        """
        begun, record = decision.begin_cycle(flow, plan, context.owner, context.clock())
        runner = cls(context, plan, begun, record)
        cycle = advance(plan, record.cycle, CycleDue(), record.started_at).cycle
        step = runner._decide(cycle, ())
        expired = decision.expired_cycles(
            flow,
            record.cycle.number,
            context.kept_cycles,
            context.kept_bytes,
            is_nearly_full=context.store_fullness() >= _NEARLY_FULL,
        )
        step = replace(step, flow=replace(step.flow, first_kept=flow.first_kept + len(expired)))
        change = FlowChange(
            Written(flow, step.flow),
            Written(None, step.record),
            expired=expired,
            queued=step.queued,
        )
        if not await context.state.commit(change):
            return None
        runner._adopt(step)
        return runner

    @property
    def flow(self) -> FlowRecord:
        """Return the flow as this runner last wrote or read it."""
        return self._flow

    @property
    def record(self) -> CycleRecord:
        """Return the cycle as this runner last wrote or read it."""
        return self._record

    @property
    def has_ended(self) -> bool:
        """Return whether the cycle has ended."""
        return self._record.ended_at is not None

    def look(self) -> None:
        """Read the cycle again: another process changed it or its flow."""
        self._announced = True
        self._changed.set()

    def receive(self, received: ReceivedResult) -> None:
        """Apply the result of a worker; a result of an ended attempt is only removed from the stream."""
        result = received.result
        task = self._record.cycle.tasks.get(result.node_id)
        if received.entry_id in self._taken:
            return
        self._taken.append(received.entry_id)
        if task and is_running_attempt(result, task):
            self._outcomes.append(outcome_of(result))
        self._changed.set()

    async def run(self) -> None:
        """Run the cycle to its end, or until another gateway takes it over."""
        async with TaskGroup() as tasks:
            try:
                self._launch(tasks)
                while not self.has_ended:
                    await self._changed.wait()
                    self._changed.clear()
                    outcomes, self._outcomes = tuple(self._outcomes), []
                    await retry_while_unavailable("flow cycle", partial(self._settle, outcomes))
                    self._launch(tasks)
            except asyncio.CancelledError:
                with contextlib.suppress(Unavailable, CycleLostError, TimeoutError):
                    async with asyncio.timeout(self._context.stop_within_s):
                        await self._let_actions_end()
                raise
            except CycleLostError as lost:
                flow, number = self._record.cycle.flow_id, self._record.cycle.number
                logger.warning("flow cycle lost", flow=flow, cycle=number, reason=str(lost))
            finally:
                for handle in self._paused.values():
                    handle.cancel()
                for attempt in self._attempts.values():
                    attempt.cancel()

    async def _let_actions_end(self) -> None:
        """Wait for the actions that must not run twice and commit their outcomes; no further node starts."""
        self._is_stopping = True
        acting = [
            attempt
            for node, attempt in self._attempts.items()
            if not (kind := self._plan.nodes[node].kind).repeatable and not kind.in_worker
        ]
        if acting:
            await asyncio.wait(acting)
            outcomes, self._outcomes = tuple(self._outcomes), []
            await self._settle(outcomes)

    async def take_over(self) -> None:
        """Resume the cycle of a stopped gateway; its running attempts are interrupted, unless they were answered."""
        answers = await self._context.state.answers(self._record.cycle)
        running = [node for node, task in self._record.cycle.tasks.items() if task.status is NodeStatus.RUNNING]
        self._resumed = frozenset(node for node, task in self._record.cycle.tasks.items() if task.is_active)
        # Workers continue while gateways change.
        self._outcomes += [
            _outcome_of_answer(node, answers[node]) if node in answers else AttemptInterrupted(node)
            for node in running
            if not self._plan.nodes[node].kind.in_worker
        ]
        self._changed.set()
        cycle_record = replace(self._record, owner=self._context.owner, revision=self._record.revision + 1)
        if not await self._context.state.commit(FlowChange(cycle=Written(self._record, cycle_record))):
            raise CycleLostError("another gateway was faster")
        self._record = cycle_record

    async def _settle(self, outcomes: Sequence[Outcome]) -> None:
        """Decide on outcomes and commit, until no other process is faster."""
        if self._announced:
            await self._reload()
        while True:
            step = self._decide(self._record.cycle, outcomes)
            taken = tuple(self._taken)
            cycle = Written(self._record, step.record) if step.record is not self._record else None
            flow = Written(self._flow, step.flow) if step.flow is not self._flow else None
            change = FlowChange(flow, cycle, queued=step.queued, taken=taken)
            if change == FlowChange() or await self._context.state.commit(change):
                self._taken = [text for text in self._taken if text not in taken]
                self._adopt(step)
                return
            await self._reload()

    async def _reload(self) -> None:
        self._announced = False
        number = self._record.cycle.number
        flow = await self._context.state.load_flow(self._record.cycle.flow_id)
        record = await self._context.state.load_cycle(flow, number) if flow else None
        if flow is None or record is None or record.owner != self._context.owner or flow.last_cycle != number:
            raise CycleLostError("it was deleted, or another gateway runs it")
        if flow.followed_step != self._flow.followed_step:
            # Another gateway has moved the schedule to a clock that this one has not measured yet.
            await self._context.measure_clock()
        # What the nodes remember belongs to the begin of the cycle.
        cycle = Cycle(flow.flow_id, number, record.cycle.at, record.cycle.tasks, self._record.cycle.memory)
        self._flow, self._record = flow, replace(record, cycle=cycle)

    def _decide(self, cycle: Cycle, outcomes: Iterable[Outcome]) -> "_Step":
        if self.has_ended:
            return _Step(self._flow, self._record, ())
        now = self._context.clock()
        for outcome in outcomes:
            cycle = advance(self._plan, cycle, outcome, now).cycle
        cycle, launched, queued = self._start_pending(cycle, now)
        # A commit whose reply was lost has begun attempts that were never launched.
        begun = [node for node, task in cycle.tasks.items() if task.status is NodeStatus.RUNNING]
        launched = [node for node in begun if node in launched or node not in self._attempts]
        if cycle == self._record.cycle and cycle.status is CycleStatus.RUNNING:
            return _Step(self._flow, self._record, launched)
        moved = decision.move_cycle(self._flow, self._record, cycle, self._schedule_plan(), now)
        return _Step(*moved, launched, queued)

    def _schedule_plan(self) -> Plan:
        """Return the plan of the flow as it is now: it may have been replaced since the cycle began."""
        found = self._context.plans.of(self._flow.document)
        return found if isinstance(found, Plan) else self._plan

    def _start_pending(self, cycle: Cycle, now: int) -> tuple[Cycle, list[str], tuple[QueuedTask, ...]]:
        """Start every node that may start; nodes that only compute end at once.

        Return those to launch, and the tasks of those that run in workers.
        """
        launched: list[str] = []
        queued: list[QueuedTask] = []
        while pending := [node for node in self._pending(cycle) if node not in launched]:
            for node in pending:
                planned = self._plan.nodes[node]
                begins = AttemptStarted(node, awaits_worker=planned.kind.in_worker)
                cycle = advance(self._plan, cycle, begins, now).cycle
                attempt = self._attempt(cycle, node, now)
                outcome = None if planned.kind.in_worker else compute_now(planned, attempt)
                if planned.kind.in_worker:
                    queued.append(_queued_task(planned, attempt, cycle))
                if outcome is None:
                    launched.append(node)
                else:
                    cycle = advance(self._plan, cycle, outcome, now).cycle
        return cycle, launched, tuple(queued)

    def _pending(self, cycle: Cycle) -> list[str]:
        """Return the nodes to start; one that failed before waits for its pause. A gateway that stops starts none."""
        if self._is_stopping:
            return []
        pending = [node for node, task in cycle.tasks.items() if task.status is NodeStatus.PENDING]
        for node in pending:
            attempts = cycle.tasks[node].attempts
            if attempts and node not in self._paused and node not in self._resumed:
                pause_s = doubled(self._context.retry_pause_s, attempts - 1, _LONGEST_PAUSE_S)
                self._paused[node] = asyncio.get_running_loop().call_later(pause_s, self._changed.set)
        loop_time = asyncio.get_running_loop().time()
        ready = [node for node in pending if node not in self._paused or self._paused[node].when() <= loop_time]
        self._resumed -= set(ready)
        for node in ready:
            self._paused.pop(node, None)
        return ready

    def _attempt(self, cycle: Cycle, node: str, now: int) -> Attempt:
        inputs = inputs_of(self._plan, cycle, node)
        return Attempt(cycle.flow_id, node, cycle.tasks[node].attempts, now, inputs, cycle.memory.get(node))

    def _adopt(self, step: "_Step") -> None:
        """Keep the committed records; cancel the attempts at nodes that have ended or begin again."""
        self._flow, self._record = step.flow, step.record
        for node, attempt in list(self._attempts.items()):
            if self._record.cycle.tasks[node].status is not NodeStatus.RUNNING or node in step.launched:
                attempt.cancel()
                del self._attempts[node]
        self._begun += step.launched

    def _launch(self, tasks: TaskGroup) -> None:
        """Start the attempts that were committed as begun."""
        begun, self._begun = self._begun, []
        cycle = self._record.cycle
        for node in begun:
            attempt = self._attempt(cycle, node, self._context.clock())
            planned = self._plan.nodes[node]
            work = self._await_worker(planned) if planned.kind.in_worker else self._perform(planned, attempt)
            self._attempts[node] = tasks.create_task(work, name=f"flow node {node}")

    async def _perform(self, node: PlannedNode, attempt: Attempt) -> None:
        cycle = self._record.cycle
        task_id = node_task_id(attempt.flow_id, cycle.number, node.id)
        started_at = cycle.tasks[node.id].started_at or 0
        outcome = await perform(node, attempt, action_id(task_id, started_at), self._context.outside)
        # The list may be another one by now.
        self._outcomes.append(outcome)
        self._changed.set()

    async def _await_worker(self, node: PlannedNode) -> None:
        """Wait for as long as a worker may take; its result comes by the store."""
        limit_s = LONGEST_TIMEOUT_S if node.timeout_ms is None else node.timeout_ms / 1000
        await asyncio.sleep(limit_s + self._context.worker_wait_s)
        reason = Text.of("no worker of kind {kind} has run it in time", kind=node.kind.name)
        self._outcomes.append(AttemptFailed(node.id, reason) if node.kind.repeatable else AttemptInterrupted(node.id))
        self._changed.set()


class _Step(Struct, frozen=True):
    """The flow and the cycle after a decision, and the attempts to launch after its commit."""

    flow: FlowRecord
    record: CycleRecord
    launched: Sequence[str]
    queued: tuple[QueuedTask, ...] = ()


def _outcome_of_answer(node: str, answer: KeptAnswer) -> Outcome:
    if answer.error is not None:
        return AttemptFailed(node, answer.error)
    try:
        return AttemptCompleted(node, checked(Output(answer.data)))
    except NodeError as error:
        return AttemptFailed(node, error.text)


def _queued_task(node: PlannedNode, attempt: Attempt, cycle: Cycle) -> QueuedTask:
    return QueuedTask(
        flow_id=attempt.flow_id,
        cycle=cycle.number,
        node_id=node.id,
        kind=node.kind.name,
        attempt=attempt.number,
        started_at=cycle.tasks[node.id].started_at or 0,
        now=attempt.now,
        config=msgspec.to_builtins(node.config),
        inputs=dict(attempt.inputs),
        memory=attempt.memory,
        timeout_ms=node.timeout_ms,
    )
