"""The stored records of a flow and of one of its cycles."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from edge.features.flows.cycle import Cycle, CycleStatus


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
    reason: str = ""
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
