"""Pages release drafts, show the history and roll back; files of PLC tools come in and go out."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from edge.access.login import Users
from edge.access.users import User, write_user
from edge.features.recipes.changes import InsertAfter
from edge.features.recipes.desk import Author, Desk
from edge.features.recipes.drafts import RecipeDraft
from edge.features.recipes.plcopen.reader import import_plcopen
from edge.features.recipes.release import release_draft, release_recipe
from edge.features.recipes.workbench_requests import text_of
from edge.model.user import Role
from edge.station.settings import SettingSource
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of, serving
from tests.features.recipes.desks import ANNA, SCOPE, SOUND, STUCK, TEXT, desk_on
from tests.passwords import CHEAP_HASH
from tests.sfc.recipes import action, recipe, transition
from tests.station.plant import Plant

DRAFTS = "/api/v1/recipe-drafts"
HISTORY = f"/recipe-history?scope={SCOPE}&id=WM"
REVISION = f"/api/v1/recipes/{SCOPE}/WM/revisions"


@pytest_asyncio.fixture
async def desk(plant: Plant) -> Desk:
    """The desk of a station whose recipe WM has one revision."""
    desk = desk_on(plant.store)
    await release_recipe(desk, SCOPE, "WM", SOUND, "first <b>", ANNA, SettingSource.PAGE)
    return desk


@pytest_asyncio.fixture
async def browser(plant: Plant, users: Users, desk: Desk) -> AsyncIterator[Browser]:
    async with serving(services_of(plant, users, ports={"recipes": desk})) as found:
        yield found


async def changed(desk: Desk) -> RecipeDraft:
    draft = await desk.create(SCOPE, "WM", ANNA)
    draft, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), ANNA)
    return draft


async def test_release_page_shows_check_tests_and_form(browser: Browser, desk: Desk) -> None:
    engineer, draft = await browser.logged_in("max"), await changed(desk)
    test = {"id": "tool fails", "work_master": "WM", "script": {"default": {"result": "failed"}}, "end": "failed"}
    await engineer.post("/api/v1/recipe-tests", test)
    page = (await engineer.get(f"/recipe-release?draft={draft.id}")).text
    for text in ("Release as revision 2", "No faults", "Test tool fails: passed", "first &lt;b&gt;"):
        assert text in page, text
    assert f'data-form="{DRAFTS}/{draft.id}/release"' in page
    await engineer.post("/api/v1/recipe-tests", {**test, "end": "completed"})
    page = (await engineer.get(f"/recipe-release?draft={draft.id}")).text
    assert "Test tool fails: failed" in page
    assert "data-form=" not in page


async def test_release_page_shows_the_notes_of_the_check(browser: Browser, desk: Desk) -> None:
    engineer = await browser.logged_in("max")
    text = text_of(recipe("A B", [transition("A", "B", "torque > 5")], [action("a", "A", timeout_seconds=0)]))
    draft = await desk.create(SCOPE, "WM", ANNA, text)
    page = (await engineer.get(f"/recipe-release?draft={draft.id}")).text
    assert "the step waits for its answer without a time limit" in page


async def test_release_page_of_a_faulty_draft_names_its_faults(browser: Browser, desk: Desk) -> None:
    engineer = await browser.logged_in("max")
    stuck = await desk.create(SCOPE, "WM", ANNA, STUCK)
    assert "no exit can become true" in (await engineer.get(f"/recipe-release?draft={stuck.id}")).text
    broken = await desk.create(SCOPE, "WM", ANNA, '{"steps":\n [}')
    page = (await engineer.get(f"/recipe-release?draft={broken.id}")).text
    assert "(line 2)" in page
    assert "data-form=" not in page


async def test_release_page_leads_to_the_comparison_where_it_is_behind(browser: Browser, desk: Desk) -> None:
    engineer, draft = await browser.logged_in("max"), await changed(desk)
    other = {**SOUND, "title": "other"}
    await release_recipe(desk, SCOPE, "WM", other, "meanwhile", ANNA, SettingSource.PAGE)
    address = f"/recipe-release?draft={draft.id}"
    page = (await engineer.get(address)).text
    assert "Revision 2 was released since this draft began with revision 1" in page
    assert "data-form=" not in page
    body = {"version": draft.current, "revision": 2}
    assert (await engineer.post(f"{DRAFTS}/{draft.id}/rebase", body)).status == 200
    assert "data-form=" in (await engineer.get(address)).text


async def test_second_person_confirms_on_the_release_page(
    plant: Plant, users: Users, desk: Desk, tmp_path: Path
) -> None:
    write_user(tmp_path / "users", User("zoe", Role.ENGINEER, CHEAP_HASH))
    draft = await changed(desk)
    desk = desk_on(plant.store, second_person=True)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        max_, zoe = await browser.logged_in("max"), await browser.logged_in("zoe")
        address, at = f"/recipe-release?draft={draft.id}", f"{DRAFTS}/{draft.id}"
        assert "Ask for the release" in (await max_.get(address)).text
        await max_.post(f"{at}/release", {"version": draft.current, "reason": "verify"})
        assert "Another engineer has to confirm it." in (await max_.get(address)).text
        page = (await zoe.get(address)).text
        assert "max asks to release version 2" in page
        assert f'data-send="{at}/confirm"' in page
        assert (await zoe.post(f"{at}/confirm", {"version": draft.current})).json["revision"]["confirmed_by"] == "zoe"
        assert "confirmed by zoe" in (await zoe.get(HISTORY)).text


async def test_live_release_page_does_not_offer_the_requester_to_confirm(
    plant: Plant, users: Users, desk: Desk, tmp_path: Path
) -> None:
    """Live renderings are shared by role; this one differs by person."""
    write_user(tmp_path / "users", User("zoe", Role.ENGINEER, CHEAP_HASH))
    draft = await changed(desk)
    desk = desk_on(plant.store, second_person=True)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        max_, zoe = await browser.logged_in("max"), await browser.logged_in("zoe")
        address = f"/recipe-release?draft={draft.id}"
        await max_.post(f"{DRAFTS}/{draft.id}/release", {"version": draft.current, "reason": "verify"})
        live = {"x-live": "1"}
        pages = [(await reader.get(address, **live)).text for reader in (zoe, max_)]
        assert ["/confirm" in page for page in pages] == [True, False]
        assert "Another engineer has to confirm it." in pages[1]


async def test_request_does_not_bind_where_one_person_releases(plant: Plant, browser: Browser, desk: Desk) -> None:
    draft = await changed(desk)
    # The setting was switched off after the request.
    by = Author("max", "en")
    await release_draft(desk_on(plant.store, second_person=True), draft.id, draft.current, "x", by, SettingSource.PAGE)
    engineer = await browser.logged_in("max")
    assert "data-form=" in (await engineer.get(f"/recipe-release?draft={draft.id}")).text


async def test_history_is_read_by_all_and_rolled_back_by_engineers(browser: Browser, desk: Desk) -> None:
    draft = await changed(desk)
    await release_recipe(desk, SCOPE, "WM", {**SOUND, "title": "two"}, "second", ANNA, SettingSource.MES)
    observer, engineer = await browser.logged_in("eve"), await browser.logged_in("max")
    page = (await observer.get(HISTORY)).text
    assert "first &lt;b&gt;" in page
    assert "MES" in page
    assert "rollback" not in page
    assert draft.id not in page
    page = (await engineer.get(HISTORY)).text
    assert page.count('/WM/rollback"') == 1
    assert f"/recipe-release?draft={draft.id}" in page
    assert (await observer.get("/recipe-history?scope=elsewhere&id=WM")).status == 422
    assert (await observer.get(f"/recipe-history?scope={SCOPE}&id=none")).status == 404
    assert (await observer.get("/recipe-release?draft=x")).status == 403
    assert (await engineer.get("/recipe-release?draft=x")).status == 404


async def test_pages_of_recipes_lead_to_history_and_import(browser: Browser) -> None:
    observer, engineer = await browser.logged_in("eve"), await browser.logged_in("max")
    page = (await observer.get(f"/recipe?scope={SCOPE}&id=WM")).text
    assert f'href="/recipe-history?scope={SCOPE}&amp;id=WM"' in page
    assert "/recipe-try" not in page
    assert 'id="import"' not in (await observer.get("/recipes")).text
    page = (await engineer.get("/recipes")).text
    assert 'id="import"' in page
    script = page.partition('src="/static/recipes-')[2].partition('"')[0]
    assert (await engineer.get(f"/static/recipes-{script}")).status == 200


async def test_exported_chart_is_imported_as_the_same_recipe(browser: Browser, desk: Desk) -> None:
    observer, engineer = await browser.logged_in("eve"), await browser.logged_in("max")
    reply = await observer.get(f"{REVISION}/released/plcopen.xml")
    assert reply.headers["content-disposition"] == 'attachment; filename="WM.xml"'
    assert import_plcopen(reply.body).recipe == SOUND
    draft = await changed(desk)
    assert b"Verify" in (await engineer.get(f"{DRAFTS}/{draft.id}/plcopen.xml")).body
    assert (await observer.get(f"{DRAFTS}/{draft.id}/plcopen.xml")).status == 403
    broken = await desk.create(SCOPE, "WM", ANNA, STUCK.replace('"initial"', '"first"'))
    assert (await engineer.get(f"{DRAFTS}/{broken.id}/plcopen.xml")).json["kind"] == "recipe"
    text = reply.text.replace('encoding="utf-8"', 'encoding="UTF-16"', 1)
    assert 'encoding="UTF-16"' in text
    begun = await engineer.post(DRAFTS, {"scope": SCOPE, "work_master": "WM", "text": text})
    assert (begun.json["recipe"], begun.json["problems"]) == (SOUND, [])


async def test_name_of_a_download_has_no_characters_of_headers(plant: Plant, users: Users, desk: Desk) -> None:
    await release_recipe(desk, SCOPE, "ä;ö", SOUND, "first", ANNA, SettingSource.PAGE)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        reply = await (await browser.logged_in("eve")).get(
            f"/api/v1/recipes/{SCOPE}/%C3%A4%3B%C3%B6/revisions/1/plcopen.xml"
        )
        assert reply.headers["content-disposition"] == 'attachment; filename="recipe.xml"'


async def test_faulty_file_of_a_plc_is_kept_as_a_draft_with_its_places(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    exported = (await engineer.get(f"{REVISION}/1/plcopen.xml")).text
    faulty = exported.replace("<SFC>", "<SFC>\n<macroStep localId='99' name='M'/>", 1)
    body = {"scope": SCOPE, "work_master": "NEW", "text": faulty}
    begun = (await engineer.post(DRAFTS, body)).json
    assert begun["text"] == faulty
    assert [problem["line"] for problem in begun["problems"]] != []
    assert all(problem["line"] for problem in begun["problems"])


async def test_warnings_of_an_import_are_reported_once(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    exported = (await engineer.get(f"{REVISION}/1/plcopen.xml")).text
    plain = exported.partition("<addData>")[0] + exported.rpartition("</addData>")[2]
    body = {"scope": SCOPE, "work_master": "NEW", "text": plain}
    begun = (await engineer.post(DRAFTS, body)).json
    assert begun["problems"] == []
    assert any("plcopen.a_2.v1" in warning for warning in begun["warnings"])
    again = (await engineer.get(f"{DRAFTS}/{begun['draft']['id']}")).json
    assert again["warnings"] == []
    assert again["recipe"] == begun["recipe"]


async def test_file_of_two_mebibytes_is_taken_and_a_larger_one_refused(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    exported = (await engineer.get(f"{REVISION}/1/plcopen.xml")).text
    most = 2 * 1024 * 1024
    padding = f"<!--{' ' * (most - len(exported.encode()) - 7)}-->"
    body = {"scope": SCOPE, "work_master": "NEW", "text": exported.replace("<types>", f"{padding}<types>", 1)}
    assert (await engineer.post(DRAFTS, body)).json["recipe"] == SOUND
    refused = await engineer.post(DRAFTS, {**body, "text": body["text"].replace("<types>", " <types>", 1)})
    assert (refused.status, refused.json["kind"]) == (422, "too_long")
    long = TEXT.replace('"B"', '"B", "description": "' + "x" * 300_000 + '"', 1)
    assert (await engineer.post(DRAFTS, {**body, "text": long})).json["kind"] == "too_long"


async def test_chart_of_a_file_with_several_is_named(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    exported = (await engineer.get(f"{REVISION}/1/plcopen.xml")).text
    pou = exported[exported.index("<pou ") : exported.index("</pou>") + 6]
    other = pou.replace('name="WM"', 'name="Other"', 1)
    two = exported.replace("</pou>", f"</pou>{other}", 1)
    body = {"scope": SCOPE, "work_master": "NEW", "text": two}
    assert (await engineer.post(DRAFTS, body)).json["problems"] != []
    assert (await engineer.post(DRAFTS, {**body, "pou": "Other"})).json["recipe"] == SOUND
