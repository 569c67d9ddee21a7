"""Engineers try, compare, release and roll back recipes in a real browser, while jobs run on their revisions."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import json

import pytest

from edge.features.recipes.changes import InsertAfter, RemoveAction
from edge.features.recipes.desk import Desk
from edge.features.recipes.drafts import RecipeDraft
from edge.features.recipes.recipe_tests import load_tests
from edge.features.recipes.release import release_recipe
from edge.features.recipes.workbench_requests import text_of
from edge.model.job_state import Cause, JobState
from edge.station.settings import SettingSource
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.page.test_pages_in_browser import SMALL, TOO_WIDE, VIOLATIONS, axe  # noqa: F401 - a fixture
from tests.features.recipes.desks import ANNA, SCOPE
from tests.features.recipes.test_editor_page_in_browser import desk, screen, services  # noqa: F401 - fixtures
from tests.features.recipes.test_recipe_tests import LOOP
from tests.sfc.recipes import action, recipe, transition
from tests.station.plant import TIGHTEN, FakeEquipment, Plant, order, until_true

pytestmark = pytest.mark.long

AXLE = recipe(
    "Tighten Done",
    [transition("Tighten", "Done", "actions.tighten.done")],
    [action("tighten", "Tighten", type_id=TIGHTEN, timeout_seconds=30)],
)
HISTORY = f"/recipe-history?scope={SCOPE}&id=WM"
QUESTION = "document.querySelector('#questions [data-result={}]')"


async def released(screen: Chromium, browser: Browser, draft: RecipeDraft, reason: str) -> None:
    """Release a draft on its page, by mouse and keyboard."""
    await screen.go(f"{browser.origin}/recipe-release?draft={draft.id}")
    # Before its script has come the form is sent as a form.
    await screen.until("document.readyState === 'complete'")
    await screen.click("form[data-form] input[name=reason]")
    await screen.type(reason)
    await screen.click("form[data-form] button")
    await screen.until(f"location.pathname === '/recipe-history' && document.body.innerText.includes('{reason}')")


async def revision_of(plant: Plant, job_id: str) -> int:
    await plant.until_state(job_id, JobState.RUNNING)
    return (await plant.job(job_id)).recipe.revision


async def test_recipe_is_released_compared_and_rolled_back_while_a_job_runs(
    browser: Browser, screen: Chromium, plant: Plant, desk: Desk, tool: FakeEquipment
) -> None:
    await released(screen, browser, await desk.create(SCOPE, "WM", ANNA, text_of(AXLE)), "the first one")
    for job_id in ("R1", "R2"):
        await plant.order(Cause.STORE_AND_START, order(job_id, "WM"))
        assert await revision_of(plant, job_id) == 1
    await until_true(lambda: tool.received().count("tighten") == 2)
    await plant.answer(tool.commands[-2], {"torque": 85})
    await plant.until_state("R1", JobState.ENDED)

    draft = await desk.create(SCOPE, "WM", ANNA)
    draft, _ = await desk.edit(draft.id, draft.current, InsertAfter("Tighten", "Verify"), ANNA)
    await screen.go(f"{browser.origin}/recipe-compare?draft={draft.id}")
    await screen.until("document.getElementById('compared').naturalWidth > 100")
    assert "step Verify added" in await screen.run("document.querySelector('.differences .added').innerText")
    await screen.click("#replay")
    await screen.until("!document.querySelector('#others').hidden && document.getElementById('progress').hidden")
    others = await screen.run("document.querySelector('#others').innerText")
    assert "R1" in others
    assert "now: tighten completed, leaves Tighten, leaves Verify, enters Verify, enters Done" in others

    await released(screen, browser, draft, "verify each bolt")
    assert await revision_of(plant, "R2") == 1
    await plant.order(Cause.STORE_AND_START, order("R3", "WM"))
    assert await revision_of(plant, "R3") == 2
    await screen.click(".revisions details summary")
    await screen.click(".revisions details input[name=reason]")
    await screen.type("faults of the camera")
    await screen.press("Enter")
    await screen.until("document.querySelector('.released .number')?.innerText === '3'")
    assert "back to 1: faults of the camera" in await screen.run("document.querySelector('.released').innerText")
    await plant.order(Cause.STORE_AND_START, order("R4", "WM"))
    assert [await revision_of(plant, job_id) for job_id in ("R2", "R3", "R4")] == [1, 2, 3]
    assert screen.faults == []


async def test_end_of_a_draft_does_not_lead_away_from_its_history(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    """The page read itself again before the answer had come, found no draft, and went to the jobs."""
    draft = await desk.create(SCOPE, "WM", ANNA, text_of(AXLE))
    await screen.go(f"{browser.origin}/recipe-release?draft={draft.id}")
    await screen.run(
        "{ const known = fetch; window.fetch = async (address, options) => {"
        " const answer = await known(address, options);"
        " if (options?.method === 'POST') await new Promise((done) => setTimeout(done, 2000)); return answer } }"
    )
    await screen.click("form[data-form] input[name=reason]")
    await screen.type("the first one")
    await screen.click("form[data-form] button")
    await screen.until("location.pathname !== '/recipe-release' && document.readyState === 'complete'")
    assert await screen.run("location.pathname") == "/recipe-history"


async def test_trial_page_names_a_list_that_is_cut(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await release_recipe(desk, SCOPE, "WM", LOOP, "first", ANNA, SettingSource.PAGE)
    await screen.go(f"{browser.origin}/recipe-try?scope={SCOPE}&id=WM")
    await screen.until("!document.getElementById('over').hidden && !document.getElementById('truncated').hidden")
    assert "2000" in await screen.run("document.getElementById('truncated').innerText")
    assert "20000" in await screen.run("document.getElementById('over').innerText")


async def test_recipe_is_tried_by_touch_and_the_trial_becomes_a_test(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    await release_recipe(desk, SCOPE, "WM", AXLE, "first", ANNA, SettingSource.PAGE)
    await screen.go(f"{browser.origin}/recipe-try?scope={SCOPE}&id=WM")
    await screen.until(QUESTION.format("ok"))
    await screen.until("document.getElementById('chart').naturalWidth > 100")
    await screen.tap("#questions [data-result=failed]")
    await screen.until("!document.getElementById('over').hidden")
    assert "failed" in await screen.run("document.getElementById('over').innerText")
    await screen.tap("#undo")
    await screen.until(QUESTION.format("ok"))
    await screen.tap("#questions details summary")
    await screen.tap("#questions input[name=member]")
    await screen.type("torque")
    await screen.tap("#questions input[name=value]")
    await screen.type("85")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("!document.getElementById('over').hidden")
    await screen.tap("#earlier")
    await screen.until("document.getElementById('over').hidden")
    await screen.tap("#later")
    await screen.tap("#keep summary")
    await screen.tap("#keep input[name=id]")
    await screen.type("good bolt")
    await screen.press("Enter")
    await screen.until("document.querySelector('#tests .yes')")
    assert "good bolt: passed" in await screen.run("document.querySelector('#tests').innerText")
    draft = await desk.create(SCOPE, "WM", ANNA)
    draft, _ = await desk.edit(draft.id, draft.current, RemoveAction(0), ANNA)
    await screen.go(f"{browser.origin}/recipe-release?draft={draft.id}")
    assert await screen.run("document.querySelector('form[data-form]') === null")
    assert screen.faults == []


CHECKED = recipe(
    "Check Tighten Done Reject",
    [
        transition("Check", "Tighten", "actions.check.result.ok and job.parameters.torque > 80"),
        transition("Check", "Reject", "not actions.check.result.ok", priority=1),
        transition("Tighten", "Done"),
    ],
    [
        action("check", "Check", type_id="check.v1", interaction="pull_event", timeout_seconds=0),
        action("tighten", "Tighten", type_id=TIGHTEN, interventions=["retry", "skip"]),
    ],
)


VERDICT = recipe(
    "Check Done",
    [transition("Check", "Done", "actions.check.done")],
    [action("check", "Check", type_id="check.v1")],
) | {"verdict": "ok"}


async def test_trial_with_a_bad_verdict_is_not_green_and_stays(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """The bar was green, said not_ok, and the answers were gone after a look at another page."""
    await release_recipe(desk, SCOPE, "WM", VERDICT, "first", ANNA, SettingSource.PAGE)
    address = f"{browser.origin}/recipe-try?scope={SCOPE}&id=WM"
    await screen.go(address)
    await screen.until(QUESTION.format("ok"))
    await screen.run("document.querySelector('#questions [data-value=ok]').value = 'false'")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("!document.getElementById('over').hidden")
    assert await screen.run("document.getElementById('over').className") == "banner bad"
    assert "(not OK)" in await screen.run("document.getElementById('over').innerText")
    await screen.go(f"{browser.origin}/recipe-history?scope={SCOPE}&id=WM")
    await screen.go(address)
    await screen.until("!document.getElementById('over').hidden")
    assert "(not OK)" in await screen.run("document.getElementById('over').innerText")
    assert not await screen.run("document.getElementById('undo').disabled")
    assert screen.faults == []


async def test_trial_refuses_a_value_without_a_name(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """It was left out without a word, and so was a name without a value."""
    await release_recipe(desk, SCOPE, "WM", VERDICT, "first", ANNA, SettingSource.PAGE)
    await screen.go(f"{browser.origin}/recipe-try?scope={SCOPE}&id=WM")
    await screen.until(QUESTION.format("ok"))
    await screen.tap("#questions details summary")
    await screen.tap("#questions input[name=value]")
    await screen.type("85")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("document.getElementById('notice').innerText.includes('has no name')")
    assert await screen.run("document.activeElement.name") == "member"
    await screen.type("torque")
    await screen.run("document.querySelector('#questions input[name=value]').value = ''")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("document.getElementById('notice').innerText.includes('has no value')")
    await screen.type("85")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("!document.getElementById('over').hidden")


async def test_bad_event_parameters_and_interventions_are_tried_without_json(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    await release_recipe(desk, SCOPE, "WM", CHECKED, "first", ANNA, SettingSource.PAGE)
    await screen.go(f"{browser.origin}/recipe-try?scope={SCOPE}&id=WM")
    await screen.until(QUESTION.format("ok"))
    await screen.run("document.querySelector('#questions [data-value=ok]').value = 'false'")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("document.getElementById('now-title').innerText.includes('Reject')")
    await screen.tap("#order summary")
    await screen.tap("#order [data-value=torque]")
    await screen.type("85")
    await screen.press("Enter")
    await screen.until("document.getElementById('now-title').innerText.includes('Check')")
    await screen.run("document.querySelector('#questions [data-value=ok]').value = 'true'")
    await screen.tap("#questions [data-result=ok]")
    await screen.until("document.getElementById('now-title').innerText.includes('Tighten')")
    await screen.tap("#questions [data-result=failed]")
    await screen.until("document.querySelector('#questions .person').open")
    await screen.tap("#questions [data-act=retry]")
    await screen.until(QUESTION.format("ok"))
    assert "attempt 2" in await screen.run("document.getElementById('questions').innerText.toLowerCase()")
    await screen.tap("#questions .person summary")
    await screen.tap("#questions .act:has([data-act=skip]) [name=member]")
    await screen.type("torque")
    await screen.tap("#questions .act:has([data-act=skip]) [name=value]")
    await screen.type("83")
    await screen.tap("#questions [data-act=skip]")
    await screen.until("!document.getElementById('over').hidden")
    assert "Done" in await screen.run("document.getElementById('expects').textContent")
    await screen.tap("#keep summary")
    await screen.tap("#keep input[name=id]")
    await screen.type("skipped bolt")
    await screen.press("Enter")
    await screen.until("document.querySelector('#tests .yes')")
    (kept,) = await load_tests(desk.store, "WM")
    assert {"torque": 83} in [
        entry["intervene"].get("data") for entry in kept.script["timeline"] if "intervene" in entry
    ]
    assert screen.faults == []


async def test_file_of_a_plc_is_dropped_and_becomes_a_draft(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await release_recipe(desk, SCOPE, "WM", AXLE, "first", ANNA, SettingSource.PAGE)
    exported = (await browser.logged_in("max")).get(f"/api/v1/recipes/{SCOPE}/WM/revisions/1/plcopen.xml")
    text = (await exported).text
    faulty = text.replace("<SFC>", "<SFC>\n<macroStep localId='99' name='M'/>", 1)
    for content, is_faulty in ((text, False), (faulty, True)):
        await screen.go(f"{browser.origin}/recipes")
        await screen.until("document.getElementById('import')")
        await screen.run(
            f"(() => {{ const data = new DataTransfer(); const text = {json.dumps(content)};"
            " data.items.add(new File([text], 'press.xml'));"
            " document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true}))"
            " })()"
        )
        await screen.until("document.querySelector('#import [name=work_master]').value === 'press'")
        await screen.click("#import button.primary")
        await screen.until("location.pathname === '/recipe-draft'")
        (draft, *_) = [draft for draft in reversed(await desk.drafts()) if draft.work_master == "press"]
        assert bool((await desk.view(draft)).problems) is is_faulty
    await screen.until("document.getElementById('findings').innerText.includes('macro')")
    assert screen.faults == []


async def test_second_file_is_sent_without_the_chart_of_the_first(browser: Browser, screen: Chromium) -> None:
    await screen.go(f"{browser.origin}/recipes")
    charts = '<project><pou name="Press"></pou><pou name="Turn"></pou></project>'
    for name, content in (("two.xml", charts), ("plain.json", text_of(AXLE))):
        await screen.until("document.getElementById('import')")
        await screen.run(
            f"(() => {{ const data = new DataTransfer(); data.items.add(new File([{json.dumps(content)}], '{name}'));"
            " document.getElementById('drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true}))"
            " })()"
        )
        await screen.until(f"document.querySelector('#import .pou').hidden === {str(name != 'two.xml').lower()}")
        if name == "two.xml":
            await screen.click("#import [name=pou]")
            await screen.type("Turn")
    assert await screen.run("document.querySelector('#import [name=pou]').value") == ""


@pytest.mark.parametrize("size", [(1280, 800), (800, 480)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_pages_of_recipes_fit_and_are_accessible(
    browser: Browser, screen: Chromium, desk: Desk, axe: str, size: tuple[int, int], *, dark: bool
) -> None:
    await release_recipe(desk, SCOPE, "WM", AXLE, "first", ANNA, SettingSource.PAGE)
    await release_recipe(desk, SCOPE, "WM", {**AXLE, "title": "Axle"}, "a title", ANNA, SettingSource.MES)
    draft = await desk.create(SCOPE, "WM", ANNA)
    draft, _ = await desk.edit(draft.id, draft.current, InsertAfter("Tighten", "Verify"), ANNA)
    await screen.show(*size, dark=dark, language="de" if dark else "en")
    pages = ("/recipe-try", "/recipe-compare", "/recipe-release")
    for path in (*(f"{page}?draft={draft.id}" for page in pages), HISTORY, "/recipes", f"/recipe?scope={SCOPE}&id=WM"):
        await screen.go(browser.origin + path)
        await screen.until("document.images.length === 0 || [...document.images].every((image) => image.complete)")
        assert not await screen.run(TOO_WIDE), path
        assert await screen.run(SMALL) == [], path
        await screen.run(axe)
        assert await screen.run(VIOLATIONS) == [], path
    assert screen.faults == []
