"""The data of the HTTP API about flows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct


class FlowSummary(Struct, frozen=True, kw_only=True):
    """A flow in short: `ended` counts its cycles by their outcome, `missed` those that did not run in time."""

    id: str
    status: str
    reason: str
    last_cycle: int | None
    in_cycle: bool
    next_at: datetime | None
    ended: Mapping[str, int]
    missed: int


class FlowList(Struct, frozen=True, kw_only=True):
    """The flows of the store by their ids; `enabled` is false where this gateway runs none."""

    enabled: bool
    flows: tuple[FlowSummary, ...]


class FlowNodeLine(Struct, frozen=True, kw_only=True):
    """A node of a cycle: `output` is JSON, shortened when it is long; `progress` is a percentage."""

    node: str
    status: str
    attempts: int
    progress: int
    worker: str
    message: str
    reason: str
    output: str


class FlowCycle(Struct, frozen=True, kw_only=True):
    """One cycle of a flow with its nodes."""

    number: int
    status: str
    at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    owner: str
    nodes: tuple[FlowNodeLine, ...]


class CycleLine(Struct, frozen=True, kw_only=True):
    """One of the last cycles in short."""

    number: int
    status: str
    at: datetime | None
    took_ms: int | None
    failed: tuple[str, ...]


class FlowDetail(Struct, frozen=True, kw_only=True):
    """A flow with one of its cycles, and its last cycles; `config` is its document."""

    flow: FlowSummary
    components: tuple[tuple[str, ...], ...]
    cycle: FlowCycle | None
    cycles: tuple[CycleLine, ...]
    config: Mapping[str, Any]


class FlowChangeBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a change of a flow; `node` or `component` narrow what is terminated."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
    node: Annotated[str, Meta(max_length=255)] = ""
    component: Annotated[int, Meta(ge=0, le=10_000)] | None = None
