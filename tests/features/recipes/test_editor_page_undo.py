"""Undo in the editor: where the next command counts, and changes of another person; new actions wait for a choice."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import pytest

from edge.features.recipes.changes import InsertAfter
from edge.features.recipes.desk import Desk
from edge.features.recipes.workbench_requests import text_of
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.recipes.desks import BEN
from tests.features.recipes.editor_screen import (
    CONTROL,
    FORM,
    MAX,
    READY,
    drawn,
    edited,
    element,
    key,
    open_draft,
    pick,
    recipe_of,
    selected,
    version,
)
from tests.features.recipes.test_editor_page_in_browser import screen, services  # noqa: F401 - fixtures
from tests.features.recipes.test_offers import TIGHTEN, desk_with_equipment
from tests.sfc.recipes import chain
from tests.station.plant import Plant

pytestmark = pytest.mark.long
ASKED = "document.querySelector('#foreign[open]')"


@pytest.fixture
def desk(plant: Plant) -> Desk:
    return desk_with_equipment(plant.store)


async def order(desk: Desk, draft: str) -> list[str]:
    """Return the steps along the way from the first one."""
    recipe = await recipe_of(desk, draft)
    following = {way["source"]: way["target"] for way in recipe["transitions"]}
    names = [recipe["steps"][0]["name"]]
    while names[-1] in following:
        names.append(following[names[-1]])
    return names


async def test_insert_after_undo_counts_where_the_focus_is(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """The step came at the end of the chart."""
    draft = await open_draft(browser, screen, desk, text_of(chain("A B C D")))
    await pick(screen, element("step", "B"))
    await key(screen, "Insert")
    await edited(screen, "name")
    await screen.press("Enter")
    await selected(screen, "Step1")
    await key(screen, "z", CONTROL)
    await version(screen, 1)
    await selected(screen, "B")
    await key(screen, "Insert")
    await version(screen, 4)
    assert await order(desk, draft) == ["A", "B", "Step1", "C", "D"]


async def test_insert_without_a_selection_counts_where_the_focus_is(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    draft = await open_draft(browser, screen, desk, text_of(chain("A B C")))
    while await screen.run("document.activeElement.dataset?.key") != "A":
        await screen.press("Tab")
    await key(screen, "Insert")
    await version(screen, 2)
    assert await order(desk, draft) == ["A", "Step1", "B", "C"]


async def test_undo_of_a_change_of_another_person_asks(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """It took the change of a colleague back without a word."""
    draft = (await desk.create("station-1", "WM", MAX, text_of(chain("A B")))).id
    await desk.edit(draft, 1, InsertAfter("A", "Bens"), BEN)
    await screen.go(f"{browser.origin}/recipe-draft?draft={draft}")
    await screen.until(READY)
    await screen.click("[data-command=undo]")
    await screen.until(ASKED)
    asked = await screen.run("document.getElementById('foreign').innerText")
    assert "ben" in asked
    assert "step Bens added" in asked
    await screen.click("#foreign [data-close]")
    await screen.until(f"!{ASKED}")
    assert await order(desk, draft) == ["A", "Bens", "B"]
    await screen.click("[data-command=undo]")
    await screen.until(ASKED)
    await screen.click("#foreign [value=yes]")
    await version(screen, 1)
    assert await order(desk, draft) == ["A", "B"]
    await screen.click("[data-command=redo]")
    await screen.until(ASKED)
    await screen.click("#foreign [value=yes]")
    await drawn(screen, "Bens")
    await pick(screen, element("step", "B"))
    await screen.click("[data-command=step]")
    await version(screen, 5)
    await screen.click("[data-command=undo]")
    await version(screen, 2)
    assert screen.faults == []


async def test_new_action_has_no_command_until_one_is_chosen(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """It was preset to the first command of the station, which may move something."""
    draft = await open_draft(browser, screen, desk, text_of(chain("A B")))
    await pick(screen, element("step", "A"))
    await screen.click("[data-command=action]")
    await edited(screen, "name")
    assert (await recipe_of(desk, draft))["actions"][0]["type_id"] == "?"
    assert await screen.run(f"document.querySelector('{FORM} [name=type_id]').value") == ""
    await screen.until("document.querySelector('.finding.fault')?.innerText.includes('not chosen')")
    await screen.type("fit")
    await screen.press("Enter")
    await edited(screen, "type_id")
    await screen.until(f"document.querySelector('{FORM} .offering .offers:not([hidden]) li')")
    await screen.press("ArrowDown")
    await screen.press("Enter")
    await screen.press("Enter")
    await screen.until("!document.querySelector('.finding.fault')")
    action = (await recipe_of(desk, draft))["actions"][0]
    assert (action["name"], action["type_id"]) == ("fit", TIGHTEN)
    assert screen.faults == []


async def test_offers_leave_the_buttons_of_a_dialog_free(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """The list below the condition covered Add and Close."""
    draft = await open_draft(browser, screen, desk, text_of(chain("A B C")))
    await pick(screen, element("step", "A"))
    await screen.click("[data-command=alternative]")
    await edited(screen, "step")
    await screen.click("#ask-alternative [name=condition]")
    await screen.type("st")
    await screen.until("document.querySelector('#ask-alternative .offers:not([hidden]) li')")
    box = "document.querySelector('#ask-alternative .offers').getBoundingClientRect()"
    assert await screen.run(f"{box}.top >= 0 && {box}.height > 80")
    await screen.click("#ask-alternative .primary")
    await version(screen, 2)
    assert len((await recipe_of(desk, draft))["steps"]) == 4
