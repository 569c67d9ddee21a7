"""The page compares a draft with a revision, and two revisions: chart, words, and what past jobs would have done."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

import pytest_asyncio

from edge.features.recipes.changes import InsertAfter
from edge.features.recipes.desk import Desk
from edge.features.recipes.release import release_draft, release_recipe
from edge.station.settings import SettingSource
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.features.recipes.desks import ANNA, SCOPE, SOUND, TEXT, desk_on
from tests.features.recipes.test_release_page import browser  # noqa: F401 - a fixture
from tests.station.plant import Plant

RECIPE = f"/api/v1/recipes/{SCOPE}/WM"
COMPARE = f"/recipe-compare?scope={SCOPE}&id=WM"


@pytest_asyncio.fixture
async def desk(plant: Plant) -> Desk:
    """The desk of a station whose recipe WM has two revisions: the second one has the step Verify in addition."""
    desk = desk_on(plant.store)
    await release_recipe(desk, SCOPE, "WM", SOUND, "first", ANNA, SettingSource.PAGE)
    draft = await desk.create(SCOPE, "WM", ANNA)
    draft, _ = await desk.edit(draft.id, draft.current, InsertAfter("A", "Verify"), ANNA)
    await release_draft(desk, draft.id, draft.current, "verify", ANNA, SettingSource.PAGE)
    return desk


async def test_released_revision_is_compared_with_the_one_before(browser: Browser) -> None:
    observer = await browser.logged_in("eve")
    page = (await observer.get(COMPARE)).text
    assert '<li class="added"><b aria-hidden="true">+</b><span class="detail">step Verify added</span></li>' in page
    assert f'src="{RECIPE}/difference.svg?old=1&amp;new=2"' in page
    assert "data-replay" not in page
    chart = (await observer.get(f"{RECIPE}/difference.svg?old=1&new=2")).text
    assert '<g class="change added"><title>+ Verify</title>' in chart
    back = (await observer.get(f"{COMPARE}&old=2&new=1")).text
    assert "step Verify removed" in back
    assert "− Verify" in (await observer.get(f"{RECIPE}/difference.svg?old=2&new=1")).text


async def test_draft_is_compared_with_the_revision_of_its_begin(browser: Browser, desk: Desk) -> None:
    draft = await desk.create(SCOPE, "WM", ANNA)
    draft, _ = await desk.edit(draft.id, draft.current, InsertAfter("Verify", "Label"), ANNA)
    engineer, observer = await browser.logged_in("max"), await browser.logged_in("eve")
    address = f"/recipe-compare?draft={draft.id}"
    page = (await engineer.get(address)).text
    assert "step Label added" in page
    assert "step Verify added" not in page
    assert f'data-replay="/api/v1/recipe-drafts/{draft.id}/replay"' in page
    assert "step Verify added" in (await engineer.get(f"{address}&old=1")).text
    chart = f"/api/v1/recipe-drafts/{draft.id}/difference.svg"
    assert "+ Label" in (await engineer.get(chart)).text
    assert "+ Verify" in (await engineer.get(f"{chart}?revision=1")).text
    assert (await observer.get(address)).status == 403
    assert (await observer.get(chart)).status == 403


async def test_draft_that_cannot_be_read_is_named_in_place_of_the_chart(browser: Browser, desk: Desk) -> None:
    draft = await desk.create(SCOPE, "WM", ANNA, "{")
    engineer = await browser.logged_in("max")
    page = (await engineer.get(f"/recipe-compare?draft={draft.id}")).text
    assert "not JSON" in page
    assert "difference.svg" not in page


async def test_recipe_without_another_revision_is_not_compared(browser: Browser, desk: Desk) -> None:
    engineer = await browser.logged_in("max")
    new = await desk.create(SCOPE, "NEW", ANNA, TEXT)
    assert "no other revision" in (await engineer.get(f"/recipe-compare?draft={new.id}")).text
    assert (await engineer.get(f"/recipe-compare?scope={SCOPE}&id=none")).status == 404
    assert (await engineer.get(f"{COMPARE}&old=x")).status == 422
    assert "no such revision" in (await engineer.get(f"{COMPARE}&old=9")).text
