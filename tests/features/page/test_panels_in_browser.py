"""A panel at the station, for gloves: a real browser at 800 x 480, by touch and by keyboard."""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import Users
from edge.features.page.panels import Panels
from edge.features.page.services import WebServices
from edge.model.job_state import JobState
from edge.ports.alarm import AlarmChangeKind
from edge.store import kept_alarms as alarms
from edge.store.kept_alarms import AlarmChange
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser, services_of, serving
from tests.features.page.test_pages_in_browser import BUTTON, PAGES, TOO_WIDE, VIOLATIONS
from tests.features.page.test_pages_in_browser import axe as axe  # noqa: PLC0414 - a fixture
from tests.features.telemetry.test_page import ALARM
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = pytest.mark.long

PANELS = Panels((ip_network("127.0.0.1"),))
TARGETS = "a, button, input:not([type=radio], [type=checkbox]), select, summary"
SMALL = f"""[...document.querySelectorAll("{TARGETS}")]
  .filter((each) => each.offsetParent && !each.matches(".skip") && each.getBoundingClientRect().height < 63.5)
  .map((each) => each.outerHTML.slice(0, 100))"""
STOP = "[data-hold][data-post$='/stop']"
ABORT = "[data-hold][data-post$='/abort']"
IN_VIEW = "document.querySelector('.user').getBoundingClientRect().bottom > 0"


@pytest.fixture
def services(plant: Plant, users: Users) -> WebServices:
    return services_of(plant, users, most_requests=10_000, panels=PANELS, is_kiosk=True)


@pytest_asyncio.fixture
async def screen(browser: Browser) -> AsyncIterator[Chromium]:
    """A panel at which an operator has logged in."""
    async with chromium() as found:
        await found.show(800, 480)
        await found.log_in(browser.origin, "alice", PASSWORD)
        yield found


@pytest.mark.parametrize("language", ["en", "de", "fr"])
async def test_every_target_of_a_panel_is_twelve_millimetres_high(
    browser: Browser, screen: Chromium, axe: str, language: str
) -> None:
    await screen.show(800, 480, language=language)
    await screen.log_in(browser.origin, "max", PASSWORD)
    for path in PAGES:
        await screen.go(browser.origin + path)
        assert not await screen.run(TOO_WIDE), path
        assert await screen.run(SMALL) == [], path
        await screen.run(axe)
        assert await screen.run(VIOLATIONS) == [], path
    assert screen.faults == []


async def test_job_is_stopped_by_a_button_that_is_held(browser: Browser, screen: Chromium, plant: Plant) -> None:
    await screen.go(f"{browser.origin}/job?id=J1")
    await screen.tap(STOP)
    await screen.touch(STOP)
    await screen.until("document.querySelector('.holding')")
    await screen.lift()
    await screen.until("!document.querySelector('.holding')")
    assert (await plant.job("J1")).status.state is JobState.RUNNING
    await screen.touch(STOP)
    await screen.until("!document.querySelector('[data-hold]')")
    await screen.lift()
    assert not await screen.run("document.querySelector('dialog[open]')")
    assert "alice" in await screen.run("document.querySelector('.banner.stopped').textContent")


async def test_stop_of_a_panel_asks_for_a_reason_where_it_is_wanted(plant: Plant, services: WebServices) -> None:
    async with serving(replace(services, reason_for=("stop",))) as browser, chromium() as screen:
        await screen.show(1280, 800)
        await screen.log_in(browser.origin, "alice", PASSWORD)
        await screen.touch(STOP)
        await screen.until("document.querySelector('#ask[open]')")
        await screen.lift()
        assert await screen.run("document.getElementById('ask-label').textContent") == "Reason"
        await screen.tap("#ask-yes")
        assert await screen.run("document.querySelector('#ask[open] input:invalid') !== null")
        await screen.tap("#ask input")
        for key in ("shift", "O", "i", "l", "done"):
            await screen.tap(f"dialog .keypad [data-key='{key}']")
        await screen.until("!document.querySelector('.keypad')")
        await screen.tap("#ask-yes")
        await screen.until("!document.querySelector('[data-hold]')")
        (remark,) = (await plant.job("J1")).comment
        assert remark.text == "Oil"
        assert screen.faults == []


async def test_job_is_aborted_by_a_key_that_is_held(browser: Browser, screen: Chromium, plant: Plant) -> None:
    await screen.go(f"{browser.origin}/job?id=J1")
    await screen.run(f"document.querySelector({ABORT!r}).focus()")
    await screen.press("Enter")
    assert (await plant.job("J1")).status.state is JobState.RUNNING
    await screen.hold_key(" ", "document.querySelector('.outcome-aborted')")
    assert (await plant.job("J1")).status.state is JobState.ABORTED


async def test_stop_and_abort_of_a_panel_stand_apart(browser: Browser, screen: Chromium) -> None:
    await screen.go(f"{browser.origin}/job?id=J1")
    stop, abort = [
        await screen.run(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
        for selector in (STOP, ABORT)
    ]
    assert abort["left"] - stop["right"] >= 32
    assert stop["left"] - await screen.run(f"{BUTTON.format('Pause')}.getBoundingClientRect().right") >= 32


async def test_keys_on_the_screen_write_a_number_and_a_text(browser: Browser, screen: Chromium, plant: Plant) -> None:
    stored_alarms = await alarms.load(plant.store)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(ALARM, AlarmChangeKind.RAISED)]))
    await screen.go(f"{browser.origin}/alarms")
    await screen.tap("[data-shelve]")
    await screen.tap("#shelve input[name=minutes]")
    for key in ("clear", "4", "5", "back", "done"):
        await screen.tap(f"dialog .keypad [data-key='{key}']")
    await screen.until("document.activeElement.name === 'comment'")
    assert await screen.run("document.activeElement.inputMode") == "none"
    for key in ("shift", "O", "i", "l", "space", "signs", "7", "done"):
        await screen.tap(f"dialog .keypad [data-key='{key}']")
    await screen.until("!document.querySelector('.keypad')")
    await screen.tap("#shelve button.primary")
    await screen.until(BUTTON.format("End silence"))
    shelved = (await alarms.load(plant.store)).alarms["a1"]
    assert shelved.comment == "Oil 7"
    assert screen.faults == []


async def test_station_with_six_alarms_has_few_screens(browser: Browser, screen: Chromium, plant: Plant) -> None:
    """Six alarms made the page 4.6 screens high: equipment and jobs were out of sight."""
    for number in range(6):
        alarm = replace(ALARM, id=f"a{number}", subject=f"tool-{number}")
        change = AlarmChange(alarm, AlarmChangeKind.RAISED)
        await plant.store.commit(alarms.save(plant.store.keys, await alarms.load(plant.store), [change]))
    await screen.go(browser.origin)
    assert await screen.run("document.querySelectorAll('.alarms .alarm').length") == 3
    assert "(6)" in await screen.run("document.querySelector('.wide-button').textContent")
    screens = await screen.run("document.documentElement.scrollHeight / innerHeight")
    assert screens <= 4.0, screens


async def test_user_of_a_panel_is_named_wherever_the_page_is_scrolled(browser: Browser, screen: Chromium) -> None:
    await screen.go(f"{browser.origin}/job?id=J1")
    await screen.run("scrollTo(0, document.body.scrollHeight)")
    assert await screen.run("scrollY") > 0
    assert await screen.run("document.querySelector('.user').innerText.split(/\\s+/).join(' ')") == "alice Operator"
    assert await screen.run(IN_VIEW)


async def test_untouched_panel_shows_the_station_again(plant: Plant, users: Users) -> None:
    short = replace(PANELS, idle_s=3)
    async with serving(services_of(plant, users, panels=short, is_kiosk=True)) as browser, chromium() as screen:
        await screen.show(800, 480)
        await screen.log_in(browser.origin, "alice", PASSWORD)
        await screen.go(f"{browser.origin}/jobs")
        await screen.until("location.pathname === '/' && document.querySelector('.who [href=\"/login\"]')")


@pytest.mark.parametrize("size", [(800, 480), (1280, 800), (1920, 1080)])
async def test_touch_screen_is_a_panel_without_a_setting(plant: Plant, users: Users, size: tuple[int, int]) -> None:
    async with serving(services_of(plant, users)) as browser, chromium() as screen:
        for is_touch, height in ((True, 64), (False, 44)):
            await screen.show(*size)
            await screen.call(
                "Emulation.setTouchEmulationEnabled", enabled=is_touch, maxTouchPoints=5 if is_touch else 1
            )
            await screen.log_in(browser.origin, "alice", PASSWORD)
            await screen.go(f"{browser.origin}/job?id=J1")
            assert await screen.run(f"document.querySelector({STOP!r}).offsetHeight") == height
            assert not await screen.run(TOO_WIDE)
