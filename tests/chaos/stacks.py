"""Describes what a process waits for: the stack of each task, and the state of each MQTT session."""

import asyncio
import gc
import inspect
from collections.abc import Iterator
from typing import Any

from edge.links.mqtt import MqttSession


def tasks_of(loop: asyncio.AbstractEventLoop) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the stack of each task of a loop, the innermost frame last."""
    for task in sorted(asyncio.all_tasks(loop), key=asyncio.Task.get_name):
        yield task.get_name(), list(_frames_of(task.get_coro()))


def _frames_of(awaited: Any) -> Iterator[str]:
    """Yield each frame that waits; `Task.get_stack` has only the outermost one."""
    while awaited is not None:
        kind = next((text for text in ("cr", "gi", "ag") if hasattr(awaited, f"{text}_frame")), None)
        if kind is None:
            # A step of an asynchronous generator, or of a future, has no attribute that names it.
            referents = gc.get_referents(awaited)
            yield from (repr(referent) for referent in referents if asyncio.isfuture(referent))
            awaited = next(filter(inspect.isasyncgen, referents), None)
            continue
        if frame := getattr(awaited, f"{kind}_frame"):
            yield f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")


def sessions_of(loop: asyncio.AbstractEventLoop) -> Iterator[str]:
    """Yield the state of each MQTT session that runs in a loop."""
    for task in asyncio.all_tasks(loop):
        session = next((value for value in _owners_of(task.get_coro()) if isinstance(value, MqttSession)), None)
        if session is not None and task.get_name().startswith("mqtt connection "):
            # What the broker waits for is private; only a report of a standstill reads it.
            unacknowledged = sorted(session._unacknowledged)  # noqa: SLF001
            queues = {item.topic_filter: item._queue for item in session._subscriptions}  # noqa: SLF001
            waiting = {topic_filter: queue.qsize() for topic_filter, queue in queues.items()}
            yield (
                f"{session._broker.client_id}: connected {session.connected}, connection {session.connection_count}, "  # noqa: SLF001
                f"failure {session.failure!r}, refused {session.refused()}, unacknowledged {unacknowledged}, "
                f"waiting {waiting}"
            )


def _owners_of(awaited: Any) -> Iterator[object]:
    """Yield the object of each method that waits."""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield frame.f_locals.get("self")
        awaited = awaited.cr_await
