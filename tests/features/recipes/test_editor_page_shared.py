"""Two engineers on one draft, its text form, and its accessibility, in a real browser."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import pytest

from edge.features.recipes.changes import InsertAfter
from edge.features.recipes.desk import Desk
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.page.test_pages_in_browser import TOO_WIDE, VIOLATIONS
from tests.features.page.test_pages_in_browser import axe as axe  # noqa: PLC0414 - a fixture
from tests.features.recipes.desks import TEXT
from tests.features.recipes.editor_screen import (
    READY,
    SMALL_TARGETS,
    change_unseen,
    edited,
    element,
    open_draft,
    pick,
    recipe_of,
)
from tests.features.recipes.test_editor_page_in_browser import desk, screen, services  # noqa: F401 - fixtures

pytestmark = pytest.mark.long

BROKEN = '{"steps":\n [}'


async def conflict(browser: Browser, screen: Chromium, desk: Desk) -> str:
    """Open a draft, have another engineer change it, and insert a step: the page asks."""
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await change_unseen(screen, desk, draft, 1, InsertAfter("A", "Bens"))
    await screen.click("[data-command=step]")
    await screen.until("document.querySelector('#conflict[open]')")
    assert "step Bens added" in await screen.run("document.getElementById('conflict-text').textContent")
    return draft


async def names(desk: Desk, draft: str) -> set[str]:
    return {step["name"] for step in (await recipe_of(desk, draft))["steps"]}


async def test_change_is_repeated_on_what_another_engineer_made(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await conflict(browser, screen, desk)
    await screen.click("#conflict [value=repeat]")
    await screen.until(f'document.querySelector("{element("step", "Step1")}")')
    assert await names(desk, draft) == {"A", "B", "Bens", "Step1"}
    assert screen.faults == []


async def test_change_against_another_one_becomes_a_draft_of_its_own(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    draft = await conflict(browser, screen, desk)
    await screen.click("#conflict [value=apart]")
    await screen.until(f"!location.search.includes({draft!r}) && {READY}")
    own = await screen.run("new URLSearchParams(location.search).get('draft')")
    assert await names(desk, own) == {"A", "B", "Step1"}
    assert await names(desk, draft) == {"A", "B", "Bens"}


async def test_change_of_another_engineer_is_shown_at_once(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    ben = await browser.logged_in("max")
    change = {"change": "insert_after", "element": "A", "name": "Bens"}
    assert (await ben.post(f"/api/v1/recipe-drafts/{draft}/change", {"version": 1, "change": change})).status == 200
    await screen.until(f'document.querySelector("{element("step", "Bens")}")')


async def test_faults_of_a_text_have_their_line_and_the_chart_returns(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    draft = await open_draft(browser, screen, desk)
    await screen.click("#tab-text")
    await screen.run("document.getElementById('text').select()")
    await screen.type(BROKEN)
    await screen.click("#apply")
    await screen.until("document.querySelector('.finding.fault')")
    assert "line 2, column" in await screen.run("document.querySelector('.finding.fault').textContent")
    await screen.click(".finding.fault")
    await screen.until("document.activeElement.id === 'text' && document.activeElement.selectionStart > 9")
    assert await desk.text(await desk.draft(draft)) == BROKEN
    await screen.run("document.getElementById('text').select()")
    await screen.type(TEXT.replace('"B"', '"Last"'))
    await screen.click("#tab-chart")
    await screen.until(f'document.querySelector("{element("step", "Last")}")')
    assert screen.faults == []


async def test_fields_left_at_once_are_all_saved(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await screen.press("Enter")
    await edited(screen, "name")
    for text in ("Fit", "Fit the axle"):
        await screen.type(text)
        await screen.press("Tab")
    await pick(screen, element("step", "B"))
    await screen.until(f'document.querySelector("{element("step", "Fit")}")')
    await screen.until("document.getElementById('saved').textContent.endsWith(' 3')")
    steps = {step["name"]: step for step in (await recipe_of(desk, draft))["steps"]}
    assert steps["Fit"]["title"] == "Fit the axle"
    assert await screen.run("document.querySelector('.target[aria-pressed=true]').dataset.key") == "B"


@pytest.mark.parametrize("size", [(1280, 800), (800, 480), (390, 844)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_editor_fits_and_is_accessible(
    browser: Browser, screen: Chromium, desk: Desk, axe: str, size: tuple[int, int], *, dark: bool
) -> None:
    await screen.show(*size, dark=dark, language="de" if dark else "en")
    await open_draft(browser, screen, desk, TEXT.replace("always", "actions.x.done", 1))
    for selector in (element("step", "A"), element("action", "0"), element("transition", "0"), "#tab-text"):
        await screen.run(f'document.querySelector("{selector}")?.scrollIntoView({{block: "center"}})')
        await screen.click(selector)
        assert not await screen.run(TOO_WIDE), selector
        assert await screen.run(SMALL_TARGETS) == [], selector
        # The head of the page covers what is scrolled below it.
        await screen.run("scrollTo(0, 0)")
        await screen.run(axe)
        assert await screen.run(VIOLATIONS) == [], selector
    assert screen.faults == []
