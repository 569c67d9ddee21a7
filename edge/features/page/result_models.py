"""The data of the HTTP API about the results of a job, their traces and files."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from edge.model.result_part import ResultPart


class ResultValue(Struct, frozen=True, kw_only=True):
    """A value of a result; `name` is its path in the result, `unit` is empty without one."""

    name: str
    value: Any
    unit: str = ""


class TraceLine(Struct, frozen=True, kw_only=True):
    """A stored trace: the hash names it, `channels` are the names of its curves."""

    sha256: str
    size: int
    points: int
    channels: tuple[str, ...]


class FileLine(Struct, frozen=True, kw_only=True):
    """A stored file that equipment offered with a result, such as an image: the hash names it."""

    sha256: str
    size: int
    media_type: str


class ResultLine(Struct, frozen=True, kw_only=True):
    """The result of one attempt at an action: its first values, its traces and files; `late` came after its end.

    `parts` are the joinings of a batch, or the spindles of a tool; `values` are then those of the whole.
    """

    action: str
    step: str
    attempt: int
    state: str
    late: bool
    ended_at: datetime | None
    values: tuple[ResultValue, ...]
    parts: tuple[ResultPart, ...]
    traces: tuple[TraceLine, ...]
    files: tuple[FileLine, ...]


class ResultList(Struct, frozen=True, kw_only=True):
    """The newest results of a job, in the order of their ends."""

    job_order_id: str
    results: tuple[ResultLine, ...]
