"""Releases of drafts: checked, on the revision that their author has seen, by two persons where needed, once."""

import asyncio
from typing import Any

import pytest

from edge.features.recipes.changes import InsertAfter
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.drafts import RecipeDraft, load_drafts
from edge.features.recipes.release import confirm_release, release_draft, release_recipe, roll_back
from edge.features.recipes.revisions import load_revisions
from edge.features.recipes.workbench import ask_here
from edge.features.recipes.workbench_requests import Request, RunTests
from edge.foundation.errors import Refused
from edge.station.settings import SettingSource
from edge.store.client import Store
from tests.features.recipes.desks import ANNA, BEN, SCOPE, SOUND, STUCK, TEXT, desk_on

PAGE = SettingSource.PAGE


async def changed_draft(desk: Desk, by: Author = ANNA) -> RecipeDraft:
    """Begin a draft of the Work Master WM that has one more step."""
    draft = await desk.create(SCOPE, "WM", by)
    changed, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), by)
    return changed


async def first(desk: Desk) -> None:
    await release_recipe(desk, SCOPE, "WM", SOUND, "first", ANNA, PAGE)


async def test_released_draft_is_the_next_revision_and_goes(store: Store) -> None:
    desk = desk_on(store)
    await first(desk)
    draft = await changed_draft(desk)
    done = await release_draft(desk, draft.id, draft.current, "verify it", BEN, PAGE)
    assert done.revision is not None
    assert (done.revision.number, done.revision.author, done.revision.reason) == (2, "ben", "verify it")
    assert (done.revision.source, done.revision.confirmed_by) == (PAGE, "")
    assert await load_drafts(store) == []
    assert await desk.work_master(SCOPE, "WM") == done.revision.work_master


async def test_draft_with_a_fault_is_not_released(store: Store) -> None:
    desk = desk_on(store)
    for text, words in ((STUCK, "no exit can become true"), ("{", "not JSON"), ('{"steps": []}', "exactly one step")):
        draft = await desk.create(SCOPE, "WM", ANNA, text)
        with pytest.raises(Refused, match=words):
            await release_draft(desk, draft.id, draft.current, "try", ANNA, PAGE)
    assert await load_revisions(store, SCOPE, "WM") == ()


async def test_release_without_a_reason_is_refused(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    with pytest.raises(Refused, match="needs a reason"):
        await release_draft(desk, draft.id, draft.current, "  ", ANNA, PAGE)


async def test_draft_of_an_older_revision_is_compared_before_its_release(store: Store) -> None:
    desk = desk_on(store)
    await first(desk)
    one, other = await changed_draft(desk), await changed_draft(desk, BEN)
    await release_draft(desk, one.id, one.current, "verify it", ANNA, PAGE)
    with pytest.raises(Refused, match="anna has released revision 2 since the draft began with revision 1: verify it"):
        await release_draft(desk, other.id, other.current, "mine", BEN, PAGE)
    with pytest.raises(Refused, match="revision 2 is released"):
        await desk.rebase(other.id, other.current, 1, BEN)
    based = await desk.rebase(other.id, other.current, 2, BEN)
    changed, _ = await desk.edit(based.id, based.current, InsertAfter("Verify", "Photo"), BEN)
    done = await release_draft(desk, changed.id, changed.current, "mine", BEN, PAGE)
    assert done.revision is not None
    assert done.revision.number == 3


async def test_release_that_is_sent_again_is_carried_out_once(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    once = Author("anna", "en", "key")
    results = [await release_draft(desk, draft.id, draft.current, "first", once, PAGE) for _ in range(2)]
    assert results[0] == results[1]
    again = Author("anna", "en", "key-2")
    backs = [await roll_back(desk, SCOPE, "WM", 1, "again", again, PAGE) for _ in range(2)]
    assert backs[0] == backs[1]


async def test_later_of_releases_at_once_is_refused(store: Store) -> None:
    desk = desk_on(store)
    await first(desk)
    drafts = [await changed_draft(desk) for _ in range(4)]
    results = await asyncio.gather(
        *(release_draft(desk, draft.id, draft.current, "mine", ANNA, PAGE) for draft in drafts), return_exceptions=True
    )
    assert sum(isinstance(result, Refused) for result in results) == 3
    assert [item.number for item in await load_revisions(store, SCOPE, "WM")] == [2, 1]


async def test_second_person_confirms_the_release(store: Store) -> None:
    desk = desk_on(store, second_person=True)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    asked = await release_draft(desk, draft.id, draft.current, "first", ANNA, PAGE)
    assert asked.revision is None
    with pytest.raises(Refused, match="another person confirms it"):
        await confirm_release(desk, draft.id, draft.current, ANNA, PAGE)
    done = await confirm_release(desk, draft.id, draft.current, BEN, PAGE)
    assert done.revision is not None
    assert (done.revision.author, done.revision.confirmed_by, done.revision.reason) == ("anna", "ben", "first")


async def test_change_takes_back_the_request_for_a_release(store: Store) -> None:
    desk = desk_on(store, second_person=True)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    await release_draft(desk, draft.id, draft.current, "first", ANNA, PAGE)
    changed, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), ANNA)
    with pytest.raises(Refused, match="was not requested"):
        await confirm_release(desk, draft.id, changed.current, BEN, PAGE)


async def test_rollback_awaits_the_second_person_too(store: Store) -> None:
    await first(desk_on(store))
    desk = desk_on(store, second_person=True)
    asked = await roll_back(desk, SCOPE, "WM", 1, "faults", ANNA, PAGE)
    assert asked.draft is not None
    assert asked.draft.request is not None
    assert asked.draft.request.reason == "back to 1: faults"


async def test_undo_and_redo_take_back_the_request_for_a_release(store: Store) -> None:
    """The version is the same afterwards, and the confirmation is under way: the request is gone in any case."""
    desk = desk_on(store, second_person=True)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    draft, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), ANNA)
    await release_draft(desk, draft.id, draft.current, "first", ANNA, PAGE)
    has_stepped = False

    async def ask(request: Request, answer: type[Any]) -> Any:
        nonlocal has_stepped
        if isinstance(request, RunTests) and not has_stepped:
            has_stepped = True
            undone, _ = await desk.step(draft.id, draft.current, ANNA, back=True)
            await desk.step(draft.id, undone.current, ANNA, back=False)
        return await ask_here(request, answer)

    with pytest.raises(Refused, match="was not requested"):
        await confirm_release(desk_on(store, ask=ask, second_person=True), draft.id, draft.current, BEN, PAGE)
    assert await desk.work_master(SCOPE, "WM") is None
