"""The state index: the retained topic with the state of every job of a scope."""

import functools
from collections.abc import Mapping

import msgspec

from edge.model.instant import utc
from edge.model.isa95 import State
from edge.model.job_message import StateIndex, StateIndexEntry
from edge.model.job_state import JobStatus, has_ended, state_entries
from edge.store.changes import Change
from edge.store.reads import position_key


class JobStates:
    """The state of each job of a scope: as read at a position of the change stream, plus the changes after it."""

    def __init__(self, scope: str, read: Mapping[str, JobStatus], position: str) -> None:
        self._scope = scope
        self._entries = {job_id: _entry(job_id, status) for job_id, status in read.items()}
        self._read_at = position_key(position)

    def apply(self, change: Change) -> None:
        """Apply a change; one before the position of the reading is contained in it."""
        if position_key(change.position) <= self._read_at:
            return
        if change.is_removal:
            self._entries.pop(change.job_order_id, None)
        else:
            self._entries[change.job_order_id] = _entry(change.job_order_id, change.status)

    def index(self, seq: int, now: int) -> StateIndex:
        """Return the index to publish at an instant, in milliseconds since the epoch."""
        published_at = utc(now)
        return StateIndex(seq=seq, scope=self._scope, published_at=published_at, jobs=tuple(self._entries.values()))


def _entry(job_id: str, status: JobStatus) -> StateIndexEntry:
    return StateIndexEntry(job_order_id=job_id, state=_state(status), has_result=has_ended(status))


@functools.cache
def _state(status: JobStatus) -> tuple[State, ...]:
    # There are a dozen statuses and thousands of jobs. In the index the order of the entries names the level.
    return tuple(msgspec.structs.replace(entry, browse_path=None) for entry in state_entries(status))
