"""Node tasks as they are stored, and the messages about them between gateways and workers.

The store has one JSON text for each, and one more for a large output.
"""

from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.features.flows.cycle import AttemptCompleted, AttemptFailed, AttemptInterrupted, NodeStatus, NodeTask, Outcome
from edge.features.flows.nodes.kind import Output, Withheld
from edge.foundation.text import Text

LARGEST_INLINE: Final = 65_536
"""In bytes of JSON; a larger output is stored apart."""


class _TaskForm(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON of a node task; `output_bytes` is the size of an output that is stored apart.

    `text` is the reason in each language. `queued` is a pending task whose attempt waits for a worker; a worker that
    takes it makes it running.
    """

    flow_id: str
    cycle: int
    node_id: str
    status: NodeStatus
    output: Any = None
    output_bytes: int | None = None
    withheld: Withheld | None = None
    reason: str | None = None
    text: Text | None = None
    attempts: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    memory: Any = None
    queued: bool = False


class TaskTexts(Struct, frozen=True):
    """The texts of a node task; `output` is that of a large output, else None."""

    task: str
    output: str | None


def encode(flow_id: str, cycle: int, node_id: str, task: NodeTask) -> TaskTexts:
    """Encode a node task."""
    output = msgspec.json.encode(task.output)
    large = len(output) > LARGEST_INLINE
    form = _TaskForm(
        flow_id=flow_id,
        cycle=cycle,
        node_id=node_id,
        status=task.shown_status,
        output=None if large or task.output is None else msgspec.Raw(output),
        output_bytes=len(output) if large else None,
        withheld=task.withheld,
        reason=None if task.reason is None else str(task.reason),
        text=task.reason if isinstance(task.reason, Text) else None,
        attempts=task.attempts,
        started_at=task.started_at,
        ended_at=task.ended_at,
        memory=task.memory,
        queued=task.shown_status is not task.status,
    )
    return TaskTexts(msgspec.json.encode(form).decode(), output.decode() if large else None)


def as_taken(text: str) -> str:
    """Return a queued node task as running: a worker has taken it; any other is unchanged."""
    form = msgspec.json.decode(text, type=_TaskForm)
    if not form.queued:
        return text
    return msgspec.json.encode(replace(form, status=NodeStatus.RUNNING, queued=False)).decode()


def has_large_output(text: str) -> bool:
    """Return whether the output of a node task is stored apart."""
    return msgspec.json.decode(text, type=_TaskForm).output_bytes is not None


def decode(text: str, output: str | None) -> NodeTask:
    """Decode a node task; `output` is the text of its large output, None without one."""
    form = msgspec.json.decode(text, type=_TaskForm)
    return NodeTask(
        status=NodeStatus.RUNNING if form.queued else form.status,
        output=msgspec.json.decode(output) if output else form.output,
        withheld=form.withheld,
        reason=form.text or form.reason,
        attempts=form.attempts,
        started_at=form.started_at,
        ended_at=form.ended_at,
        memory=form.memory,
        awaits_worker=form.queued,
    )


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
    """The end of an attempt: its value and memory, or the reason of its failure; `text` is that in each language."""

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
    text: Text | None = None


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
    reason: str | Text = "",
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
        reason=str(reason),
        text=reason if isinstance(reason, Text) else None,
    )


def outcome_of(result: TaskResult) -> Outcome:
    """Return the outcome of a result for the cycle."""
    match result.kind:
        case ResultKind.COMPLETED:
            return AttemptCompleted(
                result.node_id, Output(result.value, withheld=result.withheld, memory=result.memory)
            )
        case ResultKind.FAILED:
            return AttemptFailed(result.node_id, result.text or result.reason)
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
