"""Encodes node tasks for the store: one JSON text for each, and one more for a large output."""

from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.features.flows.cycle import NodeStatus, NodeTask
from edge.features.flows.nodes.kind import Withheld

LARGEST_INLINE: Final = 65_536
"""In bytes of JSON; a larger output is stored apart."""


class _TaskForm(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON of a node task; `output_bytes` is the size of an output that is stored apart.

    `queued` is a pending task whose attempt waits for a worker; a worker that takes it makes it running.
    """

    flow_id: str
    cycle: int
    node_id: str
    status: NodeStatus
    output: Any = None
    output_bytes: int | None = None
    withheld: Withheld | None = None
    reason: str | None = None
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
        reason=task.reason,
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
        reason=form.reason,
        attempts=form.attempts,
        started_at=form.started_at,
        ended_at=form.ended_at,
        memory=form.memory,
        awaits_worker=form.queued,
    )
