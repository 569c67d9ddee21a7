"""The state of a store is read from real data nodes and sentinels."""

import signal
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError
from edge.store.observer import observer_of, open_observer
from edge.store.open_store import open_store
from edge.store.store_state import ProblemKind, StoreState, find_problems
from tests.store.sentinel_line import Access, open_line, until
from tests.store.tls import write_certificate


async def state_of(settings: RedisSettings) -> StoreState:
    async with open_observer(settings) as observer:
        return await observer.read()


@pytest.mark.parametrize("program", ["redis", "valkey"])
async def test_state_names_primary_replica_and_sentinels(tmp_path: Path, unique: str, program: str) -> None:
    async with open_line(tmp_path, program=program) as line:
        settings = line.settings(unique)
        async with open_store(settings, "edge") as store:
            state, own = await state_of(settings), await observer_of(store).read()
            generation = store.keys.generation_id
        assert find_problems(state) == ()
        for store_state in (state, own):
            assert store_state.primary
            assert store_state.primary.address == f"127.0.0.1:{line.nodes[0].port}"
            assert store_state.primary.server.lower().startswith(program)
            assert [(node.address, node.lag_bytes) for node in store_state.replicas] == [
                (f"127.0.0.1:{line.nodes[1].port}", 0)
            ]
            assert store_state.fence
            assert 0 < store_state.fence.confirmed_s < 2
            assert store_state.generation
            assert store_state.generation.id == generation
            assert store_state.generation.begun_at is not None
        assert state.answering == own.answering == 3


async def test_state_of_a_line_with_tls_and_passwords_is_read(tmp_path: Path, unique: str) -> None:
    access = Access(tls=write_certificate(tmp_path), password="sesame", sentinel_password="watch word")
    async with open_line(tmp_path, access=access) as line:
        state = await state_of(line.settings(unique, sentinel_password="watch word"))
        assert state.answering == 3
        assert [replica.is_linked for replica in state.replicas] == [True]


async def test_replica_without_append_only_file_is_found(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, replica="appendonly no\n") as line:
        assert [problem.kind for problem in find_problems(await state_of(line.settings(unique)))] == [
            ProblemKind.NO_AOF
        ]


async def test_frozen_replica_and_sentinel_are_found(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path) as line:
        frozen = (line.nodes[1], line.sentinels[2])
        for node in frozen:
            node.signal(signal.SIGSTOP)

        async def found() -> bool:
            problems = {problem.kind for problem in find_problems(await state_of(line.settings(unique)))}
            return {ProblemKind.REPLICA_AWAY, ProblemKind.SENTINEL_AWAY} <= problems

        await until(found)
        for node in frozen:
            node.signal(signal.SIGCONT)


@pytest.mark.parametrize("observed", ["by a person", "by a gateway"])
async def test_frozen_replica_is_the_only_problem_at_once(tmp_path: Path, unique: str, observed: str) -> None:
    """The primary hears it for seconds more, and the silence outlasts what the sentinels confirmed before."""
    async with open_line(tmp_path) as line, open_store(line.settings(unique), "edge") as store:
        line.nodes[1].signal(signal.SIGSTOP)
        for _ in range(3):
            state = await (state_of(line.settings(unique)) if observed == "by a person" else observer_of(store).read())
            assert [problem.kind for problem in find_problems(state)] == [ProblemKind.REPLICA_AWAY]
        line.nodes[1].signal(signal.SIGCONT)


async def test_frozen_machine_of_a_replica_leaves_the_primary_confirmed(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path) as line:
        for node in (line.nodes[1], line.sentinels[2]):
            node.signal(signal.SIGSTOP)
        for _ in range(5):
            problems = find_problems(await state_of(line.settings(unique)))
            assert [problem.kind for problem in problems] == [ProblemKind.SENTINEL_AWAY, ProblemKind.REPLICA_AWAY]
        for node in (line.nodes[1], line.sentinels[2]):
            node.signal(signal.SIGCONT)


async def test_state_is_read_without_any_sentinel(tmp_path: Path, unique: str) -> None:
    async with open_line(tmp_path, nodes=1, sentinels=1) as line:
        await line.sentinels[0].kill()
        state = await state_of(line.settings(unique))
        assert find_problems(state)[0].kind is ProblemKind.NO_MAJORITY
        assert state.primary is None


async def test_state_of_a_single_server_is_read(redis: RedisSettings) -> None:
    state = await state_of(redis)
    assert state.primary
    assert state.primary.is_primary
    assert state.fence is None


async def test_server_that_is_away_is_part_of_the_state(unique: str) -> None:
    state = await state_of(RedisSettings(url="redis://127.0.0.1:1", prefix=unique))
    assert [problem.kind for problem in find_problems(state)] == [ProblemKind.PRIMARY_AWAY]


async def test_store_within_a_process_cannot_be_observed() -> None:
    with pytest.raises(SettingsError, match="lives and dies with one process"):
        await state_of(RedisSettings(url="embedded:"))
