"""A person answers prompts on the card of the job at the station page, by mouse and by keyboard."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.prompts.answering import PromptContext, Prompts
from edge.model.job_state import JobState
from edge.station.active_runs import ActiveRuns
from edge.station.stored_job import find
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.conftest import users  # noqa: F401 - a fixture
from tests.features.page.serving import Browser, services_of, serving
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import CHOOSE, CONFIRM, ENTER, prompt
from tests.passwords import PASSWORD
from tests.station.plant import SCOPE, Plant

pytestmark = pytest.mark.long

SMALL = """[...document.querySelectorAll(".asked button, .asked input")]
  .filter((each) => each.getBoundingClientRect().height < 55.5).map((each) => each.outerHTML)"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest_asyncio.fixture
async def browser(plant: Plant, context: PromptContext, users: Users, tmp_path: Path) -> AsyncIterator[Browser]:  # noqa: F811
    active = ActiveRuns(plant.runs, (SCOPE,))
    port = Prompts(context, (SCOPE,), active.loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port})) as found:
        yield found


@pytest_asyncio.fixture
async def kiosk(plant: Plant, context: PromptContext, users: Users, tmp_path: Path) -> AsyncIterator[Browser]:  # noqa: F811
    """The page of a station that shows itself without a login on its own host."""
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port}, is_kiosk=True)) as found:
        yield found


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A browser without a login."""
    async with chromium() as found:
        yield found


@pytest.mark.parametrize("size", [(1280, 800), (800, 480), (390, 844)])
async def test_button_of_a_choice_answers_on_the_card(
    plant: Plant, browser: Browser, screen: Chromium, size: tuple[int, int]
) -> None:
    await screen.show(*size, language="de")
    await ask(plant, "J1", CHOOSE)
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('.asked button')")
    assert await screen.run("[...document.querySelectorAll('.asked button')].map((each) => each.textContent)") == [
        "Ja",
        "Defective",
    ]
    assert await screen.run(SMALL) == []
    assert not await screen.run(TOO_WIDE)
    await screen.run("document.querySelectorAll('.asked button')[1].click()")
    await screen.until("!document.querySelector('.asked')")
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    (attempt,) = stored.run.associations.values()
    assert (attempt.result, attempt.resolved_by) == ({"choice": "defective"}, "alice")
    assert screen.faults == []


async def test_typed_values_stay_while_the_page_changes(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", ENTER)
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('input[name=mass]')")
    await screen.run("document.querySelector('input[name=mass]').focus()")
    await screen.type("5,5")
    await ask(plant, "J2", CONFIRM)
    await screen.until("document.querySelectorAll('.asked').length === 2")
    assert await screen.run("document.activeElement.name + '=' + document.activeElement.value") == "mass=5,5"
    await screen.press("Tab")
    await screen.type("S1")
    await screen.press("Enter")
    await screen.until("document.querySelectorAll('.asked').length === 1")
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    assert stored.run.variables == {"mass": {"value": 5.5, "unit": "kg"}, "serial": "S1"}
    assert screen.faults == []


async def test_observer_sees_the_prompt_without_buttons(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", prompt("confirm", role="engineer"))
    await screen.log_in(browser.origin, "eve", PASSWORD)
    await screen.until("document.querySelector('.asked')")
    assert await screen.run("document.querySelectorAll('.asked button').length") == 0
    assert "Seat the cable" in await screen.run("document.querySelector('.asked').textContent")


async def test_second_person_is_asked_for_on_the_card(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", prompt("confirm", second_person=True))
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('.asked button')")
    await screen.run("document.querySelector('.asked button').click()")
    await screen.until("document.querySelector('.asked').textContent.includes('Answered by: alice')")
    max_ = await browser.logged_in("max")
    (only,) = (await max_.get("/api/v1/prompts")).json["prompts"]
    await max_.post(f"/api/v1/prompts/{only['id']}/answer", {})
    await screen.until("!document.querySelector('.asked')")
    assert (await plant.job("J1")).status.state is JobState.ENDED


async def test_second_tap_acts_on_no_card_that_slid_under_it(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await screen.show(800, 480)
    for job_id in ("J1", "J2"):
        await ask(plant, job_id, CHOOSE)
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelectorAll('.asked').length === 2")
    place = await screen.place(".asked button + button")
    for _ in range(2):
        await screen.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[place])
        await screen.lift()
        await screen.until("document.querySelectorAll('.asked').length === 1")
    control = f"document.elementFromPoint({place['x']}, {place['y']}).closest('button')"
    assert await screen.run(f"{control} !== null"), "no control of the other card is at this place"
    await screen.until("!document.documentElement.matches('[data-moved]')")
    states = [(await plant.job(job_id)).status.state for job_id in ("J1", "J2")]
    assert sorted(states) == [JobState.RUNNING, JobState.ENDED]
    await screen.tap(".asked button + button")
    await screen.until("!document.querySelector('.asked')")
    assert screen.faults == []


async def test_prompt_states_when_it_times_out_and_counts_down(
    plant: Plant, browser: Browser, screen: Chromium
) -> None:
    await ask(plant, "J1", prompt("confirm", timeout_seconds=90))
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('.asked .tick')?.textContent === '89 s'")
    text = await screen.run("document.querySelector('.job').innerText")
    assert "times out in 89 s" in text
    assert "of 90 s" not in text


async def test_page_of_the_job_asks_and_takes_the_answer(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", prompt("enter", role="operator", text="See the label", fields=[{"name": "serial"}]))
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.go(f"{browser.origin}/job?id=J1")
    await screen.until("document.querySelector('[data-part=head] .asked input[name=serial]')")
    text = await screen.run("document.querySelector('[data-part=head]').innerText")
    assert [part for part in ("Seat the cable", "See the label", "May answer: Operator") if part not in text] == []
    assert "waits for you" in await screen.run("document.querySelector('[data-part=waits]').innerText")
    await screen.click("input[name=serial]")
    await screen.type("S1")
    await screen.press("Enter")
    await screen.until("!document.querySelector('.asked')")
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    assert stored.run.variables == {"serial": "S1"}
    assert screen.faults == []


@pytest.mark.parametrize("path", ["/", "/job?id=J1"])
async def test_stranger_logs_in_to_answer_and_returns_to_the_same_page(
    plant: Plant, kiosk: Browser, screen: Chromium, path: str
) -> None:
    await ask(plant, "J1", CHOOSE)
    await screen.go(f"http://localhost:{kiosk.port}{path}")
    assert await screen.run("document.querySelectorAll('.asked button').length") == 0
    assert await screen.run("document.querySelector('.asked a').innerText") == "Log in to answer"
    await screen.run("document.querySelector('.asked a').click()")
    await screen.until("location.pathname === '/login' && document.readyState === 'complete'")
    await screen.run("document.querySelector('a.back').click()")
    await screen.until(f"location.pathname + location.search === '{path}' && document.readyState === 'complete'")
    await screen.run("document.querySelector('.asked a').click()")
    await screen.until("document.activeElement.name === 'name'")
    for word in ("alice", PASSWORD):
        await screen.type(word)
        await screen.press("Tab")
    await screen.press("Enter")
    await screen.until(f"location.pathname + location.search === '{path}' && document.querySelector('.asked button')")
    assert screen.faults == []
