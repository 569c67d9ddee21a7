"""The keys of the maintenance mode are those of the source document and may be set manually."""

import pytest

from edge.model.plant import DEFAULT_MESSAGE, Maintenance, MaintenanceKind
from edge.store import mode
from edge.store.client import Store
from edge.store.commit import Committed, Stale

ON = Maintenance(kind=MaintenanceKind.NOW, message="fire", since=5, until=9, by="anna")


@pytest.mark.parametrize("gateway", ["", "gw-1"])
async def test_mode_is_read_as_it_was_written(store: Store, gateway: str) -> None:
    before = await mode.load(store, "gw-1")
    assert isinstance(await store.commit(mode.save(store.keys, before, gateway, ON)), Committed)
    stored_mode = await mode.load(store, "gw-1")
    assert (stored_mode.gateway if gateway else stored_mode.store) == ON
    assert (stored_mode.store if gateway else stored_mode.gateway) is None
    assert await store.execute("HGETALL", store.keys.messages()) == {f"Maintenance{gateway and ':gw-1'}": "fire"}
    assert isinstance(await store.commit(mode.save(store.keys, before, gateway, None)), Stale)
    assert isinstance(await store.commit(mode.save(store.keys, stored_mode, gateway, None)), Committed)
    assert await store.execute("EXISTS", store.keys.messages(), store.keys.maintenance()) == 0


async def test_manually_set_mode_is_on_with_the_default_message(store: Store) -> None:
    await store.execute("SET", store.keys.mode(), "1")
    await store.execute("HSET", store.keys.maintenance(), "*", "{not JSON")
    assert (await mode.load(store, "gw-1")).store == Maintenance(message=DEFAULT_MESSAGE)
    await store.execute("SET", store.keys.mode(), "0")
    assert (await mode.load(store, "gw-1")).store is None


async def test_texts_are_written_and_removed_by_name(store: Store) -> None:
    await store.commit(mode.save_texts(store.keys, {"Greeting": "Hello!", "ru:Greeting": "Привет!"}))
    await store.commit(mode.save_texts(store.keys, {"Greeting": None}))
    assert await mode.load_texts(store) == {"ru:Greeting": "Привет!"}
