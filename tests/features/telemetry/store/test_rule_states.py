"""States of rules: one revision for all, a list for each window."""

from edge.features.telemetry.store import rule_states
from edge.features.telemetry.store.rule_states import StoredStates, WindowChange
from edge.store.client import Store
from edge.store.commit import Committed, Stale

ONE, OTHER = ("r", 'odd "name"'), ("r2", "s")


async def test_states_are_read_as_written_and_removed(store: Store) -> None:
    assert await rule_states.load(store) == StoredStates()
    first = rule_states.save(store.keys, 0, "facts", {ONE: "1", OTHER: "2"})
    assert isinstance(await store.commit(first), Committed)
    assert isinstance(await store.commit(first), Stale)
    await store.commit(rule_states.save(store.keys, 1, "later", {OTHER: None}))
    assert await rule_states.load(store) == StoredStates(2, "later", {ONE: "1"})
    await store.commit(rule_states.save(store.keys, 2, "later", {}, "rules"))
    await store.commit(rule_states.save(store.keys, 3, "later", {}))
    assert (await rule_states.load(store)).rules == "rules"


async def test_window_grows_and_is_trimmed(store: Store) -> None:
    await store.commit(rule_states.save_window(store.keys, ONE, WindowChange(("a", "b", "c"), None)))
    await store.commit(rule_states.save_window(store.keys, ONE, WindowChange(("d",), 2)))
    assert await rule_states.load_window(store, ONE) == ["c", "d"]
    assert await rule_states.load_window(store, OTHER) == []
    await store.commit(rule_states.save_window(store.keys, ONE, WindowChange((), 0)))
    assert await rule_states.load_window(store, ONE) == []
