"""The work on drafts: versions that others have saved are never overwritten, faults are kept, requests may repeat."""

import asyncio
import json

import pytest

from edge.features.recipes.changes import InsertAfter, RenameElement
from edge.features.recipes.desk import Author
from edge.features.recipes.drafts import load_text
from edge.features.recipes.plcopen.writer import export_plcopen
from edge.features.recipes.release import release_recipe
from edge.foundation.errors import Refused
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.station.settings import SettingSource
from edge.store.client import Store
from tests.features.recipes.desks import ANNA, BEN, SCOPE, SOUND, TEXT, desk_on


async def test_draft_of_a_stored_recipe_begins_with_what_is_released(store: Store) -> None:
    desk = desk_on(store)
    await release_recipe(desk, SCOPE, "WM", SOUND, "first", ANNA, SettingSource.PAGE)
    draft = await desk.create(SCOPE, "WM", BEN)
    assert (draft.base, draft.author) == (1, "ben")
    assert json.loads(await desk.text(draft)) == SOUND


async def test_draft_of_a_new_recipe_begins_with_one_step(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "NEW", ANNA)
    assert draft.base == 0
    assert not (await desk.view(draft)).problems


async def test_later_save_is_refused_with_the_difference(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), ANNA)
    with pytest.raises(Refused) as refused:
        await desk.edit(draft.id, draft.current, RenameElement("B", "Done"), BEN)
    assert refused.value.kind == "draft_changed"
    assert "anna has changed the draft" in refused.value.message
    assert "step Verify added" in refused.value.message
    now = await desk.draft(draft.id)
    assert "Verify" in await desk.text(now)
    again, _ = await desk.edit(draft.id, now.current, RenameElement("B", "Done"), BEN)
    text = await desk.text(again)
    assert "Verify" in text
    assert "Done" in text


async def test_second_of_two_saves_at_once_is_refused_and_none_is_lost(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    names = [f"S{number}" for number in range(8)]
    results = await asyncio.gather(
        *(desk.edit(draft.id, draft.current, InsertAfter("A", name), ANNA) for name in names), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, Refused)]
    assert (len(refused), {item.kind for item in refused}) == (7, {"draft_changed"})
    assert len((await desk.draft(draft.id)).versions) == 2


async def test_request_that_is_sent_again_changes_the_draft_once(store: Store) -> None:
    desk = desk_on(store)
    once = Author("anna", "en", "key-1")
    draft = await desk.create(SCOPE, "WM", once, TEXT)
    assert (await desk.create(SCOPE, "WM", once, TEXT)).id == draft.id
    twice = Author("anna", "en", "key-2")
    first, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), twice)
    second, view = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), twice)
    assert first == second
    assert ">Verify</text>" in view.chart


async def test_text_with_faults_is_kept_and_shown(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    saved, view = await desk.write(draft.id, draft.current, '{"steps": [', ANNA)
    assert view.problems[0].line == 1
    assert await load_text(store, draft.id, saved.current) == '{"steps": ['
    with pytest.raises(Refused, match="not JSON"):
        await desk.edit(draft.id, saved.current, InsertAfter("A", "Verify"), ANNA)


async def test_undo_and_redo_show_the_versions_in_their_order(store: Store) -> None:
    desk = desk_on(store)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    changed, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), ANNA)
    undone, view = await desk.step(draft.id, changed.current, ANNA, back=True)
    assert (undone.current, view.text) == (1, TEXT)
    redone, view = await desk.step(draft.id, undone.current, ANNA, back=False)
    assert (redone.current, "Verify" in view.text) == (2, True)
    with pytest.raises(Refused, match="nothing to redo"):
        await desk.step(draft.id, redone.current, ANNA, back=False)


async def test_too_long_text_and_unknown_names_are_refused(store: Store) -> None:
    desk = desk_on(store, drafts=1)
    draft = await desk.create(SCOPE, "WM", ANNA, TEXT)
    with pytest.raises(Refused, match="262144 bytes"):
        await desk.write(draft.id, 1, "ä" * 140_000, ANNA)
    with pytest.raises(Refused, match="no scope 'other'"):
        await desk.create("other", "WM", ANNA)
    with pytest.raises(Refused, match="no such revision"):
        await desk.create(SCOPE, "WM", ANNA, number=9)
    with pytest.raises(Refused, match="1 drafts already"):
        await desk.create(SCOPE, "WM", BEN)
    await desk.discard(draft.id, 1, BEN)
    with pytest.raises(Refused, match="there is no draft"):
        await desk.draft(draft.id)


async def test_chart_of_a_plc_becomes_the_recipe_of_a_draft(store: Store) -> None:
    desk = desk_on(store)
    net = compile_recipe(SOUND)
    assert isinstance(net, Net)
    xml = export_plcopen(net, SOUND, "WM", "2026-11-27T00:00:00").decode()
    draft = await desk.create(SCOPE, "WM", ANNA, xml)
    assert json.loads(await desk.text(draft)) == SOUND
    faulty = xml.replace("<step ", "<macroStep ", 1).replace("</step>", "</macroStep>", 1)
    saved, view = await desk.write(draft.id, draft.current, faulty, ANNA)
    assert await desk.text(saved) == faulty
    assert view.recipe is None
    assert any(problem.line for problem in view.problems)
    assert (await desk.check(saved, "en")).problems
