"""A job that a code starts."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct


class ScannedJob(Struct, frozen=True):
    """A job that a code starts: with `work_master` it is stored first. `event_id` identifies the reading."""

    scope: str
    job_order_id: str
    work_master: str
    parameters: Mapping[str, Any]
    event_id: str


StartScanned: TypeAlias = Callable[[ScannedJob], Awaitable[None]]
"""Queues a job that a code starts. Raises Refused when too many jobs wait."""
