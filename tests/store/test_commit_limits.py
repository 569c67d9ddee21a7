"""No script meets an argument limit: each command that grows with data is written in pieces, or nothing is written."""

from collections.abc import Callable

import pytest

from edge.features.admin.snapshot import StreamKey, dump, restore_dump
from edge.features.fleet import store as fleet
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import FlowChange
from edge.features.telemetry import rule_memory
from edge.features.telemetry.rule_memory import WindowChange
from edge.foundation.errors import Defect
from edge.store import set_mirrors as mirrors
from edge.store import stream_of_samples as tags
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.commit import Commit, join, operation, spread
from edge.store.keys import Keys

MANY = 100_000
TEXTS = [f"t{number}" for number in range(MANY)]

GROWING: dict[str, Callable[[Keys], Commit]] = {
    "members of a mirror": lambda keys: mirrors.save(keys, "m", TEXTS, 1),
    "states of mirrors": lambda keys: mirrors.forget_states(keys, TEXTS),
    "last samples": lambda keys: tags.save_last(keys, dict.fromkeys(TEXTS, "{}")),
    "states of rules": lambda keys: rule_memory.save(keys, 0, "", {(word, word): "{}" for word in TEXTS}),
    "removed states of rules": lambda keys: rule_memory.save(keys, 0, "", {(word, word): None for word in TEXTS}),
    "parts of a window": lambda keys: rule_memory.save_window(keys, ("r", "s"), WindowChange(tuple(TEXTS), MANY)),
    "acknowledged entries": lambda keys: telemetry.acknowledge(keys, [f"{number}-1" for number in range(MANY)]),
    "expired fleet commands": lambda keys: fleet.remove_commands(keys, TEXTS),
}


@pytest.mark.parametrize("name", GROWING)
async def test_command_that_grows_with_data_is_written_in_pieces(store: Store, name: str) -> None:
    await telemetry.create_group(store)
    await store.commit(GROWING[name](store.keys))


async def test_results_that_flows_have_taken_are_removed_in_pieces(store: Store) -> None:
    taken = tuple(f"{number}-1" for number in range(1, MANY + 1))
    assert await RedisFlowState(store).commit(FlowChange(taken=taken))


async def test_commit_of_100000_operations_is_written_whole(store: Store) -> None:
    key = f"{store.keys.prefix}:z"
    await store.commit(join(operation("ZADD", key, number, text) for number, text in enumerate(TEXTS)))
    assert await store.execute("ZCARD", key) == MANY


async def test_operation_beyond_the_limit_of_lua_writes_nothing(store: Store) -> None:
    key = f"{store.keys.prefix}:s"
    with pytest.raises(Defect, match="SADD has 100002 arguments"):
        await store.commit(join((operation("SET", f"{key}:before", "1"), operation("SADD", key, *TEXTS))))
    assert await store.execute("EXISTS", key, f"{key}:before") == 0


async def test_snapshot_of_100000_members_of_each_kind_is_restored(store: Store) -> None:
    prefix = store.keys.prefix
    pairs = [word for text in TEXTS for word in (text, "1")]
    scored = [word for text in TEXTS for word in ("1", text)]
    await store.commit(
        join(
            (
                spread("HSET", (f"{prefix}:tags",), pairs),
                spread("SADD", (f"{prefix}:mirror:m",), TEXTS),
                spread("ZADD", (f"{prefix}:sfc:timers",), scored),
                spread("RPUSH", (f"{prefix}:telemetry:window:w",), TEXTS),
            )
        )
    )
    # Another program may append an entry that no script can write.
    await store.execute("XADD", f"{prefix}:telemetry", "1-1", *pairs)
    taken = await dump(store, 1)
    await restore_dump(store, taken, 0, lambda _: None)
    assert await dump(store, 1) == taken
    assert any(isinstance(key, StreamKey) and len(key.value[0][1]) == MANY for key in taken)
