"""Parameters of equipment are chosen in a real browser, and other ones are typed."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import pytest

from edge.features.recipes.desk import Desk
from edge.features.recipes.workbench_requests import text_of
from tests.features.page.chromium import Chromium
from tests.features.page.conftest import browser, clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.recipes.editor_screen import FORM, SMALL_TARGETS, element, open_draft, recipe_of, version
from tests.features.recipes.test_editor_page_in_browser import screen, services  # noqa: F401 - fixtures
from tests.features.recipes.test_offers import TIGHTEN, desk_with_equipment, report
from tests.sfc.recipes import action, chain
from tests.station.plant import Plant

pytestmark = pytest.mark.long
OFFERS = f"[...document.querySelectorAll('{FORM} .pair .offers:not([hidden]) li')].map((item) => item.innerText)"
LAST = f"{FORM} .pair:last-child"


@pytest.fixture
def desk(plant: Plant) -> Desk:
    return desk_with_equipment(plant.store)


async def test_parameter_set_is_chosen_by_its_name_and_free_text_stays(
    browser: Browser, screen: Chromium, desk: Desk
) -> None:
    await report(desk.store, "edge-a", "parameter set 3 (front axle)", "parameter set 5")
    recipe = chain("A B", action("a", "A") | {"type_id": TIGHTEN})
    draft = await open_draft(browser, screen, desk, text_of(recipe))
    await screen.click(element("step", "A"))
    await screen.until(f"document.querySelector('{FORM} .picks button')")
    await screen.click(f"{FORM} .picks button")
    await screen.until(f"document.querySelector('{LAST} [name=parameter]')")
    await screen.click(f"{LAST} [name=parameter]")
    await screen.until(f"{OFFERS}.some((text) => text.startsWith('parameter_set') && text.includes('from 1 to 999'))")
    await screen.click(f"{LAST} .offers li")
    await screen.click(f"{LAST} [name=value]")
    await screen.until(f"{OFFERS}.some((text) => text.startsWith('3') && text.includes('front axle'))")
    assert await screen.run(SMALL_TARGETS) == []
    await screen.press("ArrowDown")
    await screen.press("Enter")
    await screen.press("Enter")
    await version(screen, 2)
    await screen.until(f"document.querySelectorAll('{FORM} .pair').length === 2")
    await screen.click(f"{LAST} [name=parameter]")
    await screen.type("cell")
    await screen.click(f"{LAST} [name=value]")
    await screen.type("C-7")
    await screen.press("Enter")
    await version(screen, 3)
    assert (await recipe_of(desk, draft))["actions"][0]["parameters"] == {"parameter_set": 3, "cell": "C-7"}
    assert screen.faults == []
