"""Decide what to publish again on a new connection, from the index that the broker retains and our own cursor."""

from enum import Enum, auto

from msgspec import Struct


class IndexState(Struct, frozen=True):
    """The number of a state index, and the position of the last change published before it.

    `generation` is that of the store behind Sentinel: in another one the jobs may stand where they stood before.
    """

    seq: int
    position: str
    generation: str = ""


class DueTopics(Enum):
    """The retained topics of jobs that have to be published again."""

    NONE = auto()
    CHANGED = auto()
    """Those of jobs that changed after the position of the broker."""
    ALL = auto()


class RepublishPlan(Struct, frozen=True):
    """What a broker lacks; `events_after` is the position after which status events are published again."""

    events_after: str
    topics: DueTopics
    index: bool


def plan_republish(broker: IndexState, ours: IndexState, *, has_gap: bool) -> RepublishPlan:
    """Return what a broker lacks that retains the index `broker`, where `ours` was published last.

    `has_gap` says that changes after the position of the broker are no longer in the change stream.
    """
    if broker.seq > ours.seq or broker.generation != ours.generation or has_gap:
        # Its index is unknown to us, or it lost more than the change stream covers.
        return RepublishPlan(broker.position, DueTopics.ALL, index=True)
    if broker == ours:
        return RepublishPlan(broker.position, DueTopics.NONE, index=False)
    return RepublishPlan(broker.position, DueTopics.CHANGED, index=True)
