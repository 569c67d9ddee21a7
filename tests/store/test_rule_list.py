"""Rules of the MES are stored under a revision."""

from edge.store import rule_list
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.rule_list import StoredRules


async def test_rules_are_kept_by_their_ids_under_a_revision(store: Store) -> None:
    empty = await rule_list.load(store)
    assert (empty, await rule_list.revision(store)) == (StoredRules(), 0)
    saved = rule_list.save(store.keys, empty, {"b": "2", "rev": "1", "a": "3"})
    assert isinstance(await store.commit(saved), Committed)
    assert isinstance(await store.commit(saved), Stale)
    found = await rule_list.load(store)
    assert found == StoredRules(1, {"a": "3", "b": "2", "rev": "1"})
    await store.commit(rule_list.save(store.keys, found, {"a": None, "none": None}))
    assert await rule_list.load(store) == StoredRules(2, {"b": "2", "rev": "1"})
    assert await rule_list.revision(store) == 2
