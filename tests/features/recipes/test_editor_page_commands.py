"""Every change of a recipe can be made in the editor: structure, actions, transitions, steps and the recipe itself."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from typing import Any

import pytest

from edge.features.recipes.desk import Desk
from edge.features.recipes.workbench_requests import text_of
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.recipes.editor_screen import (
    FORM,
    choose,
    edited,
    element,
    fill,
    key,
    open_draft,
    pick,
    recipe_of,
    version,
)
from tests.features.recipes.test_editor_page_in_browser import desk, screen, services  # noqa: F401 - fixtures
from tests.sfc.recipes import action, chain

pytestmark = pytest.mark.long

LINE = text_of(chain("A B C D", action("a", "B")))


async def more(screen: Chromium, command: str) -> None:
    await screen.click("[popovertarget=more-commands]")
    await screen.click(f"#more-commands [data-command={command}]")


async def open_properties(screen: Chromium) -> None:
    await screen.run(f"document.querySelector('{FORM} details').open = true")


async def leave(screen: Chromium, number: int) -> None:
    """Leave a field by a click next to it, and wait for the version that this makes."""
    await pick(screen, f"{FORM} h2")
    await version(screen, number)


def paths(recipe: Any) -> Any:
    return {branch["name"]: (branch["type"], branch["branches"]) for branch in recipe.get("branches", ())}


async def test_branches_and_paths_are_made_moved_and_removed(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, LINE)
    await pick(screen, element("step", "B"))
    await more(screen, "wrap")
    await edited(screen, "last")
    await choose(screen, "last", "C")
    await screen.click("#ask-wrap .primary")
    await version(screen, 2)
    assert paths(await recipe_of(desk, draft)) == {"Branch1": ("selection", [["B", "C"]])}
    await pick(screen, f"{FORM} [data-command=path]")
    await edited(screen, "step")
    await screen.type("X")
    await screen.press("Tab")
    await screen.type("x > 1")
    await screen.click("#ask-alternative .primary")
    await version(screen, 3)
    await pick(screen, element("branch", "Branch1"))
    await pick(screen, f"{FORM} li:nth-child(2) [data-command=earlier]")
    await version(screen, 4)
    assert paths(await recipe_of(desk, draft))["Branch1"][1] == [["X"], ["B", "C"]]
    await pick(screen, f"{FORM} li:nth-child(1) [data-command=first]")
    await version(screen, 5)
    recipe = await recipe_of(desk, draft)
    assert paths(recipe)["Branch1"][1] == [["Step1", "X"], ["B", "C"]]
    assert ("Branch1", "Step1", "x > 1") in {tuple(way.values())[:3] for way in recipe["transitions"]}
    await pick(screen, element("branch", "Branch1"))
    await pick(screen, f"{FORM} li:nth-child(1) [data-command=remove_path]")
    await version(screen, 6)
    await pick(screen, f"{FORM} [data-command=unwrap]")
    await version(screen, 7)
    assert paths(await recipe_of(desk, draft)) == {}
    assert screen.faults == []


async def test_steps_jumps_and_their_properties_are_changed(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, LINE)
    await pick(screen, element("step", "C"))
    await screen.click("[data-command=jump]")
    await edited(screen, "to")
    await choose(screen, "to", "B")
    await screen.click("#ask-jump [name=condition]")
    await screen.type("actions.a.attempts < 3")
    await screen.click("#ask-jump .primary")
    await version(screen, 2)
    jump = (await recipe_of(desk, draft))["transitions"][-1]
    assert jump == {"source": "C", "target": "B", "condition": "actions.a.attempts < 3", "priority": 1}
    await fill(screen, "place", "2")
    await leave(screen, 3)
    places = {own["target"]: own["priority"] for own in (await recipe_of(desk, draft))["transitions"][2:]}
    assert places == {"D": 1, "B": 2}
    await pick(screen, element("transition", "3"))
    await key(screen, "Delete")
    await version(screen, 4)
    assert len((await recipe_of(desk, draft))["transitions"]) == 3
    await pick(screen, element("step", "A"))
    await more(screen, "before")
    await version(screen, 5)
    await open_properties(screen)
    await fill(screen, "lock", "wrench, fixture")
    await fill(screen, "lock_timeout_seconds", "30")
    await leave(screen, 7)
    await pick(screen, f"{FORM} [name=own_interventions]")
    await version(screen, 8)
    await pick(screen, f"{FORM} [name=interventions][value=force]")
    await version(screen, 9)
    recipe = await recipe_of(desk, draft)
    step = next(step for step in recipe["steps"] if step["name"] == "Step1")
    assert step["initial"]
    assert (step["lock"], step["lock_timeout_seconds"], step["interventions"]) == (["wrench", "fixture"], 30, ["force"])
    await key(screen, "Escape")
    await pick(screen, element("step", "D"))
    await key(screen, "Delete")
    await version(screen, 10)
    assert "D" not in {step["name"] for step in (await recipe_of(desk, draft))["steps"]}
    assert screen.faults == []


async def test_actions_are_changed_moved_copied_and_removed(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, LINE)
    await pick(screen, element("action", "0"))
    await open_properties(screen)
    await choose(screen, "qualifier", "L")
    await version(screen, 2)
    await fill(screen, "duration_seconds", "2.5")
    await fill(screen, "parameter", "torque")
    await fill(screen, "value", "85")
    await leave(screen, 4)
    await choose(screen, "step", "C")
    await version(screen, 5)
    await choose(screen, "copy_to", "D")
    await pick(screen, f"{FORM} [data-command=copy]")
    await version(screen, 6)
    moved, copied = (await recipe_of(desk, draft))["actions"]
    assert (moved["step"], moved["qualifier"], moved["duration_seconds"], moved["parameters"]) == (
        "C",
        "L",
        2.5,
        {"torque": 85},
    )
    assert (copied["step"], copied["parameters"]) == ("D", {"torque": 85})
    await pick(screen, element("action", "0"))
    await key(screen, "Delete")
    await version(screen, 7)
    assert [own["step"] for own in (await recipe_of(desk, draft))["actions"]] == ["D"]
    assert screen.faults == []


async def test_properties_of_the_recipe_are_changed(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk, LINE)
    await fill(screen, "title", "Fit the axle")
    await fill(screen, "verdict", "actions.a.done")
    await pick(screen, f"{FORM} [name=interventions][value=retry]")
    await version(screen, 4)
    recipe = await recipe_of(desk, draft)
    assert (recipe["title"], recipe["verdict"], recipe["interventions"]) == (
        "Fit the axle",
        "actions.a.done",
        ["retry"],
    )
    await fill(screen, "title", "")
    await screen.press("Delete")
    await leave(screen, 5)
    assert "title" not in await recipe_of(desk, draft)
    assert screen.faults == []


async def test_dialog_whose_change_is_refused_keeps_its_fields(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """It closed, and name and condition were to be typed once more."""
    draft = await open_draft(browser, screen, desk, LINE)
    await pick(screen, element("step", "B"))
    await screen.click("[data-command=alternative]")
    await edited(screen, "step")
    await screen.type("D")
    await screen.press("Tab")
    await screen.type("x > 1")
    await screen.click("#ask-alternative .primary")
    refusal = "document.querySelector('#ask-alternative .said').textContent"
    await screen.until(refusal)
    assert "D" in await screen.run(refusal)
    typed = "[...document.querySelectorAll('#ask-alternative [name]')].slice(0, 2).map((field) => field.value)"
    assert await screen.run(typed) == ["D", "x > 1"]
    await screen.click("#ask-alternative [name=step]")
    await screen.run("document.activeElement.select()")
    await screen.type("X")
    await screen.click("#ask-alternative .primary")
    await version(screen, 2)
    await screen.until("!document.querySelector('dialog[open]')")
    assert ("B", "X", "x > 1") in {tuple(way.values())[:3] for way in (await recipe_of(desk, draft))["transitions"]}
    await screen.click("[data-command=alternative]")
    await edited(screen, "step")
    assert not await screen.run(refusal)
    assert screen.faults == []


async def test_value_without_the_name_of_its_parameter_is_refused(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    """It was ignored, and the next change of the action took it from the page."""
    draft = await open_draft(browser, screen, desk, LINE)
    await pick(screen, element("action", "0"))
    await fill(screen, "value", "85")
    await pick(screen, f"{FORM} h2")
    message = "document.getElementById('said').textContent"
    await screen.until(f"{message}.includes('has no name')")
    await screen.click("[data-command=step]")
    await screen.until(f"{message}.includes('has no name')")
    assert await screen.run(f"document.querySelector('{FORM} [name=value]').value") == "85"
    await fill(screen, "parameter", "torque")
    await leave(screen, 2)
    assert not await screen.run(message)
    assert (await recipe_of(desk, draft))["actions"][0]["parameters"] == {"torque": 85}
    await pick(screen, f"{FORM} .pair:last-child [name=value]")
    await screen.type("7")
    await pick(screen, f"{FORM} h2")
    await screen.until(f"{message}.includes('has no name')")
    await pick(screen, f"{FORM} .pair:last-child [name=value]")
    await screen.run("document.activeElement.select()")
    await key(screen, "Delete")
    await pick(screen, f"{FORM} h2")
    await screen.until(f"!{message}")
    assert (await recipe_of(desk, draft))["actions"][0]["parameters"] == {"torque": 85}
    assert screen.faults == []
