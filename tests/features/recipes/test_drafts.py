"""Drafts in the store: their versions are bounded, and two writers never overwrite each other."""

from edge.features.recipes import keys as recipes_keys
from edge.features.recipes.drafts import (
    Edit,
    RecipeDraft,
    load_draft,
    load_drafts,
    load_text,
    plan_creation,
    plan_discard,
    plan_save,
    plan_step,
)
from edge.store.client import Store
from edge.store.commit import Committed, Stale

BY_ANNA = Edit(author="anna", at=1, change="text")


async def begun(store: Store, name: str = "d1", most: int = 9) -> RecipeDraft:
    """Write a draft with the text of version 1."""
    draft, commit = plan_creation(store.keys, name, ("s", "WM", 3), "one", BY_ANNA, most)
    assert isinstance(await store.commit(commit), Committed)
    return draft


async def save(store: Store, draft: RecipeDraft, text: str, most: int = 9) -> RecipeDraft:
    saved, commit = plan_save(store.keys, draft, text, BY_ANNA, most)
    assert isinstance(await store.commit(commit), Committed)
    return saved


async def test_each_version_is_kept_with_author_and_instant(store: Store) -> None:
    draft = await save(store, await begun(store), "two")
    assert await load_draft(store, "d1") == draft
    assert [(item.number, item.author, item.size) for item in draft.versions] == [(1, "anna", 3), (2, "anna", 3)]
    assert [await load_text(store, "d1", number) for number in (1, 2)] == ["one", "two"]


async def test_save_after_undo_drops_what_was_undone(store: Store) -> None:
    draft = await save(store, await begun(store), "two")
    undone, commit = plan_step(store.keys, draft, BY_ANNA, 0)
    await store.commit(commit)
    assert undone.current == 1
    draft = await save(store, undone, "three")
    assert [item.number for item in draft.versions] == [1, draft.current]
    assert await load_text(store, "d1", 2) is None


async def test_oldest_version_goes_beyond_the_bound(store: Store) -> None:
    draft = await begun(store)
    for number in range(5):
        draft = await save(store, draft, f"text {number}", most=3)
    assert [item.number for item in draft.versions] == [4, 5, 6]
    assert [await load_text(store, "d1", number) for number in (3, 4)] == [None, "text 2"]
    assert await store.execute("HLEN", recipes_keys.recipe_draft(store.keys, "d1")) == 5


async def test_history_of_a_draft_is_bounded_in_bytes(store: Store) -> None:
    draft = await begun(store)
    for _ in range(20):
        draft = await save(store, draft, "x" * 250_000, most=1000)
    assert sum(item.size for item in draft.versions) <= 4 * 1024 * 1024
    assert draft.versions[-1].number == draft.current


async def test_later_of_two_saves_of_a_draft_is_stale(store: Store) -> None:
    draft = await begun(store)
    plans = [plan_save(store.keys, draft, text, BY_ANNA, 9)[1] for text in ("anna's", "ben's")]
    results = [await store.commit(plan) for plan in plans]
    assert isinstance(results[0], Committed)
    assert isinstance(results[1], Stale)
    assert await load_text(store, "d1", 2) == "anna's"


async def test_number_of_drafts_is_bounded_until_one_is_discarded(store: Store) -> None:
    draft = await begun(store, "d1", most=1)
    _, commit = plan_creation(store.keys, "d2", ("s", "WM", 0), "two", BY_ANNA, 1)
    assert isinstance(await store.commit(commit), Stale)
    await store.commit(plan_discard(store.keys, draft))
    assert await load_drafts(store) == []
    assert isinstance(await store.commit(commit), Committed)
