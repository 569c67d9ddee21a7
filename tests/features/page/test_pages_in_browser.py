"""A real browser shows every page at three sizes, and people work with it by mouse and by keyboard alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import Users
from edge.config import UsersSettings
from edge.features.page.server import ConnectionBounds, WebAddress, build_app, serve
from edge.features.page.services import WebServices
from edge.model.job_state import Cause, SubState
from edge.model.plant import PublicMaintenance
from edge.ports.alarm import AlarmChangeKind
from edge.station.decision import second_person
from edge.store import kept_alarms as alarms
from edge.store.kept_alarms import AlarmChange
from tests.conftest import WaitUntil
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import ATTACK, Browser, services_of, serving
from tests.features.telemetry.test_page import ALARM
from tests.passwords import PASSWORD
from tests.station.plant import Plant, action, linear, order

pytestmark = pytest.mark.long

SIZES = [(800, 480), (1280, 800), (390, 844)]
PAGES = [
    "/",
    "/jobs",
    "/job?id=J1",
    f"/job?id={quote(ATTACK, safe='')}",
    "/recipes",
    "/recipe?scope=station-1&id=linear",
    "/recipe-check",
    "/alarms",
    "/tags",
    "/flows",
    "/results",
    "/gateway",
    "/equipment",
    "/messages",
    "/audit",
    "/users",
    "/backups",
    "/doctor",
    "/log",
    "/api",
    "/none",
]
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"
SMALL = """[...document.querySelectorAll("a, button, input, select, summary")]
  .filter((each) => each.offsetParent && !each.matches(".skip") && each.getBoundingClientRect().height < 43.5)
  .map((each) => each.outerHTML.slice(0, 100))"""
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}"
VIOLATIONS = f"axe.run({RULES}).then((found) => found.violations.map((each) => each.id + ' ' + each.nodes[0].html))"
BUTTON = "[...document.querySelectorAll('button')].find((each) => each.textContent.trim() === '{}')"


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, which `make setup` installs."""
    return Path(".node/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def services(plant: Plant, users: Users) -> WebServices:
    plant.runs.context = replace(
        plant.runs.context, second_person=second_person(UsersSettings(second_person=("skip",)))
    )
    return services_of(plant, users, most_requests=10_000)


@pytest_asyncio.fixture
async def screen() -> AsyncIterator[Chromium]:
    """A browser without a login."""
    async with chromium() as found:
        yield found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_page_fits_and_is_accessible(
    browser: Browser, screen: Chromium, axe: str, size: tuple[int, int], *, dark: bool
) -> None:
    await screen.show(*size, dark=dark, language="de" if dark else "en")
    await screen.log_in(browser.origin, "max", PASSWORD)
    for path in PAGES:
        await screen.go(browser.origin + path)
        assert not await screen.run(TOO_WIDE), path
        assert await screen.run(SMALL) == [], path
        await screen.run(axe)
        assert await screen.run(VIOLATIONS) == [], path
    assert screen.faults == []


async def test_change_appears_without_a_reload(browser: Browser, screen: Chromium, plant: Plant) -> None:
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.until("document.querySelector('.state.Running')")
    await plant.ask(Cause.PAUSE, "J1")
    await screen.until("document.querySelector('.state.Interrupted')")
    await screen.go(f"{browser.origin}/alarms")
    await screen.until("document.querySelector('.empty')")
    stored_alarms = await alarms.load(plant.store)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(ALARM, AlarmChangeKind.RAISED)]))
    await screen.until("document.body.textContent.includes('too hot')")


LATER = """{
  const Original = EventSource;
  window.EventSource = class extends EventTarget {
    constructor(address) {
      super();
      window.connect = () => {
        const real = new Original(address);
        real.addEventListener("open", () => this.dispatchEvent(new Event("open")));
        const pass = ({ data }) => this.dispatchEvent(new MessageEvent("change", { data }));
        real.addEventListener("change", pass);
      };
    }
    close() {}
  };
}"""
"""Connects the stream of changes when a test says so."""


async def test_change_before_the_stream_is_open_appears(browser: Browser, screen: Chromium, plant: Plant) -> None:
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.call("Page.addScriptToEvaluateOnNewDocument", source=LATER)
    await screen.go(browser.origin)
    await screen.until("document.querySelector('.state.Running') && window.connect")
    await plant.ask(Cause.PAUSE, "J1")
    await screen.run("connect()")
    await screen.until("document.querySelector('.state.Interrupted')")


async def test_maintenance_banner_stays_visible_after_a_reload(
    services: WebServices, screen: Chromium, wait_until: WaitUntil
) -> None:
    now = services.status(())
    modes = [PublicMaintenance(on=False)]
    changing = replace(services, status=lambda _: replace(now, maintenance=modes[-1]))
    async with serving(changing) as browser:
        await screen.log_in(browser.origin, "max", PASSWORD)
        await screen.go(f"{browser.origin}/gateway")
        await wait_until(lambda: services.events.subscribers == 1)
        await screen.run("window.kept = true")
        modes.append(PublicMaintenance(on=True, message="New cable"))
        services.events.note_mode(None)
        await screen.until("document.querySelector('[data-part=mode]').innerText.includes('New cable')")
        assert await screen.run("window.kept && scrollY === 0")


async def test_alarm_is_acknowledged_with_the_keyboard_alone(browser: Browser, screen: Chromium, plant: Plant) -> None:
    stored_alarms = await alarms.load(plant.store)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(ALARM, AlarmChangeKind.RAISED)]))
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.go(f"{browser.origin}/alarms")
    for _ in range(60):
        await screen.press("Tab")
        if await screen.run("document.activeElement.textContent.trim()") == "Acknowledge":
            break
    assert await screen.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    await screen.press("Enter")
    await screen.until(f"!{BUTTON.format('Acknowledge')}")
    assert (await alarms.load(plant.store)).alarms["a1"].by == "alice"


async def test_one_alarm_is_acknowledged_with_a_comment(browser: Browser, screen: Chromium, plant: Plant) -> None:
    stored_alarms = await alarms.load(plant.store)
    await plant.store.commit(alarms.save(plant.store.keys, stored_alarms, [AlarmChange(ALARM, AlarmChangeKind.RAISED)]))
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.go(f"{browser.origin}/alarms")
    await screen.run(f"{BUTTON.format('With comment')}.click()")
    await screen.until("document.querySelector('#ask[open]')")
    assert await screen.run("document.getElementById('ask-yes').textContent") == "Acknowledge"
    await screen.run("document.querySelector('#ask input').value = 'fan was off'")
    await screen.run("document.getElementById('ask-yes').click()")
    await screen.until("document.querySelector('.alarm q')?.textContent === 'fan was off'")
    alarm = (await alarms.load(plant.store)).alarms["a1"]
    assert (alarm.by, alarm.comment) == ("alice", "fan was off")


CHOOSE = """((text) => {
  const files = new DataTransfer();
  files.items.add(new File([text], "recipe.json"));
  document.getElementById("recipe").files = files.files;
  document.getElementById("recipe").dispatchEvent(new Event("change"));
})(TEXT)"""
FAULTLESS = "document.getElementById('no-faults').checkVisibility()"


async def test_file_that_is_not_json_shows_no_result_of_the_one_before(browser: Browser, screen: Chromium) -> None:
    """The former "No faults." stood below the problem of the new file."""
    await screen.log_in(browser.origin, "max", PASSWORD)
    await screen.go(f"{browser.origin}/recipe-check")
    recipe = json.dumps(linear(action("a", "one"), action("b", "two")))
    await screen.run(CHOOSE.replace("TEXT", json.dumps(recipe)))
    await screen.until(FAULTLESS)
    await screen.run(CHOOSE.replace("TEXT", '"{"'))
    await screen.until("!document.getElementById('problem').hidden")
    assert not await screen.run(FAULTLESS)


async def test_intervention_needs_a_second_person(browser: Browser, screen: Chromium, plant: Plant) -> None:
    await plant.teach("helped", linear(action("a", "one") | {"interventions": ["skip"]}))
    await plant.order(Cause.STORE_AND_START, order("J2", "helped"))
    for name in ("alice", "max"):
        await screen.log_in(browser.origin, name, PASSWORD)
        await screen.go(f"{browser.origin}/job?id=J2")
        await screen.until("document.querySelector('[data-intervene]')")
        await screen.run("document.querySelector('details:has([data-intervene])').open = true")
        await screen.run("document.querySelector('[data-intervene]').click()")
        await screen.until("document.querySelector('#intervene[open] input')")
        await screen.run("document.querySelector('#intervene[open] input').focus()")
        await screen.type(f"seen by {name}")
        await screen.press("Enter")
        if name == "alice":
            await screen.until("document.getElementById('notice').textContent.includes('Another person')")
            await screen.run("document.querySelector('form[action=\"/logout\"] button').click()")
            await screen.until("location.pathname === '/login' && document.readyState === 'complete'")
    await screen.until("!document.querySelector('[data-intervene]')")
    assert not await screen.run("!document.getElementById('notice').hidden")


async def test_job_is_paused_and_aborted_after_confirmation(browser: Browser, screen: Chromium, plant: Plant) -> None:
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await screen.go(f"{browser.origin}/job?id=J1")
    await screen.run(f"{BUTTON.format('Pause')}.click()")
    await screen.until(BUTTON.format("Resume"))
    assert (await plant.job("J1")).status.substate is SubState.SUSPENDED
    await screen.run(f"{BUTTON.format('Abort')}.click()")
    await screen.until("document.querySelector('#ask[open]')")
    await screen.press("Escape")
    await screen.until("!document.querySelector('#ask[open]')")
    await screen.run(f"{BUTTON.format('Abort')}.click()")
    await screen.run("document.getElementById('ask-yes').click()")
    await screen.until("document.querySelector('.outcome-aborted')")


async def test_lost_connection_is_shown(services: WebServices, screen: Chromium, wait_until: WaitUntil) -> None:
    async with serving(services) as browser:
        await screen.log_in(browser.origin, "eve", PASSWORD)
        await screen.until("document.getElementById('offline').hidden")
        await wait_until(lambda: services.events.subscribers == 1)
    await screen.until("!document.getElementById('offline').hidden")


async def test_open_page_asks_for_a_login_after_a_restart(
    services: WebServices, plant: Plant, users: Users, screen: Chromium, wait_until: WaitUntil
) -> None:
    async with serving(services) as browser:
        await screen.log_in(browser.origin, "eve", PASSWORD)
        await wait_until(lambda: services.events.subscribers == 1)
    await screen.until("!document.getElementById('offline').hidden")
    again = build_app(services_of(plant, users))
    async with serve(again, WebAddress(browser.host, browser.port), ConnectionBounds(32, 32)):
        await screen.until("location.pathname === '/login'")


async def test_hidden_page_keeps_no_connection(
    browser: Browser, services: WebServices, screen: Chromium, plant: Plant, wait_until: WaitUntil
) -> None:
    await screen.log_in(browser.origin, "alice", PASSWORD)
    await wait_until(lambda: services.events.subscribers == 1)
    for hidden, most in (("true", 0), ("false", 1)):
        await screen.run(f"Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}})")
        await screen.run("document.dispatchEvent(new Event('visibilitychange'))")
        await wait_until(lambda most=most: services.events.subscribers == most)
        if most == 0:
            await plant.ask(Cause.PAUSE, "J1")
    await screen.until("document.querySelector('.state.Interrupted')")
