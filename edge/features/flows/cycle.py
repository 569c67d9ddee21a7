"""How a cycle moves: from a plan, a cycle and an outcome to the next state of the cycle and the nodes to start."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from edge.features.flows.nodes.kind import Inputs, Output, Withheld
from edge.features.flows.plan import Plan
from edge.foundation.text import Text, stated_in

TIMEOUT: Final = "timeout"
INTERRUPTED: Final = "interrupted"


class NodeStatus(StrEnum):
    """The states of a node task."""

    REGISTERED = "registered"
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TERMINATED = "terminated"
    SKIPPED = "skipped"


class CycleStatus(StrEnum):
    """The states of a cycle."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TERMINATED = "terminated"


class SkipReason(StrEnum):
    """Why a node is skipped; of several reasons the first in this order counts."""

    COMPONENT_STOPPED = "component_stopped"
    DEPENDENCY_FAILED = "dependency_failed"
    SWITCH = "switch"
    UNCHANGED = "unchanged"
    DEPENDENCY_SKIPPED = "dependency_skipped"


_ENDED: Final = frozenset({NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.TERMINATED, NodeStatus.SKIPPED})
_ACTIVE: Final = frozenset({NodeStatus.PENDING, NodeStatus.RUNNING})
_WAITING: Final = frozenset({NodeStatus.REGISTERED, NodeStatus.PENDING})


def reason_in(reason: str | Text, language: str) -> str:
    """Return a reason for a reader of a language; a word of a program or of a person as it stands."""
    return stated_in(reason, language) if isinstance(reason, Text) else reason


class NodeTask(Struct, frozen=True):
    """One node in one cycle; instants are milliseconds since the epoch.

    `reason` is a text in each language, or as it stands a word that programs know, or the words of a person.
    """

    status: NodeStatus = NodeStatus.REGISTERED
    output: Any = None
    withheld: Withheld | None = None
    reason: str | Text | None = None
    attempts: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    memory: Any = None
    awaits_worker: bool = False
    """Whether no worker has taken the attempt that was started: it is shown as pending."""

    def reason_in(self, language: str) -> str:
        """Return the reason for a reader of a language; "" for none."""
        return reason_in(self.reason or "", language)

    @property
    def shown_status(self) -> NodeStatus:
        """Return the status as others see it: an attempt that no worker has taken is pending."""
        return NodeStatus.PENDING if self.status is NodeStatus.RUNNING and self.awaits_worker else self.status

    @property
    def has_ended(self) -> bool:
        """Return whether nothing more happens to this task in its cycle."""
        return self.status in _ENDED

    @property
    def is_active(self) -> bool:
        """Return whether this task runs or is about to."""
        return self.status in _ACTIVE

    @property
    def passed_on(self) -> bool:
        """Return whether its output goes to its successors."""
        return self.status is NodeStatus.COMPLETED and self.withheld is None


class Cycle(Struct, frozen=True):
    """One cycle of a flow, due at an instant, with the task of each node; `memory` is that of the cycles before."""

    flow_id: str
    number: int
    at: int
    tasks: Mapping[str, NodeTask]
    memory: Mapping[str, Any] = {}

    @property
    def status(self) -> CycleStatus:
        """Return running until all tasks have ended; then failed if one failed, else terminated if one was."""
        statuses = {task.status for task in self.tasks.values()}
        if not statuses <= _ENDED:
            return CycleStatus.RUNNING
        if NodeStatus.FAILED in statuses:
            return CycleStatus.FAILED
        return CycleStatus.TERMINATED if NodeStatus.TERMINATED in statuses else CycleStatus.COMPLETED

    @property
    def ended_at(self) -> int:
        """Return the end of the last task, not before the cycle itself."""
        return max([self.at, *(task.ended_at for task in self.tasks.values() if task.ended_at is not None)])

    def remembered(self) -> dict[str, Any]:
        """Return what the nodes remember for the next cycle."""
        new = {node: task.memory for node, task in self.tasks.items() if task.memory is not None}
        return {**self.memory, **new}


class CycleDue(Struct, frozen=True):
    """The cycle begins; the nodes of stopped components, by index, do not start."""

    stopped: frozenset[int] = frozenset()


class AttemptStarted(Struct, frozen=True):
    """An attempt at a node begins, or is queued for a worker."""

    node: str
    awaits_worker: bool = False


class AttemptCompleted(Struct, frozen=True):
    """An attempt ended with its output."""

    node: str
    output: Output


class AttemptFailed(Struct, frozen=True):
    """An attempt failed or took too long; it is repeated while the node has retries left."""

    node: str
    reason: str | Text


class AttemptInterrupted(Struct, frozen=True):
    """The process that ran a node has stopped; the node runs again if its kind allows it."""

    node: str


class NodeTerminated(Struct, frozen=True):
    """A user ended the task of a node."""

    node: str
    reason: str | Text


class ComponentStopped(Struct, frozen=True):
    """A user stopped a component, by index: its nodes that have not started are skipped."""

    component: int


Outcome: TypeAlias = (
    CycleDue
    | AttemptStarted
    | AttemptCompleted
    | AttemptFailed
    | AttemptInterrupted
    | NodeTerminated
    | ComponentStopped
)


class Advance(Struct, frozen=True):
    """A cycle after an outcome, and the nodes to start now, in the order of the plan."""

    cycle: Cycle
    start: tuple[str, ...] = ()


def new_cycle(plan: Plan, number: int, at: int, memory: Mapping[str, Any]) -> Cycle:
    """Return a cycle in which no node has started."""
    return Cycle(plan.id, number, at, dict.fromkeys(plan.nodes, NodeTask()), memory)


def inputs_of(plan: Plan, cycle: Cycle, node: str) -> dict[str, Any]:
    """Return the outputs that the predecessors of a node passed on, by their ids."""
    sources = ((source, cycle.tasks[source]) for source in plan.predecessors[node])
    return {source: task.output for source, task in sources if task.passed_on}


def advance(plan: Plan, cycle: Cycle, outcome: Outcome, now: int) -> Advance:
    """Return the cycle after an outcome and the nodes to start; an outcome that no longer applies changes nothing."""
    match outcome:
        case CycleDue(stopped=stopped):
            return _settle(plan, _skip_components(plan, cycle, stopped), plan.nodes)
        case ComponentStopped(component=component):
            return _settle(plan, _skip_components(plan, cycle, {component}), plan.nodes)
        case AttemptStarted(node=node, awaits_worker=awaits_worker):
            return Advance(_start(cycle, node, now, awaits_worker=awaits_worker))
        case AttemptCompleted(node=node, output=output):
            task = replace(
                cycle.tasks[node],
                status=NodeStatus.COMPLETED,
                output=output.value,
                withheld=output.withheld,
                memory=output.memory,
                ended_at=now,
            )
            return _end(plan, cycle, node, task)
        case AttemptFailed(node=node, reason=reason):
            return _fail(plan, cycle, node, reason, now)
        case AttemptInterrupted(node=node):
            if plan.nodes[node].kind.repeatable:
                return _restart(cycle, node)
            task = replace(cycle.tasks[node], status=NodeStatus.FAILED, reason=INTERRUPTED, ended_at=now)
            return _end(plan, cycle, node, task)
        case NodeTerminated(node=node, reason=reason):
            task = replace(cycle.tasks[node], status=NodeStatus.TERMINATED, reason=reason, ended_at=now)
            return _end(plan, cycle, node, task)
        case _:
            assert_never(outcome)


def _with(cycle: Cycle, tasks: Mapping[str, NodeTask]) -> Cycle:
    return replace(cycle, tasks={**cycle.tasks, **tasks})


def _start(cycle: Cycle, node: str, now: int, *, awaits_worker: bool) -> Cycle:
    task = cycle.tasks[node]
    if task.status is not NodeStatus.PENDING:
        return cycle
    started_at = now if task.started_at is None else task.started_at
    running = replace(
        task,
        status=NodeStatus.RUNNING,
        attempts=task.attempts + 1,
        started_at=started_at,
        awaits_worker=awaits_worker,
    )
    return _with(cycle, {node: running})


def _restart(cycle: Cycle, node: str) -> Advance:
    task = cycle.tasks[node]
    if task.status is not NodeStatus.RUNNING:
        return Advance(cycle)
    return Advance(_with(cycle, {node: replace(task, status=NodeStatus.PENDING)}), (node,))


def _fail(plan: Plan, cycle: Cycle, node: str, reason: str | Text, now: int) -> Advance:
    task = cycle.tasks[node]
    if task.attempts <= plan.nodes[node].retries:
        return _restart(cycle, node)
    return _end(plan, cycle, node, replace(task, status=NodeStatus.FAILED, reason=reason, ended_at=now))


def _end(plan: Plan, cycle: Cycle, node: str, task: NodeTask) -> Advance:
    if cycle.tasks[node].has_ended:
        return Advance(cycle)
    return _settle(plan, _with(cycle, {node: task}), plan.successors[node])


def _skip_components(plan: Plan, cycle: Cycle, stopped: Iterable[int]) -> Cycle:
    nodes = [node for index in stopped if index < len(plan.components) for node in plan.components[index]]
    skipped = NodeTask(NodeStatus.SKIPPED, reason=SkipReason.COMPONENT_STOPPED)
    return _with(cycle, {node: skipped for node in nodes if cycle.tasks[node].status in _WAITING})


def _settle(plan: Plan, cycle: Cycle, candidates: Iterable[str]) -> Advance:
    """Decide for each candidate whose predecessors have ended: it starts, or is skipped and its successors follow."""
    tasks = dict(cycle.tasks)
    start: list[str] = []
    open_nodes = list(candidates)
    for node in open_nodes:
        sources = [tasks[source] for source in plan.predecessors[node]]
        if tasks[node].status is not NodeStatus.REGISTERED or not all(source.has_ended for source in sources):
            continue
        reason = _skip_reason(plan, node, sources)
        if reason is None:
            tasks[node] = replace(tasks[node], status=NodeStatus.PENDING)
            start.append(node)
        else:
            tasks[node] = NodeTask(NodeStatus.SKIPPED, reason=reason)
            open_nodes += plan.successors[node]
    return Advance(replace(cycle, tasks=tasks), tuple(start))


def _skip_reason(plan: Plan, node: str, sources: Iterable[NodeTask]) -> SkipReason | None:
    """Return why a node does not start; None when it does."""
    causes = [_cause(source) for source in sources]
    skip_reasons = [cause for cause in causes if cause is not None]
    joins = plan.nodes[node].kind.inputs is Inputs.JOIN
    if not skip_reasons or (joins and len(skip_reasons) < len(causes)):
        return None
    return min(skip_reasons, key=list(SkipReason).index)


def _cause(source: NodeTask) -> SkipReason | None:
    """Return why a predecessor that has ended keeps its output from a node; None when it passed it on."""
    match source.status:
        case NodeStatus.FAILED | NodeStatus.TERMINATED:
            return SkipReason.DEPENDENCY_FAILED
        case NodeStatus.SKIPPED:
            return SkipReason.DEPENDENCY_SKIPPED
        case _:
            return SkipReason(source.withheld.value) if source.withheld else None
