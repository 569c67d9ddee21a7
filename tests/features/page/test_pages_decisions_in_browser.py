"""A person decides about an unknown outcome at the page: nothing is chosen before, each choice says what follows."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.model.job_state import Cause
from edge.station.equipment import OutcomeUnknown
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser
from tests.passwords import PASSWORD
from tests.station.plant import FakeEquipment, Plant, action, linear, order, until_true

pytestmark = pytest.mark.long

BUTTONS = "[...document.querySelectorAll('.asked[data-kind=unknown] button')]"
TITLED = {"en": "Tighten", "de": "Anziehen"}


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A browser without a login."""
    async with chromium() as found:
        yield found


@pytest_asyncio.fixture
async def bolt(plant: Plant, tool: FakeEquipment) -> Plant:
    """A station that does not know what became of the bolt of J2."""
    step = {"name": "one", "initial": True, "title": {"en": "Bolt 1", "de": "Schraube 1"}}
    recipe = linear(action("a", "one") | {"title": TITLED}) | {"steps": [step]}
    await plant.teach("bolt", recipe)
    await plant.order(Cause.STORE_AND_START, order("J2", "bolt"))
    await until_true(lambda: len(tool.commands) == 2)
    await plant.answers.answer(OutcomeUnknown(tool.commands[1].command_id, "power lost"))
    return plant


@pytest.mark.parametrize("path", ["/", "/job?id=J2"])
async def test_unknown_outcome_asks_to_look_and_prefers_no_choice(
    browser: Browser, screen: Chromium, bolt: Plant, path: str
) -> None:
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.go(browser.origin + path)
    await screen.until(f"{BUTTONS}.length === 3")
    assert "Look at “Bolt 1 – Tighten”, then decide" in await screen.run("document.querySelector('.asked').innerText")
    assert await screen.run("document.querySelectorAll('.asked[data-kind=unknown] .primary').length") == 0
    assert await screen.run(f"new Set({BUTTONS}.map((each) => getComputedStyle(each).backgroundColor)).size") == 1
    effects = await screen.run(f"{BUTTONS}.map((each) => each.querySelector('small').innerText)")
    assert len(set(effects)) == 3
    await screen.run(f"{BUTTONS}[1].click()")
    await screen.until("document.querySelector('#resolve[open]')")
    text = await screen.run("document.getElementById('resolve').innerText")
    assert [part for part in ("Look at “Bolt 1 – Tighten”", "It failed", effects[1]) if part not in text] == []
    assert await screen.run("document.querySelectorAll('#resolve .primary, #resolve [type=radio]').length") == 0
    await screen.run("document.querySelector('#resolve input').focus()")
    await screen.type("the bolt is loose")
    await screen.press("Enter")
    await screen.until("!document.querySelector('.asked[data-kind=unknown]')")
    stored = await bolt.job("J2")
    assert "the bolt is loose" in str(stored.error)
    assert screen.faults == []
