"""Tests of the stored stops and resets that no equipment has confirmed."""

from edge.sfc.signal import Phase
from edge.store import safing
from edge.store.client import Store
from edge.store.commit import join
from edge.store.safing import SafingCommand


def command(command_id: str, phase: Phase, since: int) -> SafingCommand:
    return SafingCommand(
        phase=phase,
        command_id=command_id,
        type_id="tighten.v1",
        scope="station-1",
        job_id="J1",
        correlation_id="R1",
        action="a",
        attempt=1,
        since=since,
    )


async def test_commands_are_kept_until_their_id_is_removed(store: Store) -> None:
    first, second = command("J1/R1/a/1", Phase.RESET, 5), command("J1/R1/a/1", Phase.STOP, 3)
    other = command("J1/R1/b/1", Phase.STOP, 4)
    await store.commit(join(safing.save(store.keys, safing_command) for safing_command in (first, second, other)))
    assert await safing.load_all(store) == [second, other, first]
    assert await safing.load(store, "J1/R1/a/1") == [second, first]
    await store.commit(safing.remove(store.keys, "J1/R1/a/1"))
    assert await safing.load_all(store) == [other]


async def test_unreadable_command_is_left_out(store: Store) -> None:
    await store.execute("HSET", store.keys.safing(), "stop:x", "{")
    assert await safing.load_all(store) == []
