"""The replicas that a planned switch-over may promote, and why it is refused."""

import pytest
from msgspec.structs import replace

from edge.foundation.errors import Refused
from edge.store.server_check import MemoryUsage
from edge.store.store_state import FenceState, PrimaryState, ReplicaState, StoreState
from edge.store.switch_over import NotLinked, candidates_of

FIRST, SECOND, THIRD = "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"


def replica(address: str, priority: int = 100) -> ReplicaState:
    return ReplicaState(
        address=address,
        error="",
        is_linked=True,
        is_down=False,
        lag_bytes=0,
        lag_s=0.0,
        has_aof=True,
        clock_s=0.0,
        priority=priority,
    )


PRIMARY = PrimaryState(
    address=FIRST,
    error="",
    server="Redis 7.0.15",
    config_epoch=1,
    is_primary=True,
    has_aof=True,
    clock_s=0.0,
    memory=MemoryUsage(0, 0),
)
SOUND = StoreState(
    durability="required", primary=PRIMARY, replicas=(replica(SECOND), replica(THIRD)), fence=FenceState(1.0)
)


def test_candidates_are_the_replicas_or_the_named_one() -> None:
    assert [replica_state.address for replica_state in candidates_of(SOUND, "")] == [SECOND, THIRD]
    assert [replica_state.address for replica_state in candidates_of(SOUND, THIRD)] == [THIRD]


@pytest.mark.parametrize(
    ("state", "to", "reason"),
    [
        (replace(SOUND, fence=None), "", "names a single server"),
        (replace(SOUND, fence=FenceState(0.0, "two sentinels are silent")), "", "not confirmed: two sentinels"),
        (replace(SOUND, primary=replace(PRIMARY, error="refused")), "", "not confirmed: refused"),
        (SOUND, FIRST, "is the primary already"),
        (SOUND, "10.0.0.9:6379", "is not a replica that can be promoted"),
        (replace(SOUND, replicas=(replica(SECOND, 0),)), "", "no replica can be promoted"),
        (replace(SOUND, replicas=(replica(SECOND, 0),)), SECOND, "is not a replica that can be promoted"),
        (replace(SOUND, replicas=(replica(SECOND, 1), replica(THIRD))), THIRD, "would prefer a replica of priority 1"),
        (replace(SOUND, replicas=(replace(replica(SECOND), error="silent"),)), "", "does not answer: silent"),
        (replace(SOUND, replicas=(replace(replica(SECOND), is_linked=False),)), "", "has no link to the primary"),
        (replace(SOUND, replicas=(replace(replica(SECOND), is_down=True),)), "", "has no link to the primary"),
        (replace(SOUND, replicas=(replace(replica(SECOND), lag_bytes=2_000_000),)), "", "lags behind by 2.0 MB"),
        (replace(SOUND, replicas=(replace(replica(SECOND), has_aof=False),)), "", "keeps no append-only file"),
    ],
)
def test_switch_over_that_would_lose_is_refused(state: StoreState, to: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        candidates_of(state, to)


def test_former_primary_with_another_history_is_not_linked_yet() -> None:
    """It was refused for its lag; a moment later it copies what it missed."""
    former = replace(replica(SECOND), is_linked=False, lag_bytes=2_000_000)
    with pytest.raises(NotLinked):
        candidates_of(replace(SOUND, replicas=(former,)), "")


def test_replica_without_append_only_file_is_taken_with_any_durability() -> None:
    state = replace(SOUND, durability="any", replicas=(replace(replica(SECOND), has_aof=False),))
    assert [replica_state.address for replica_state in candidates_of(state, "")] == [SECOND]
