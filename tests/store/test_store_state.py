"""The state of a store behind Sentinel, put together from the answers of sentinels and data nodes."""

from typing import Any

import pytest
from msgspec.structs import replace

from edge.store.sentinels import Primary, ReplicaView, SentinelReport, SentinelView
from edge.store.server_check import MemoryUsage
from edge.store.store_state import (
    FenceState,
    NodeReport,
    ProblemKind,
    StoreState,
    byte_count,
    find_problems,
    may_lose,
    state_of,
)

FIRST, SECOND, THIRD = "10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"
WATCHERS = ("10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379")


def view_of(at: int, *replicas: ReplicaView, epoch: int = 4, quorum: int = 2, sentinels: int = 3) -> SentinelView:
    places = {str(n): (f"10.0.0.{n + 1}", 26379) for n in range(sentinels) if n != at}
    return SentinelView(
        sentinel_id=str(at),
        primary=Primary("10.0.0.1", 6379, epoch),
        flags=frozenset({"master"}),
        last_ok_ping_s=0.2,
        down_after_s=2.0,
        failover_timeout_s=60.0,
        quorum=quorum,
        sentinels=sentinels,
        known=places,
        replicas=replicas,
    )


def replica(number: int, *flags: str, priority: int = 100) -> ReplicaView:
    return ReplicaView((f"10.0.0.{number}", 6379), frozenset({"slave", *flags}), priority, 900)


def primary_node(**given: Any) -> NodeReport:
    acknowledged = given.pop("acknowledged", {SECOND: (1000, 1.0), THIRD: (1000, 0.0)})
    return NodeReport(
        address=FIRST, role="master", offset=1000, acknowledged=acknowledged, **{"has_aof": True, **given}
    )


def replica_node(address: str, **given: Any) -> NodeReport:
    fixed = {"role": "slave", "primary": FIRST, "is_linked": True, "offset": 1000, "has_aof": True}
    return NodeReport(address=address, **{**fixed, **given})


CONFIRMED = FenceState(1.2)
HEALTHY = {FIRST: primary_node(), SECOND: replica_node(SECOND), THIRD: replica_node(THIRD)}


def line(
    nodes: dict[str, NodeReport] | None = None,
    *,
    durability: str = "required",
    reports: list[SentinelReport] | None = None,
    fence: FenceState = CONFIRMED,
) -> StoreState:
    replicas = (replica(2), replica(3))
    answered = [SentinelReport(name, view_of(at, *replicas)) for at, name in enumerate(WATCHERS)]
    return state_of(reports or answered, {**HEALTHY, **(nodes or {})}, durability=durability, fence=fence)


def kinds(state: StoreState) -> list[ProblemKind]:
    return [problem.kind for problem in find_problems(state)]


def test_line_that_works_has_no_problem() -> None:
    state = line()
    assert kinds(state) == []
    assert state.primary
    assert (state.primary.address, state.primary.config_epoch) == (FIRST, 4)
    assert [
        (replica_state.address, replica_state.lag_bytes, replica_state.lag_s) for replica_state in state.replicas
    ] == [(SECOND, 0, 1), (THIRD, 0, 0)]
    assert (state.answering, state.quorum, state.majority) == (3, 2, 2)


def test_replicated_line_of_three_nodes_has_no_problem() -> None:
    assert kinds(line(durability="replicated")) == []


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({FIRST: NodeReport(address=FIRST, error="refused")}, [ProblemKind.PRIMARY_AWAY]),
        ({FIRST: replica_node(FIRST)}, [ProblemKind.PRIMARY_AWAY]),
        ({FIRST: primary_node(has_aof=False)}, [ProblemKind.NO_AOF]),
        ({FIRST: primary_node(clock_s=1.2)}, [ProblemKind.CLOCK_DIFFERS]),
        ({FIRST: primary_node(clock_s=0.9)}, []),
        ({THIRD: replica_node(THIRD, is_linked=False)}, [ProblemKind.REPLICA_AWAY]),
        ({THIRD: replica_node(THIRD, primary="10.0.0.9:6379")}, [ProblemKind.REPLICA_AWAY]),
        ({THIRD: replica_node(THIRD, has_aof=False)}, [ProblemKind.NO_AOF]),
        ({THIRD: replica_node(THIRD, clock_s=-60.0)}, [ProblemKind.CLOCK_DIFFERS]),
        ({FIRST: primary_node(acknowledged={SECOND: (1000, 0.0), THIRD: (0, 30.0)})}, [ProblemKind.REPLICA_LAGS]),
    ],
    ids=[
        "primary silent",
        "primary demoted",
        "primary without file",
        "clock ahead",
        "clock near",
        "no link",
        "other primary",
        "replica without file",
        "clock behind",
        "late confirmation",
    ],
)
def test_problem_of_a_data_node_is_found(nodes: dict[str, NodeReport], expected: list[ProblemKind]) -> None:
    assert kinds(line(nodes)) == expected


def test_silent_replica_is_away_although_the_primary_hears_it() -> None:
    """A frozen one counts as confirming for ten seconds; one that we alone do not reach helps no failover."""
    state = line({THIRD: NodeReport(address=THIRD, error="no reply within 1 s")})
    assert not state.replicas[1].is_linked
    (problem,) = find_problems(state)
    assert (problem.kind, str(problem.found)) == (
        ProblemKind.REPLICA_AWAY,
        f"the replica {THIRD} is away: no reply within 1 s",
    )


def test_replica_that_no_sentinel_reaches_is_away() -> None:
    replicas = (replica(2), replica(3, "s_down"))
    reports = [SentinelReport(name, view_of(at, *replicas)) for at, name in enumerate(WATCHERS)]
    (problem,) = find_problems(line(reports=reports))
    assert str(problem.found) == f"the replica {THIRD} is away: no sentinel reaches it"


def test_lag_in_bytes_beyond_the_limit_is_a_problem() -> None:
    behind = primary_node(acknowledged={SECOND: (1000, 0.0), THIRD: (1000, 0.0)})
    nodes = {FIRST: replace(behind, offset=20_000_000)}
    assert kinds(line({**nodes, SECOND: replica_node(SECOND, offset=20_000_000)})) == [ProblemKind.REPLICA_LAGS]


def test_append_only_file_is_of_no_interest_with_durability_any() -> None:
    nodes = {FIRST: primary_node(has_aof=False), SECOND: replica_node(SECOND, has_aof=False)}
    assert kinds(line(nodes, durability="any")) == []


def test_replica_that_is_never_promoted_needs_no_append_only_file() -> None:
    reports = [
        SentinelReport(name, view_of(at, replica(2), replica(3, priority=0))) for at, name in enumerate(WATCHERS)
    ]
    assert kinds(line({THIRD: replica_node(THIRD, has_aof=False)}, reports=reports)) == []


def test_sentinels_that_are_away_are_named() -> None:
    views = [view_of(at, replica(2), replica(3)) for at in range(3)]
    reports = [SentinelReport(WATCHERS[0], views[0]), SentinelReport(WATCHERS[1], views[1])]
    reports.append(SentinelReport(WATCHERS[2], views[2], "it does not answer"))
    (problem,) = find_problems(line(reports=reports))
    assert (problem.kind, problem.subject) == (ProblemKind.SENTINEL_AWAY, f"sentinel {WATCHERS[2]}")
    assert str(problem.found) == "it does not answer"


def test_sentinel_that_was_removed_is_not_shown() -> None:
    reports = [SentinelReport(name, view_of(at, replica(2), replica(3))) for at, name in enumerate(WATCHERS)]
    reports.append(SentinelReport("10.0.0.9:26379", None, "it does not answer"))
    assert kinds(line(reports=reports)) == []


def test_fence_that_is_open_is_the_first_problem() -> None:
    reports = [SentinelReport(name, None, "silent") for name in WATCHERS]
    state = line(reports=reports, fence=FenceState(0.0, "no sentinel answers"))
    assert kinds(state) == [ProblemKind.NO_MAJORITY, *[ProblemKind.SENTINEL_AWAY] * 3]
    assert state.primary is None


@pytest.mark.parametrize(
    ("quorum", "sentinels", "expected"),
    [(1, 3, [ProblemKind.QUORUM]), (2, 2, [ProblemKind.FEW_SENTINELS])],
    ids=["quorum below the majority", "two sentinels"],
)
def test_sentinels_that_cannot_protect_the_line_are_a_problem(
    quorum: int, sentinels: int, expected: list[ProblemKind]
) -> None:
    views = [view_of(at, replica(2), replica(3), quorum=quorum, sentinels=sentinels) for at in range(sentinels)]
    reports = [SentinelReport(name, view) for name, view in zip(WATCHERS, views, strict=False)]
    assert kinds(line(reports=reports)) == expected


def test_replicated_line_of_two_nodes_stops_with_one_of_them() -> None:
    reports = [SentinelReport(name, view_of(at, replica(2))) for at, name in enumerate(WATCHERS)]
    assert kinds(line(durability="replicated", reports=reports)) == [ProblemKind.FEW_NODES]


def test_unequal_priorities_are_a_problem_of_a_replicated_line() -> None:
    replicas = (replica(2, priority=10), replica(3))
    reports = [SentinelReport(name, view_of(at, *replicas)) for at, name in enumerate(WATCHERS)]
    assert kinds(line(durability="replicated", reports=reports)) == [ProblemKind.PRIORITIES]
    assert kinds(line(reports=reports)) == []


def test_line_without_replica_is_a_problem() -> None:
    reports = [SentinelReport(name, view_of(at)) for at, name in enumerate(WATCHERS)]
    assert kinds(line(reports=reports)) == [ProblemKind.REPLICA_AWAY]


def test_single_server_has_neither_fence_nor_replicas() -> None:
    state = state_of((), {FIRST: primary_node(memory=MemoryUsage(1, 2))}, durability="required")
    assert kinds(state) == []
    assert state.primary
    assert (state.primary.config_epoch, state.fence, state.replicas) == (None, None, ())
    assert kinds(state_of((), {FIRST: replica_node(FIRST)}, durability="any")) == [ProblemKind.PRIMARY_AWAY]


def test_each_durability_has_a_sentence_on_its_losses() -> None:
    single = state_of((), {FIRST: primary_node()}, durability="required")
    texts = [may_lose(single), *(may_lose(line(durability=word)) for word in ("required", "replicated", "any"))]
    assert [text.split(" ")[:4] for text in texts] == [
        ["a", "power", "cut", "may"],
        ["a", "failover", "may", "lose"],
        ["nothing", "accepted", "is", "lost"],
        ["a", "failover", "may", "lose"],
    ]
    assert may_lose(state_of((), {FIRST: primary_node()}, durability="any")).startswith("the server may be one that")


def test_losses_of_durability_any_behind_sentinel_name_failover() -> None:
    text = may_lose(line(durability="any"))
    assert [word in text for word in ("a failover may lose", "a partition", "a full memory")] == [True] * 3


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1500, "1.5 kB"), (20_000_000, "20.0 MB"), (3_000_000_000, "3.0 GB")]
)
def test_bytes_are_counted_in_words(count: int, text: str) -> None:
    assert byte_count(count) == text
