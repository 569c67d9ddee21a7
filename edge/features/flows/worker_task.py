"""The messages between gateways and workers: a task and its result."""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from edge.features.flows.cycle import AttemptCompleted, AttemptFailed, AttemptInterrupted, NodeStatus, NodeTask, Outcome
from edge.features.flows.nodes.kind import Output, Withheld


class ResultKind(StrEnum):
    """How an attempt in a worker ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class QueuedTask(Struct, frozen=True, kw_only=True):
    """One attempt at a node, for a worker.

    A flow that was deleted and registered again has the same ids; `started_at` of the node task differs.
    """

    flow_id: str
    cycle: int
    node_id: str
    kind: str
    attempt: int
    started_at: int = 0
    now: int
    config: Any
    inputs: dict[str, Any]
    memory: Any = None
    timeout_ms: int | None = None


class TaskResult(Struct, frozen=True, kw_only=True):
    """The end of an attempt: its value and memory, or the reason of its failure."""

    flow_id: str
    cycle: int
    node_id: str
    attempt: int
    started_at: int = 0
    kind: ResultKind
    value: Any = None
    withheld: Withheld | None = None
    memory: Any = None
    reason: str = ""


class WorkerProgress(Struct, frozen=True, kw_only=True):
    """The worker that runs a task, and the progress that its node reported."""

    worker_id: str
    progress: int = 0
    message: str = ""


class ReceivedResult(Struct, frozen=True):
    """A result with the id of its entry."""

    entry_id: str
    result: TaskResult


def result_of(
    task: QueuedTask,
    kind: ResultKind,
    *,
    value: Any = None,
    withheld: str | None = None,
    memory: Any = None,
    reason: str = "",
) -> TaskResult:
    """Return the result of a task."""
    return TaskResult(
        flow_id=task.flow_id,
        cycle=task.cycle,
        node_id=task.node_id,
        attempt=task.attempt,
        started_at=task.started_at,
        kind=kind,
        value=value,
        withheld=Withheld(withheld) if withheld else None,
        memory=memory,
        reason=reason,
    )


def outcome_of(result: TaskResult) -> Outcome:
    """Return the outcome of a result for the cycle."""
    match result.kind:
        case ResultKind.COMPLETED:
            return AttemptCompleted(
                result.node_id, Output(result.value, withheld=result.withheld, memory=result.memory)
            )
        case ResultKind.FAILED:
            return AttemptFailed(result.node_id, result.reason)
        case ResultKind.INTERRUPTED:
            return AttemptInterrupted(result.node_id)


def is_running_attempt(found: QueuedTask | TaskResult, task: NodeTask) -> bool:
    """Return whether a task or result is that of the running attempt of a node task.

    One of an earlier release has no `started_at`.
    """
    is_same = found.started_at in {0, task.started_at}
    return task.status is NodeStatus.RUNNING and task.attempts == found.attempt and is_same


def encode_task(task: QueuedTask) -> str:
    """Encode a task."""
    return msgspec.json.encode(task).decode()


def decode_task(text: str) -> QueuedTask:
    """Decode a task."""
    return msgspec.json.decode(text, type=QueuedTask)


def encode_result(result: TaskResult) -> str:
    """Encode a result."""
    return msgspec.json.encode(result).decode()


def decode_result(text: str) -> TaskResult:
    """Decode a result."""
    return msgspec.json.decode(text, type=TaskResult)
