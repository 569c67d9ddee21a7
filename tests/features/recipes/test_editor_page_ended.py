"""A draft ends under its editor: another person releases or discards it, and what was typed stays."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import pytest

from edge.features.recipes.desk import Desk
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.page.test_pages_in_browser import TOO_WIDE
from tests.features.recipes.desks import TEXT
from tests.features.recipes.editor_screen import (
    FORM,
    READY,
    SMALL_TARGETS,
    drawn,
    element,
    fill,
    open_draft,
    pick,
    recipe_of,
    version,
)
from tests.features.recipes.test_editor_page_in_browser import desk, screen, services  # noqa: F401 - fixtures

pytestmark = pytest.mark.long

ENDED = "document.querySelector('#ended:not([hidden])')"
TITLE = f"document.querySelector('{FORM} [name=title]').value"


async def release(browser: Browser, draft: str, reason: str = "torque") -> None:
    """Release the draft as another engineer."""
    ben = await browser.logged_in("max")
    answer = await ben.post(f"/api/v1/recipe-drafts/{draft}/release", {"version": 1, "reason": reason})
    assert answer.status == 200, answer.text


async def own_draft(screen: Chromium, former: str) -> str:
    """Begin the draft that the page offers; return its id."""
    await screen.click("#ended button")
    await screen.until(f"!location.search.includes({former!r}) && !{ENDED}")
    own: str = await screen.run("new URLSearchParams(location.search).get('draft')")
    return own


async def test_release_of_a_colleague_keeps_a_field_that_is_typed_in(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    """The page went to the jobs, and the text was lost."""
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await fill(screen, "title", "Fit the axle")
    await release(browser, draft)
    await screen.until(f"{ENDED} || location.pathname === '/jobs'")
    assert await screen.run("location.pathname") == "/recipe-draft"
    banner = await screen.run("document.getElementById('ended').innerText")
    assert "max has released this draft as revision 1: “torque”." in banner
    assert await screen.run(TITLE) == "Fit the axle"
    assert await screen.run(SMALL_TARGETS) == []
    assert not await screen.run(TOO_WIDE)
    own = await own_draft(screen, draft)
    await version(screen, 2)
    steps = {step["name"]: step.get("title") for step in (await recipe_of(desk, own))["steps"]}
    assert steps == {"A": "Fit the axle", "B": None}
    assert (await desk.draft(own)).base == 1
    assert "revision 1" in await screen.run("document.querySelector('.editor-head .state').innerText")
    assert await screen.run(f"[...document.querySelectorAll('.links a')].every((link) => link.href.includes({own!r}))")
    await screen.click("[data-command=step]")
    await drawn(screen, "Step1")
    assert screen.faults == []


async def test_reason_of_a_release_is_shown_as_it_was_written(browser: Browser, screen: Chromium, desk: Desk) -> None:
    """`$&` was replaced by the place of the reason, and `{revision}` by a number."""
    draft = await open_draft(browser, screen, desk)
    await release(browser, draft, "10 $& of $' and {revision}")
    await screen.until(ENDED)
    banner = await screen.run("document.getElementById('ended').innerText")
    assert "max has released this draft as revision 1: “10 $& of $' and {revision}”." in banner


async def test_release_of_a_colleague_keeps_a_text(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await screen.click("#tab-text")
    await screen.run("document.getElementById('text').select()")
    await screen.type(TEXT.replace('"B"', '"Last"'))
    await release(browser, draft)
    await screen.until(f"{ENDED} || location.pathname === '/jobs'")
    assert "Last" in await screen.run("document.getElementById('text').value")
    own = await own_draft(screen, draft)
    assert "Last" in await screen.run("document.getElementById('text').value")
    await screen.click("#apply")
    await version(screen, 2)
    assert {step["name"] for step in (await recipe_of(desk, own))["steps"]} == {"A", "Last"}
    assert screen.faults == []


async def test_command_in_a_released_draft_changes_nothing(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    await pick(screen, element("step", "A"))
    await release(browser, draft)
    await screen.until(ENDED)
    await screen.click("[data-command=step]")
    await screen.until("document.getElementById('said').textContent.includes('no draft')")
    assert await screen.run("location.pathname") == "/recipe-draft"
    assert await screen.run("document.querySelectorAll('.target[data-kind=step]').length") == 2


async def test_discarded_draft_is_continued_with_what_is_shown(browser: Browser, screen: Chromium, desk: Desk) -> None:
    draft = await open_draft(browser, screen, desk)
    ben = await browser.logged_in("max")
    assert (await ben.post(f"/api/v1/recipe-drafts/{draft}/discard", {"version": 1})).status == 200
    await screen.until(f"{ENDED} || location.pathname === '/jobs'")
    assert "discarded" in await screen.run("document.getElementById('ended').innerText")
    own = await own_draft(screen, draft)
    assert await desk.text(await desk.draft(own)) == TEXT


async def test_release_of_a_colleague_keeps_the_page_of_the_release(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    draft = await open_draft(browser, screen, desk)
    await screen.go(f"{browser.origin}/recipe-release?draft={draft}")
    await screen.click("form[data-form] input[name=reason]")
    await screen.type("mine")
    await release(browser, draft)
    await screen.until(f"{ENDED} || location.pathname === '/jobs'")
    assert await screen.run("location.pathname") == "/recipe-release"
    assert "revision 1" in await screen.run("document.getElementById('ended').innerText")
    assert await screen.run("document.querySelector('form[data-form] input[name=reason]').value") == "mine"
    await screen.click("#ended button")
    await screen.until(READY)
    assert (await desk.drafts())[0].base == 1
