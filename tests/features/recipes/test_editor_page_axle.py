"""The axle recipe of the docs is built in a real browser from an empty sheet: by mouse, and by keyboard alone."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from pathlib import Path
from typing import Any

import pytest

from edge.features.recipes.desk import Desk
from edge.model.json_value import read_json_text
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.recipes.editing import read, ways
from tests.features.recipes.editor_screen import (
    CONTROL,
    FORM,
    READY,
    choose,
    drawn,
    edited,
    element,
    fill,
    go_to,
    key,
    pick,
    recipe_of,
    selected,
)
from tests.features.recipes.test_editor_page_in_browser import desk, screen, services  # noqa: F401 - fixtures

pytestmark = pytest.mark.long

AXLE = Path("edge/features/simulator/recipes/rear-axle.json").read_bytes()
TYPE = "com.example.station.{}.v1"
ACTIONS = [
    ("Positioning", "position_axle", "position", "", "30"),
    ("TightenBolts", "tighten", "tighten", "", "60"),
    ("QaCheck", "camera_qa", "qa_result", "pull_event", "45"),
    ("VerifyTorque", "verify", "torque_result", "pull_event", "15"),
]
"""Step, name, type, interaction and time limit of each action."""


PATHS = {
    "Positioning": [("ArrowDown", "Positioning")],
    "TightenBolts": [("ArrowDown", "TightenBolts")],
    "QaCheck": [("ArrowDown", "Positioning"), ("ArrowRight", "QaCheck")],
    "VerifyTorque": [("ArrowDown", "VerifyTorque")],
}
"""How a person goes to a step with the arrows."""


def meaning(recipe: Any) -> Any:
    """Return a recipe without what does not count: the order of its elements, and what is implied."""
    own = [way for way in recipe["transitions"] if way["source"] == "VerifyTorque"]
    order = [way["target"] for way in sorted(own, key=lambda way: way.get("priority", 0))]
    actions = {action["name"]: action for action in recipe["actions"]}
    return ways(read(recipe)), recipe["branches"], order, actions


async def begin_by_mouse(browser: Browser, screen: Chromium) -> str:
    await screen.go(f"{browser.origin}/recipe-drafts")
    await screen.click("[name=work_master]")
    await screen.type("AXLE")
    await screen.click("[data-begin] button")
    await screen.until(READY)
    draft: str = await screen.run("new URLSearchParams(location.search).get('draft')")
    return draft


async def test_axle_is_built_from_an_empty_sheet_by_mouse(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await begin_by_mouse(browser, screen)
    await pick(screen, element("step", "Start"))
    await fill(screen, "name", "Init")
    for name in ("Positioning", "TightenBolts", "VerifyTorque", "Complete"):
        await screen.click("[data-command=step]")
        await edited(screen, "name")
        await screen.type(name)
    await pick(screen, f"{FORM} h2")
    await screen.until(f'document.querySelector("{element("step", "Complete")}")')
    await pick(screen, element("step", "Positioning"))
    await screen.click("[data-command=parallel]")
    await edited(screen, "step")
    await screen.type("QaCheck")
    await choose(screen, "last", "TightenBolts")
    await screen.click("#ask-parallel [name=name]")
    await screen.run("document.activeElement.select()")
    await screen.type("FitAndQa")
    await screen.click("#ask-parallel .primary")
    await drawn(screen, "QaCheck")
    await pick(screen, element("step", "VerifyTorque"))
    await screen.click("[data-command=alternative]")
    await edited(screen, "step")
    await screen.type("Rejected")
    await screen.click("#ask-alternative .primary")
    await drawn(screen, "Rejected")
    for step, name, type_id, interaction, limit in ACTIONS:
        await pick(screen, element("step", step))
        await screen.click("[data-command=action]")
        await edited(screen, "name")
        await screen.type(name)
        await fill(screen, "type_id", TYPE.format(type_id))
        await fill(screen, "timeout_seconds", limit)
        if interaction:
            await choose(screen, "interaction", interaction)
        if name == "tighten":
            await fill(screen, "parameter", "torque_spec")
            await fill(screen, "value", "85Nm")
        await pick(screen, f"{FORM} h2")
        await screen.until(f"document.querySelector('#paper').textContent.includes('≤ {limit} s')")
    await pick(screen, ".target[data-kind=transition][data-source=VerifyTorque][data-target=Complete]")
    await fill(screen, "condition", "torque_ok =")
    await pick(screen, f"{FORM} h2")
    await screen.click(".finding.fault")
    await edited(screen, "condition")
    assert "at character" in await screen.run("document.querySelector('.finding.fault').textContent")
    await fill(screen, "condition", "torque_ok")
    await pick(screen, f"{FORM} h2")
    await screen.until("!document.querySelector('.finding.fault')")
    assert meaning(await recipe_of(desk, draft)) == meaning(read_json_text(AXLE))
    assert screen.faults == []


async def draw_steps_by_keyboard(browser: Browser, screen: Chromium) -> None:
    await screen.go(f"{browser.origin}/recipe-drafts")
    while await screen.run("document.activeElement.name") != "work_master":
        await screen.press("Tab")
    await screen.type("AXLE")
    await screen.press("Enter")
    await screen.until(READY)
    while await screen.run("document.activeElement.dataset?.key") != "Start":
        await screen.press("Tab")
    await screen.press("Enter")
    await edited(screen, "name")
    await screen.type("Init")
    await screen.press("Enter")
    await selected(screen, "Init")
    for name in ("Positioning", "TightenBolts", "VerifyTorque", "Complete"):
        await key(screen, "Insert")
        await edited(screen, "name")
        await screen.type(name)
        await screen.press("Enter")
        await selected(screen, name)
    await go_to(screen, *PATHS["Positioning"])
    await screen.press("p")
    await edited(screen, "step")
    await screen.type("QaCheck")
    await screen.press("Tab")
    await key(screen, "ArrowDown")
    await screen.press("Tab")
    await screen.type("FitAndQa")
    await screen.press("Enter")
    await selected(screen, "QaCheck")
    await go_to(screen, *PATHS["VerifyTorque"])
    await screen.press("o")
    await edited(screen, "step")
    await screen.type("Rejected")
    await screen.press("Enter")
    await selected(screen, "Rejected")


async def add_actions_by_keyboard(screen: Chromium) -> None:
    for step, name, type_id, interaction, limit in ACTIONS:
        await go_to(screen, *PATHS[step])
        await screen.press("a")
        await edited(screen, "name")
        await screen.type(name)
        await screen.press("Tab")
        await screen.run("document.activeElement.select()")
        await screen.type(TYPE.format(type_id))
        await screen.press("Tab")
        if interaction:
            await key(screen, "ArrowDown")
        await screen.press("Tab")
        await screen.type(limit)
        if name == "tighten":
            await screen.press("Tab")
            await screen.type("torque_spec")
            await screen.press("Tab")
            await screen.type("85Nm")
        await screen.press("Enter")
        await screen.until(f"document.querySelector('#paper').textContent.includes('≤ {limit} s')")


async def correct_condition_by_keyboard(screen: Chromium) -> None:
    await go_to(screen, *PATHS["VerifyTorque"])
    await key(screen, "ArrowDown")
    await screen.until("document.activeElement.dataset.target === 'Complete'")
    await screen.press("Enter")
    await edited(screen, "condition")
    await screen.type("torque_ok =")
    await screen.press("Enter")
    await screen.until("document.querySelector('.finding.fault')")
    while not await screen.run("document.activeElement.matches('.finding')"):
        await screen.press("Tab")
    await screen.press("Enter")
    await edited(screen, "condition")
    await screen.type("torque_ok")
    await screen.press("Enter")
    await screen.until("!document.querySelector('.finding.fault')")


async def test_axle_is_built_from_an_empty_sheet_by_keyboard(browser: Browser, screen: Chromium, desk: Desk) -> None:
    await draw_steps_by_keyboard(browser, screen)
    draft: str = await screen.run("new URLSearchParams(location.search).get('draft')")
    await add_actions_by_keyboard(screen)
    await correct_condition_by_keyboard(screen)
    assert meaning(await recipe_of(desk, draft)) == meaning(read_json_text(AXLE))
    await key(screen, "z", CONTROL)
    await screen.until("document.querySelector('.finding.fault')")
    await key(screen, "y", CONTROL)
    await screen.until("!document.querySelector('.finding.fault')")
    assert screen.faults == []
