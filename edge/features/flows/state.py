"""The stored records of flows and cycles, and the port to them: one decision is one atomic change."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from edge.features.flows.cycle import Cycle, CycleStatus
from edge.features.flows.node_task import QueuedTask, ReceivedResult, WorkerProgress
from edge.foundation.text import Text


class FlowStatus(StrEnum):
    """The states of a flow."""

    REGISTERED = "registered"
    RUNNING = "running"
    STOPPED = "stopped"
    COMPLETED = "completed"


class FlowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A flow with its state; instants are milliseconds since the epoch.

    `document` is its JSON. `next_at` is when its next cycle is due, None while none is. `in_cycle` says that its last
    cycle is running. `ended` counts its cycles by their outcome; `missed` counts those that did not run in time.
    `memory` is what its nodes remember for the next cycle; `reason` is why it was stopped. Cycles
    before `first_kept` were removed; `cycle_bytes` is about what a cycle takes in the store.
    """

    flow_id: str
    document: str
    created_at: int
    status: FlowStatus = FlowStatus.REGISTERED
    last_cycle: int = -1
    last_at: int | None = None
    next_at: int | None = None
    in_cycle: bool = False
    resume_at: int | None = None
    followed_step: tuple[int, int] | None = None
    ended: Mapping[CycleStatus, int] = {}
    missed: int = 0
    memory: Mapping[str, Any] = {}
    reason: str | Text = ""
    first_kept: int = 0
    cycle_bytes: int = 0
    revision: int = 1


class CycleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A cycle with the gateway that runs it; `document` is the flow as it was when the cycle began.

    `started_at` is later than `cycle.at` where the cycle began late.
    """

    cycle: Cycle
    document: str
    owner: str
    started_at: int
    ended_at: int | None = None
    revision: int = 1


class KeptAnswer(Struct, frozen=True):
    """The answer of equipment to the command of an attempt at a node; `error` is set when it failed."""

    attempt: int
    data: Any = None
    error: str | None = None


RecordT = TypeVar("RecordT", FlowRecord, CycleRecord)


class Written(Struct, Generic[RecordT], frozen=True):
    """A record before a change, None for a new one, and after the change."""

    before: RecordT | None
    after: RecordT


class FlowChange(Struct, frozen=True):
    """The write of one decision to a flow and its last cycle.

    `expired` are the numbers of cycles that are removed with their node tasks. A process that does not run the cycle
    announces its decision; the gateway that runs the cycle then reads it again. `queued` are tasks for workers; `taken`
    are the entries of their results that this decision has taken.
    """

    flow: Written[FlowRecord] | None = None
    cycle: Written[CycleRecord] | None = None
    expired: tuple[int, ...] = ()
    announced: bool = False
    queued: tuple[QueuedTask, ...] = ()
    taken: tuple[str, ...] = ()


class FlowState(Protocol):
    """The store of flows, cycles and node tasks. Every call raises Unavailable while the store is unavailable."""

    async def load_flow(self, flow_id: str) -> FlowRecord | None:
        """Return a flow; None when there is none."""
        ...

    async def flow_ids(self) -> list[str]:
        """Return the ids of all flows, sorted."""
        ...

    async def revisions(self) -> Mapping[str, int]:
        """Return the revision of each flow by its id."""
        ...

    async def load_cycle(self, flow: FlowRecord, number: int) -> CycleRecord | None:
        """Return a cycle of a flow; None when it is not stored. An expired node task has the state registered."""
        ...

    async def progress(self, cycle: Cycle) -> Mapping[str, WorkerProgress]:
        """Return the progress of the running nodes of a cycle that workers have begun."""
        ...

    async def answers(self, cycle: Cycle) -> Mapping[str, KeptAnswer]:
        """Return the answers of equipment to running nodes of a cycle that were stored before the nodes ended."""
        ...

    async def commit(self, change: FlowChange) -> bool:
        """Write a change; return False without a write when a stored record has changed since it was read."""
        ...

    async def delete(self, flow: FlowRecord) -> bool:
        """Remove a flow with all its data; return False when its stored record has changed since it was read."""
        ...

    async def due(self, now: int, limit: int) -> list[str]:
        """Return the flows whose next cycle is due, the longest overdue first."""
        ...

    async def next_due(self) -> int | None:
        """Return the earliest instant at which a cycle is due."""
        ...

    async def running(self) -> list[str]:
        """Return the ids of the flows that have a running cycle, sorted."""
        ...

    async def announced(self, position: str) -> tuple[str, list[str]]:
        """Wait a few seconds for announced changes after a position; return the next position and the flows.

        The position to begin with is empty: it skips what was announced before.
        """
        ...

    async def results(self, position: str) -> tuple[str, list[ReceivedResult]]:
        """Wait a few seconds for results of workers after a position; return the next position and the results.

        The position to begin with is empty: it leads to all results that no gateway has taken.
        """
        ...
