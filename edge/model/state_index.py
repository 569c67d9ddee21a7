"""The index of the states of all jobs of a scope, as MicroDCS publishes it."""

from datetime import datetime

import msgspec

from edge.model.isa95 import State


class StateIndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a job; `has_result`: its response is retained on its result topic."""

    job_order_id: str
    state: tuple[State, ...]
    has_result: bool = False


class StateIndex(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of a scope; `seq` grows by one with each published index, on all instances."""

    seq: int
    scope: str
    published_at: datetime
    jobs: tuple[StateIndexEntry, ...]
