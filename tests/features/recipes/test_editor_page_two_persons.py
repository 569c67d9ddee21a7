"""Two engineers change one draft: each change is made of the newest draft, of the element that was meant."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from edge.features.recipes.changes import (
    Change,
    InsertAfter,
    RemoveAction,
    RemoveTransition,
    SetAction,
    SetStep,
)
from edge.features.recipes.desk import Desk
from edge.features.recipes.workbench_requests import text_of
from edge.model.recipe import Step
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.recipes.desks import TEXT
from tests.features.recipes.editing import read
from tests.features.recipes.editor_screen import (
    FORM,
    change_unseen,
    drawn,
    element,
    fill,
    key,
    open_draft,
    pick,
    recipe_of,
    version,
)
from tests.features.recipes.test_editor_page_in_browser import desk, screen, services  # noqa: F401 - fixtures
from tests.sfc.recipes import action, chain, recipe, transition

pytestmark = pytest.mark.long

XYZ = chain("A B", action("x", "A"), action("y", "A", parameters={"torque": 85}), action("z", "A"))
WAYS = [transition("A", "B", "actions.x.done"), transition("B", "A", "actions.x.failed"), transition("B", "C")]
MESSAGE = "document.getElementById('said').textContent"
TYPED = "[document.activeElement.name, document.activeElement.value]"
OPEN = "document.querySelector('#conflict[open]')"


async def answer(screen: Chromium, decision: str) -> None:
    await screen.until(OPEN)
    await screen.click(f"#conflict [value={decision}]")
    await screen.until(f"!{OPEN}")


async def shown_change(browser: Browser, screen: Chromium, draft: str, **change: Any) -> None:
    """Change the draft as another engineer, and wait until the page shows it."""
    ben = await browser.logged_in("max")
    body = {"version": 1, "change": change}
    assert (await ben.post(f"/api/v1/recipe-drafts/{draft}/change", body)).status == 200
    await version(screen, 2)


async def titles(desk: Desk, draft: str) -> dict[str, str | None]:
    return {own["name"]: own.get("title") for own in (await recipe_of(desk, draft))["actions"]}


async def open_title(screen: Chromium, number: int, text: str) -> None:
    """Write a title of an action, and stay in the field."""
    await pick(screen, element("action", str(number)))
    await screen.run(f"document.querySelector('{FORM} details').open = true")
    await fill(screen, "title", text)


async def test_text_of_an_older_version_asks(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await screen.click("#tab-text")
    await screen.run("document.getElementById('text').select()")
    await screen.type(TEXT.replace('"B"', '"Last"'))
    await shown_change(browser, screen, draft, change="insert_after", element="A", name="Bens")
    await screen.click("#apply")
    await screen.until(OPEN)
    assert "step Bens added" in await screen.run("document.getElementById('conflict-text').textContent")
    assert await screen.run("document.querySelector('#conflict [value=repeat]').hidden")
    await answer(screen, "drop")
    await screen.until("document.getElementById('text').value.includes('Bens')")
    assert {step["name"] for step in (await recipe_of(desk, draft))["steps"]} == {"A", "B", "Bens"}
    assert screen.faults == []


@pytest.mark.parametrize("other", [RemoveAction(0), SetAction(1, replace(read(XYZ).actions[1], timeout_seconds=7))])
async def test_repeated_change_finds_its_action(browser: Browser, screen: Chromium, desk: Desk, other: Change) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await open_title(screen, 1, "Turn")
    await change_unseen(screen, desk, draft, 1, other)
    await screen.press("Enter")
    await answer(screen, "repeat")
    await version(screen, 3)
    assert await titles(desk, draft) in ({"y": "Turn", "z": None}, {"x": None, "y": "Turn", "z": None})
    found = {own["name"]: own for own in (await recipe_of(desk, draft))["actions"]}
    assert found["y"]["timeout_seconds"] == (7 if isinstance(other, SetAction) else 10)
    assert screen.faults == []


async def test_repeated_property_keeps_those_of_another_person(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await fill(screen, "title", "Fit")
    await change_unseen(screen, desk, draft, 1, SetStep("A", Step("A", lock=("wrench",))))
    await screen.press("Enter")
    await answer(screen, "repeat")
    await version(screen, 3)
    step = (await recipe_of(desk, draft))["steps"][0]
    assert (step["title"], step["lock"]) == ("Fit", ["wrench"])


async def test_repeated_parameter_keeps_those_of_another_person(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    own = read(XYZ).actions[1]
    await pick(screen, element("action", "1"))
    await screen.run(f"document.querySelector('{FORM} .pair:last-child [name=parameter]').focus()")
    await screen.type("program")
    await screen.press("Tab")
    await screen.type("4")
    await change_unseen(screen, desk, draft, 1, SetAction(1, replace(own, parameters={"torque": 90, "angle": 30})))
    await screen.press("Enter")
    await answer(screen, "repeat")
    await version(screen, 3)
    assert (await recipe_of(desk, draft))["actions"][1]["parameters"] == {"torque": 90, "angle": 30, "program": 4}


async def test_field_is_saved_in_its_action_after_a_refresh(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await open_title(screen, 1, "Turn")
    await shown_change(browser, screen, draft, change="remove_action", number=0)
    await screen.press("Enter")
    await version(screen, 3)
    assert await titles(desk, draft) == {"y": "Turn", "z": None}
    assert screen.faults == []


async def test_same_field_after_a_refresh_asks(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """The text of another person in the same field was saved over without a question."""
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await open_title(screen, 1, "Turn")
    other = json.loads(msgspec.json.encode(replace(read(XYZ).actions[1], title="Screw")))
    await shown_change(browser, screen, draft, change="set_action", number=1, action=other)
    await screen.press("Enter")
    await screen.until(OPEN)
    assert "title changed from (default) to Screw" in await screen.run(
        "document.getElementById('conflict-text').textContent"
    )
    assert (await titles(desk, draft))["y"] == "Screw"
    await answer(screen, "repeat")
    await version(screen, 3)
    assert (await titles(desk, draft))["y"] == "Turn"
    await open_title(screen, 1, "Turn twice")
    await screen.press("Enter")
    await version(screen, 4)
    assert screen.faults == []


async def test_delete_after_a_refresh_removes_what_is_selected(browser: Browser, screen: Chromium, desk: Desk) -> None:
    text = text_of(recipe("A B C", WAYS, [action("x", "A")]))
    draft = await open_draft(browser, screen, desk, text)
    await pick(screen, element("transition", "1"))
    await shown_change(browser, screen, draft, change="insert_on", transition=0, name="Bens")
    await change_unseen(screen, desk, draft, 2, RemoveTransition(0))
    await key(screen, "Delete")
    await answer(screen, "repeat")
    await version(screen, 4)
    ends = [(way["source"], way["target"]) for way in (await recipe_of(desk, draft))["transitions"]]
    assert sorted(ends) == [("B", "C"), ("Bens", "B")]
    assert screen.faults == []


async def test_field_of_a_removed_action_is_refused(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await pick(screen, element("action", "0"))
    await fill(screen, "name", "fit")
    await shown_change(browser, screen, draft, change="remove_action", number=0)
    await screen.until(f"{MESSAGE}.includes('has removed')")
    await pick(screen, element("step", "A"))
    await screen.click("[data-command=step]")
    await drawn(screen, "Step1")
    assert await titles(desk, draft) == {"y": None, "z": None}
    assert screen.faults == []


async def test_text_stays_in_the_field_of_a_removed_element(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """The field was closed without a question, and its text was gone; `$&` in the text was replaced."""
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await open_title(screen, 0, "Turn the nut $&")
    await shown_change(browser, screen, draft, change="remove_action", number=0)
    await screen.until(f"{MESSAGE}.includes('Turn the nut')")
    assert "Turn the nut $&" in await screen.run(MESSAGE)
    assert await screen.run(TYPED) == ["title", "Turn the nut $&"]
    ben = await browser.logged_in("max")
    assert (await ben.post(f"/api/v1/recipe-drafts/{draft}/undo", {"version": 2})).status == 200
    await version(screen, 1)
    await screen.press("Enter")
    await version(screen, 4)
    assert (await titles(desk, draft))["x"] == "Turn the nut $&"
    assert screen.faults == []


async def test_text_of_a_removed_element_is_shown_after_its_field(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await open_title(screen, 0, "Turn the nut")
    await shown_change(browser, screen, draft, change="remove_action", number=0)
    await pick(screen, element("step", "B"))
    await screen.until(f"document.querySelector('{FORM}').dataset.kind === 'step'")
    assert "Turn the nut" in await screen.run(MESSAGE)


@pytest.mark.parametrize(
    "change",
    [
        {"change": "insert_on", "transition": 0, "name": "Bens"},
        {"change": "rename_element", "name": "B", "to": "Bens"},
        {"change": "insert_before", "element": "B", "name": "Bens"},
    ],
    ids=["step inserted", "end renamed", "step before its end"],
)
async def test_condition_stays_in_its_way_whose_end_changes(
    browser: Browser, screen: Chromium, desk: Desk, change: dict[str, Any]
) -> None:
    draft = await open_draft(browser, screen, desk, text_of(recipe("A B C", WAYS, [action("x", "A")])))
    await pick(screen, element("transition", "0"))
    await fill(screen, "condition", "actions.x.done and torque > 3")
    await shown_change(browser, screen, draft, **change)
    assert await screen.run(TYPED) == ["condition", "actions.x.done and torque > 3"]
    await screen.press("Enter")
    await version(screen, 3)
    ways = {(way["source"], way["target"]): way["condition"] for way in (await recipe_of(desk, draft))["transitions"]}
    assert ways["A", "Bens"] == "actions.x.done and torque > 3"
    assert screen.faults == []


async def test_title_stays_in_its_step_that_is_renamed(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await fill(screen, "title", "Fit the axle")
    await shown_change(browser, screen, draft, change="rename_element", name="A", to="Fit")
    await screen.press("Enter")
    await version(screen, 3)
    steps = {step["name"]: step.get("title") for step in (await recipe_of(desk, draft))["steps"]}
    assert steps == {"Fit": "Fit the axle", "B": None}


async def test_title_stays_in_its_action_that_is_moved(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await open_title(screen, 0, "Turn")
    other = json.loads(msgspec.json.encode(replace(read(XYZ).actions[0], step="B")))
    await shown_change(browser, screen, draft, change="set_action", number=0, action=other)
    await screen.press("Enter")
    await version(screen, 3)
    assert (await titles(desk, draft))["x"] == "Turn"


async def test_text_stays_while_the_draft_cannot_be_drawn(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await fill(screen, "title", "Fit the axle")
    ben = await browser.logged_in("max")
    body = {"version": 1, "text": "{"}
    assert (await ben.post(f"/api/v1/recipe-drafts/{draft}/text", body)).status == 200
    await version(screen, 2)
    assert await screen.run(f"document.querySelector('{FORM} [name=title]').checkVisibility()")
    assert await screen.run(TYPED) == ["title", "Fit the axle"]


async def test_repeated_name_of_a_removed_action_is_refused(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, text_of(XYZ))
    await pick(screen, element("action", "0"))
    await fill(screen, "name", "fit")
    await change_unseen(screen, desk, draft, 1, RemoveAction(0))
    await screen.press("Enter")
    await answer(screen, "repeat")
    await screen.until(f"{MESSAGE}.includes('has removed')")
    await pick(screen, element("step", "A"))
    await screen.click("[data-command=step]")
    await drawn(screen, "Step1")
    assert await titles(desk, draft) == {"y": None, "z": None}
    assert screen.faults == []


async def test_changes_behind_a_conflict_wait_for_its_decision(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    fields = {"name": "Fit", "title": "Fit the axle"}
    await change_unseen(screen, desk, draft, 1, InsertAfter("A", "Bens"))
    await screen.run(
        f"for (const [name, value] of Object.entries({json.dumps(fields)})) {{"
        f" const field = document.querySelector(`{FORM} [name=${{name}}]`); field.value = value;"
        " for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, {bubbles: true})) }"
    )
    await answer(screen, "repeat")
    await version(screen, 4)
    assert not await screen.run(f"Boolean({OPEN})")
    steps = {step["name"]: step.get("title") for step in (await recipe_of(desk, draft))["steps"]}
    assert steps == {"Fit": "Fit the axle", "Bens": None, "B": None}
    assert screen.faults == []


async def test_refused_change_leaves_no_draft_of_its_own(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await fill(screen, "name", "B")
    await change_unseen(screen, desk, draft, 1, InsertAfter("A", "Bens"))
    await screen.press("Enter")
    await answer(screen, "apart")
    await screen.until(f"{MESSAGE}.includes('used already')")
    assert [own.id for own in await desk.drafts()] == [draft]


async def test_undo_does_not_undo_another_person(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await screen.click("[data-command=step]")
    await drawn(screen, "Step1")
    await change_unseen(screen, desk, draft, 2, InsertAfter("A", "Bens"))
    await screen.click("[data-command=undo]")
    await screen.until(OPEN)
    assert await screen.run("document.querySelector('#conflict [value=repeat]').hidden")
    await answer(screen, "drop")
    await drawn(screen, "Bens")
    assert len((await recipe_of(desk, draft))["steps"]) == 4


async def test_new_steps_of_two_persons_have_names_of_their_own(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "B"))
    await change_unseen(screen, desk, draft, 1, InsertAfter("A", "Step1"))
    await screen.click("[data-command=step]")
    await answer(screen, "repeat")
    await drawn(screen, "Step2")
    assert {step["name"] for step in (await recipe_of(desk, draft))["steps"]} == {"A", "B", "Step1", "Step2"}


async def test_emptied_condition_has_no_fault(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await open_draft(browser, screen, desk)
    await pick(screen, element("transition", "0"))
    await fill(screen, "condition", "x >")
    invalid = f"document.querySelector('{FORM} [name=condition][aria-invalid=true]')"
    await screen.until(f"{invalid} && document.querySelector('{FORM} .field-fault').textContent")
    await screen.run("document.activeElement.select()")
    await screen.press("Delete")
    await screen.run("document.execCommand('delete')")
    await screen.until(f"!{invalid} && !document.querySelector('{FORM} .field-fault').textContent")
