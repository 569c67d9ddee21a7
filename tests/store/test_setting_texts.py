"""Rules and definitions of tags are stored by name under a revision."""

import pytest

from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.setting_texts import RULES, TAGS, SettingTexts, StoredTexts


@pytest.mark.parametrize("kept", [RULES, TAGS])
async def test_texts_are_kept_by_their_names_under_a_revision(store: Store, kept: SettingTexts) -> None:
    empty = await kept.load(store)
    assert (empty, await kept.count_without(store, ["a"])) == (StoredTexts(), (0, 0))
    saved = kept.save(store.keys, 0, {"b": "2", "rev": "1", "a": "3"})
    assert isinstance(await store.commit(saved), Committed)
    assert isinstance(await store.commit(saved), Stale)
    found = await kept.load(store)
    assert found == StoredTexts(1, {"a": "3", "b": "2", "rev": "1"})
    assert await kept.count_without(store, ["b", "none"]) == (1, 2)
    await store.commit(kept.save(store.keys, 1, {"a": None, "none": None}))
    assert await kept.load(store) == StoredTexts(2, {"b": "2", "rev": "1"})
    assert await kept.revision(store) == 2


async def test_rules_and_tags_of_one_name_are_stored_separately(store: Store) -> None:
    await store.commit(RULES.save(store.keys, 0, {"x": "rule"}))
    await store.commit(TAGS.save(store.keys, 0, {"x": "tag"}))
    assert ((await RULES.load(store)).texts, (await TAGS.load(store)).texts) == ({"x": "rule"}, {"x": "tag"})
