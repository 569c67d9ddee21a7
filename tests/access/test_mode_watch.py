"""Decisions use the current maintenance mode; a commit under a changed mode is stale."""

from edge.access.mode import ModeWatch
from edge.foundation.task_group import background_task
from edge.model.plant import Maintenance
from edge.store import mode
from edge.store.client import Store
from edge.store.commit import Committed, Stale, join, operation
from tests.conftest import WaitUntil


async def switch(store: Store, to: Maintenance | None, gateway: str = "") -> None:
    assert isinstance(
        await store.commit(mode.save(store.keys, await mode.load(store, gateway), gateway, to)), Committed
    )


async def test_listeners_get_each_change_once(store: Store, wait_until: WaitUntil) -> None:
    watch = ModeWatch(store, "gw-1", 0.01)
    maintenances: list[Maintenance | None] = []
    watch.listeners.append(maintenances.append)
    async with background_task(watch.run(), "mode"):
        await switch(store, Maintenance(message="{$Why}"))
        await wait_until(lambda: watch.in_force)
        await switch(store, None)
        await wait_until(lambda: watch.in_force is None)
    assert maintenances == [Maintenance(message="{$Why}"), None]


async def test_commit_under_an_old_mode_is_stale(store: Store) -> None:
    watch = ModeWatch(store, "gw-1")
    await watch.refresh()
    for to, gateway in ((Maintenance(), ""), (None, ""), (Maintenance(), "gw-1")):
        await switch(store, to, gateway)
        guarded = join((watch.guard, operation("INCR", store.keys.counter("test"))))
        result = await store.commit(guarded)
        assert isinstance(result, Stale)
        await watch.refresh_after("another key")
        assert (watch.in_force is not None) is (to is None)
        await watch.refresh_after(result.key)
        assert isinstance(await store.commit(join((watch.guard,))), Committed)
    assert await store.execute("GET", store.keys.counter("test")) is None


async def test_message_is_in_the_language_of_the_caller(store: Store) -> None:
    watch = ModeWatch(store, "gw-1")
    assert watch.message(("de",)) == ""
    await store.commit(mode.save_texts(store.keys, {"Why": "rebuilt", "de:Why": "Umbau"}))
    await switch(store, Maintenance(message="cell 2: {$Why}"))
    await watch.refresh()
    assert [watch.message(row) for row in ((), ("de",))] == ["cell 2: rebuilt", "cell 2: Umbau"]
    assert watch.texts["Why"] == "rebuilt"
