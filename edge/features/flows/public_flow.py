"""A flow as `--json`, the HTTP API and the answers to the MES state it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from edge.foundation.text import labels
from edge.model.instant import Instant


class PublicFlow(Struct, frozen=True, kw_only=True):
    """A flow in short: `ended` counts its cycles by their outcome, `missed` those that did not run in time.

    `reason` is why it was stopped; `last_cycle` is null before the first one.

    Example: {"id": "press-mean", "status": "running", "reason": "", "last_cycle": 41,
     "last_at": "2026-11-26T16:42:00.000Z", "in_cycle": false, "next_at": "2026-11-26T16:43:00.000Z",
     "created_at": "2026-11-26T16:01:05.385Z", "ended": {"completed": 42}, "missed": 0}
    """

    id: str
    status: str
    reason: str
    last_cycle: int | None
    last_at: Instant | None
    in_cycle: bool
    next_at: Instant | None
    created_at: Instant
    ended: Mapping[str, int]
    missed: int


class PublicNode(Struct, frozen=True, kw_only=True):
    """A node of a cycle: `progress` is a percentage, `worker` the one that runs it.

    An `output` of more than 64 KiB of JSON is `{"ref": "…", "bytes": …}`. With `hidden` the output, `message` and the
    `reason` of a failure are left out: they have values of a tag that the role of the caller may not read.
    """

    node: str
    status: str
    attempts: int
    progress: int
    worker: str
    message: str
    reason: str
    output: Any
    started_at: Instant | None
    ended_at: Instant | None
    hidden: bool = False


class PublicCycle(Struct, frozen=True, kw_only=True):
    """One cycle of a flow with its nodes, and their number by status; `owner` is the gateway that runs it."""

    number: int
    status: str
    at: Instant
    started_at: Instant
    ended_at: Instant | None
    owner: str
    nodes: tuple[PublicNode, ...]
    statistics: Mapping[str, int]


class PublicCycleSummary(Struct, frozen=True, kw_only=True):
    """One of the last cycles in short; `failed` are its nodes that failed."""

    number: int
    status: str
    at: Instant
    took_seconds: float | None
    failed: tuple[str, ...]


class PublicFlowDetail(Struct, frozen=True, kw_only=True):
    """A flow with one of its cycles, and its last cycles; `config` is its document.

    `components`, `entry_nodes` and `order` are empty for a flow whose node kinds are not installed.
    """

    flow: PublicFlow
    components: tuple[tuple[str, ...], ...]
    entry_nodes: tuple[str, ...]
    order: tuple[tuple[str, ...], ...]
    cycle: PublicCycle | None
    cycles: tuple[PublicCycleSummary, ...]
    config: Mapping[str, Any]


def word_of(word: str, language: str) -> str:
    """Return a word of programs, such as `timeout`, as the pages say it in a language; another text as it stands."""
    return labels(language).get(f"flow.{word}", word)
