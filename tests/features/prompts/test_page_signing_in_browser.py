"""At a panel of 800 x 480 people log in by PIN and by badge, and sign what a recipe asks, by touch and by reader."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.access.login import FREE_OF_ADDRESS, Users
from edge.access.users import write_user
from edge.features.prompts.answering import PromptContext, Prompts
from edge.model.job_state import JobState
from edge.station.active_runs import ActiveRuns
from edge.station.stored_job import find
from tests.access.test_login_at_panels import ANNA, BADGE, PIN
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.conftest import users  # noqa: F401 - a fixture
from tests.features.page.serving import Browser, services_of, serving
from tests.features.page.test_caller_signatures import PANELS
from tests.features.prompts.conftest import ask
from tests.features.prompts.recipes import ENTER, prompt
from tests.passwords import PASSWORD
from tests.station.plant import SCOPE, Plant

pytestmark = pytest.mark.long

USER = "document.querySelector('.user span')?.textContent"
TOO_LARGE = """document.documentElement.scrollWidth > innerWidth
  || [...document.querySelectorAll("dialog[open], .pin-form")]
    .some((each) => each.getBoundingClientRect().bottom > innerHeight)"""


@pytest_asyncio.fixture
async def browser(plant: Plant, context: PromptContext, users: Users, tmp_path: Path) -> AsyncIterator[Browser]:  # noqa: F811
    write_user(tmp_path / "users", ANNA)
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    async with serving(services_of(plant, users, ports={"prompts": port}, panels=PANELS, is_kiosk=True)) as found:
        yield found


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A panel in German, without a login."""
    async with chromium() as found:
        await found.show(800, 480, language="de")
        yield found


async def test_name_and_pin_are_touched_to_log_in(browser: Browser, screen: Chromium) -> None:
    await screen.go(f"{browser.origin}/login")
    await screen.until("document.querySelector('.pin-keys .keypad')")
    assert not await screen.run(TOO_LARGE)
    for pin in ("0000", PIN):
        await screen.tap(".name")
        for digit in pin:
            await screen.tap(f".keypad [data-key='{digit}']")
        await screen.tap(".keypad [data-key='done']")
        if pin == "0000":
            await screen.until(
                "document.querySelector('.banner.bad[role=alert]:not([hidden])')?.textContent.includes('PIN')"
            )
            await screen.until("document.querySelector('.pin-keys .keypad')")
    await screen.until(f"location.pathname === '/' && {USER} === 'anna'")
    assert screen.faults == []


async def test_badge_changes_the_user_and_reaches_no_field(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", ENTER)
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('input[name=note]')")
    await screen.run("document.querySelector('input[name=note]').focus()")
    await screen.run("addEventListener('input', (event) => sessionStorage.setItem('leak', event.target.value))")
    await screen.scan(BADGE)
    await screen.until(f"{USER} === 'anna'")
    assert await screen.run("sessionStorage.getItem('leak')") is None
    await screen.until("document.querySelector('input[name=note]')")
    await screen.run("document.querySelector('input[name=note]').focus()")
    await screen.press("o")
    await screen.until("document.activeElement.value === 'o'")
    await screen.press("k")
    await screen.until("document.activeElement.value === 'ok'")
    assert screen.faults == []


async def test_badge_in_a_field_to_scan_is_the_badge(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", ENTER)
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('input[name=mass]')")
    await screen.run("document.querySelector('input[name=mass]').focus()")
    await screen.type("5.5")
    await screen.run("document.querySelector('input[name=serial]').focus()")
    await screen.scan(BADGE)
    await screen.until(f"{USER} === 'anna'")
    assert (await plant.job("J1")).status.state is JobState.RUNNING
    await screen.until("document.querySelector('input[name=mass]')?.value === '5.5'")
    assert await screen.run("document.querySelector('input[name=serial]').value") == ""
    await screen.run("document.querySelector('input[name=serial]').focus()")
    await screen.scan("SN4711-0815")
    await screen.until("!document.querySelector('.asked')")
    stored = await find(plant.store, "J1")
    assert stored
    assert stored.run
    assert stored.run.variables["serial"] == "SN4711-0815"
    assert screen.faults == []


async def test_code_that_is_not_a_badge_reaches_the_field(plant: Plant, browser: Browser, screen: Chromium) -> None:
    await ask(plant, "J1", ENTER)
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('input[name=note]')")
    await screen.run("document.querySelector('input[name=note]').focus()")
    await screen.scan("LOT-4711")
    await screen.until("document.querySelector('input[name=note]').value === 'LOT-4711'")
    assert await screen.run(USER) == "alice"
    assert await screen.run("document.getElementById('notice').hidden")
    assert screen.faults == []


async def test_code_reaches_the_field_while_badges_wait(
    plant: Plant,
    context: PromptContext,
    screen: Chromium,
    users: Users,  # noqa: F811, ARG001 - it has written the users
    tmp_path: Path,
) -> None:
    port = Prompts(context, (SCOPE,), ActiveRuns(plant.runs, (SCOPE,)).loaded.values, str(tmp_path))
    stopped = Users(tmp_path / "users", lambda: 0.0)
    for _ in range(FREE_OF_ADDRESS):
        await stopped.log_in_with_badge("LOT-4710", "127.0.0.1")
    async with serving(services_of(plant, stopped, ports={"prompts": port}, panels=PANELS)) as browser:
        await ask(plant, "J1", ENTER)
        await screen.log_in(browser.origin, "alice", PASSWORD)
        await screen.until("document.querySelector('input[name=note]')")
        await screen.run("document.querySelector('input[name=note]').focus()")
        await screen.scan("LOT-4711")
        await screen.until("document.querySelector('input[name=note]').value === 'LOT-4711'")
        await screen.until("!document.getElementById('notice').hidden")
        assert await screen.run(USER) == "alice"


async def test_prompt_is_signed_by_pin_and_by_badge(plant: Plant, browser: Browser, screen: Chromium) -> None:
    for number, by in enumerate(("pin", "badge")):
        await ask(plant, f"J{number}", prompt("confirm", sign="any"))
        await screen.go(browser.origin)
        await screen.tap(".asked [data-sign]")
        await screen.until("document.querySelector('#sign[open] .keypad')")
        assert not await screen.run(TOO_LARGE)
        if by == "pin":
            await screen.tap("#sign .name")
            for digit in PIN:
                await screen.tap(f"#sign [data-key='{digit}']")
            await screen.tap("#sign [data-key='done']")
        else:
            await screen.scan(BADGE)
        await screen.until("!document.querySelector('.asked')")
        assert (await plant.job(f"J{number}")).status.state is JobState.ENDED
    # There is no login: the signature was for one answer.
    assert await screen.run(USER) is None
    assert screen.faults == []
