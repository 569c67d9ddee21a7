"""Replicas confirm commits: which of them have to, and the effect of their absence. On real sentinels."""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.job_state import Cause, JobState, JobStatus
from edge.store import changes
from edge.store.client import Store
from edge.store.commit import Commit, Committed
from edge.store.open_store import open_store
from edge.store.reads import BEGINNING
from edge.store.replication import priority_problem, promotable_replicas, read_offsets
from edge.store.sentinels import Primary, ReplicaView, SentinelView
from tests.store.sentinel_line import PROGRAMS, SERVICE, Line, Node, open_line, until

UP, DOWN = frozenset({"slave"}), frozenset({"slave", "s_down"})
A, B = ("10.0.0.1", 6379), ("10.0.0.2", 6379)


def view(name: str, *replicas: ReplicaView) -> SentinelView:
    return SentinelView(
        name, Primary("10.0.0.9", 6379, 1), frozenset({"master"}), 0.1, 2.0, 10.0, 2, 3, replicas=replicas
    )


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        ([view("s"), view("t")], set()),
        ([view("s", ReplicaView(A, UP, 100, 5)), view("t", ReplicaView(A, UP, 100, 5))], {A}),
        ([view("s", ReplicaView(A, UP, 100, 5), ReplicaView(B, UP, 100, 5))], {A, B}),
        ([view("s", ReplicaView(A, UP, 0, 5))], set()),
        ([view("s", ReplicaView(A, DOWN, 100, 5))], set()),
        ([view("s", ReplicaView(A, UP, 100, 0, is_silent=True))], set()),
        ([view("s", ReplicaView(A, UP, 100, 0, is_silent=True)), view("t", ReplicaView(A, UP, 100, 5))], {A}),
        ([view("s", ReplicaView(A, DOWN, 100, 5)), view("t", ReplicaView(A, UP, 100, 5))], {A}),
        (
            [
                view("s", ReplicaView(A, UP, 100, 5), ReplicaView(B, UP, 100, 5)),
                msgspec.structs.replace(
                    view("t", ReplicaView(("10.0.0.9", 6379), UP, 100, 5), ReplicaView(B, UP, 100, 5)),
                    primary=Primary(*A, 0),
                ),
            ],
            {A, B},
        ),
    ],
    ids=[
        "none",
        "one seen by two",
        "two",
        "never promoted",
        "down",
        "silent",
        "silent for one sentinel",
        "down for one sentinel",
        "one view is older",
    ],
)
def test_replicas_that_a_failover_may_promote_are_found(
    views: list[SentinelView], expected: set[tuple[str, int]]
) -> None:
    assert promotable_replicas(views) == expected


@pytest.mark.parametrize(
    ("priorities", "problem"), [((100, 100), ""), ((100, 0), ""), ((), ""), ((100, 10), "the priorities 10, 100")]
)
def test_replicas_of_unequal_priority_are_a_problem(priorities: tuple[int, ...], problem: str) -> None:
    text = priority_problem([view("s", *(ReplicaView(A, UP, priority, 5) for priority in priorities))])
    assert (problem in str(text or ""), bool(text)) == (True, bool(problem))


def test_offsets_have_what_each_replica_confirmed() -> None:
    """The reply of redis-server 7.0.15."""
    replicas = {
        f"slave{at}": f"ip={ip},port=6379,state=online,offset={offset},lag=0"
        for at, (ip, offset) in enumerate([("10.0.0.1", 120), ("fd00::2", 84)])
    }
    info = {"role": "master", "connected_slaves": "2", **replicas, "master_repl_offset": "120"}
    offsets = read_offsets(info)
    assert (offsets.offset, offsets.confirmed) == (120, {A: 120, ("fd00::2", 6379): 84})
    with pytest.raises(Unavailable, match="become a replica"):
        read_offsets({"role": "slave", "master_repl_offset": "120"})


@pytest.mark.parametrize("url", ["redis://127.0.0.1", "embedded:/var/lib/x"])
def test_replicated_store_needs_sentinels(url: str) -> None:
    assert any(
        "replicated" in str(conflict) for conflict in RedisSettings(url=url, durability="replicated").conflicts()
    )


@pytest.fixture(params=PROGRAMS)
async def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Line]:
    async with open_line(Path(tmp_path_factory.mktemp("l")), program=request.param, nodes=3) as opened:
        yield opened


_numbers = itertools.count()


async def commits(store: Store) -> bool:
    return isinstance(await store.commit(Commit((), (("SET", f"{store.keys.prefix}:x", next(_numbers)),))), Committed)


async def test_commit_is_at_every_replica_when_it_returns(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique, durability="replicated"), "edge") as store:
        for number in range(50):
            await store.commit(Commit((), (("SET", f"{unique}:x", number),)))
            assert [await node.call("GET", f"{unique}:x") for node in line.nodes] == [str(number)] * 3


async def test_commit_fails_while_a_replica_that_may_take_over_lacks_it(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique, durability="replicated"), "edge") as store:
        assert await commits(store)
        line.nodes[2].signal(signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="1 of 2 replicas"):
                await commits(store)
            # The sentinels see it down: it will not be promoted, and the other one is enough.
            await until(lambda: commits(store), 20)
        finally:
            line.nodes[2].signal(signal.SIGCONT)


async def test_replica_that_is_never_promoted_confirms_nothing(line: Line, unique: str) -> None:
    """WAIT counts it, and it is faster than the one that a failover promotes."""
    _, reporting, lagging = line.nodes
    await reporting.call("CONFIG", "SET", "replica-priority", 0)
    async with open_store(line.settings(unique, durability="replicated"), "edge") as store:
        await until(lambda: needs(store, 1), 30)
        assert await commits(store)
        lagging.signal(signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="0 of 1 replicas"):
                await commits(store)
        finally:
            lagging.signal(signal.SIGCONT)
        await until(lambda: commits(store), 20)


async def needs(store: Store, replicas: int) -> bool:
    assert store.ha
    return len(promotable_replicas(store.ha.sentinels.views.values())) == replicas


async def test_replicated_store_accepts_no_commit_without_a_replica(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique, durability="replicated"), "edge") as store:
        for node in line.nodes[1:]:
            await node.kill()
        await until(lambda: are_down(line.sentinels, 2), 20)
        with pytest.raises(Unavailable, match="0 of 1 replicas"):
            await commits(store)


async def test_start_waits_for_replicas_and_not_for_those_that_are_down(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique), "edge") as store:
        line.nodes[2].signal(signal.SIGSTOP)
        try:
            assert await commits(store)
            with pytest.raises(Unavailable, match="1 of 2 replicas"):
                await store.settle_start()
            await until(lambda: starts(store), 20)
        finally:
            line.nodes[2].signal(signal.SIGCONT)


async def starts(store: Store) -> bool:
    await store.settle_start()
    return True


async def are_down(sentinels: list[Node], count: int) -> bool:
    for sentinel in sentinels:
        replicas = await sentinel.call("SENTINEL", "REPLICAS", "line")
        if sum("s_down" in replica["flags"] for replica in replicas) < count:
            return False
    return True


async def test_change_leaves_only_when_the_replicas_have_it(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique, durability="replicated"), "edge") as store:
        commit = changes.append_change(store.keys, "s", "J1", Cause.STORE, JobStatus(JobState.RUNNING), 0)
        await store.commit(commit)
        async for change in changes.follow(store, {"s": BEGINNING}):
            assert change.job_order_id == "J1"
            break
        line.nodes[2].signal(signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="1 of 2 replicas"):
                await anext(changes.follow(store, {"s": BEGINNING}))
        finally:
            line.nodes[2].signal(signal.SIGCONT)


async def test_one_wait_serves_all_commits_of_a_turn(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique, durability="replicated"), "edge") as store:
        before = await waits(line)
        await asyncio.gather(*(commits(store) for _ in range(200)))
        assert await waits(line) - before < 20


async def waits(line: Line) -> int:
    text = await line.nodes[0].call("INFO", "commandstats")
    (calls,) = [value for value in text.split() if value.startswith("cmdstat_wait:")] or ["cmdstat_wait:calls=0,"]
    return int(calls.split("calls=")[1].split(",")[0])


async def test_start_is_not_held_by_the_view_of_a_lost_sentinel(line: Line, unique: str) -> None:
    """The machine of a replica has a sentinel, too: its last view still names the replica as up."""
    async with open_store(line.settings(unique), "edge") as store:
        for node in (*line.nodes[1:], line.sentinels[2]):
            await node.kill()
        await until(lambda: starts(store), 20)


async def test_stored_answer_stays_while_the_primary_is_not_confirmed(line: Line, unique: str) -> None:
    async with open_store(line.settings(unique), "edge") as store:
        await store.settle()
        for sentinel in line.sentinels:
            sentinel.signal(signal.SIGSTOP)
        try:
            await until(lambda: is_unavailable(store.settle, "not confirmed"), 20)
        finally:
            for sentinel in line.sentinels:
                sentinel.signal(signal.SIGCONT)


async def is_unavailable(call: Callable[[], Awaitable[None]], reason: str) -> bool:
    try:
        await call()
    except Unavailable as error:
        return reason in error.message
    return False


async def test_start_does_not_wait_until_a_frozen_former_primary_counts_as_down(tmp_path: Path, unique: str) -> None:
    """It waited for `down-after`, 2 s; no sentinel could have promoted a server that had not answered it."""
    async with open_line(tmp_path) as line:
        former, new = line.nodes
        former.signal(signal.SIGSTOP)

        async def has_started() -> bool:
            async with open_store(line.settings(unique), "edge") as store:
                assert store.endpoint.port == new.port
                await store.settle_start()
            return True

        await until(has_started, 30)
        flags = [
            value["flags"]
            for sentinel in line.sentinels
            for value in await sentinel.call("SENTINEL", "REPLICAS", SERVICE)
            if int(value["port"]) == former.port
        ]
        assert any("down" not in flag for flag in flags), flags


async def test_start_waits_for_a_former_primary_that_still_runs(tmp_path: Path, unique: str) -> None:
    """After a failover by command it can be promoted again, without the mark, until Sentinel has demoted it."""
    async with open_line(tmp_path) as line:
        # Else Sentinel may demote it before the store is open, on a busy machine.
        await line.nodes[0].call("ACL", "SETUSER", "default", "-slaveof", "-replicaof")
        await line.fail_over()

        async def is_refused() -> bool:
            async with open_store(line.settings(unique), "edge") as store:
                return await is_unavailable(store.settle_start, "replicas have confirmed")

        await until(is_refused)
