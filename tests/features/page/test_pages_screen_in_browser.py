"""What a person reads at 800 x 480: the navigation in each language, the chart, the timeline, times of the zone."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.model.job_state import Cause
from tests.features.page.chromium import Chromium, chromium
from tests.features.page.serving import Browser
from tests.passwords import PASSWORD
from tests.station.plant import Plant, action, linear, order

pytestmark = pytest.mark.long

CLIPPED = """[...document.querySelectorAll("header nav a, .who button")]
  .filter((each) => each.offsetParent)
  .filter((each) => each.scrollWidth > each.clientWidth || each.getBoundingClientRect().right > innerWidth
    || each.getClientRects().length > 1 || each.offsetHeight > 50)
  .map((each) => each.textContent)"""
ROWS = "new Set([...document.querySelectorAll('header nav a')].map((each) => each.offsetTop)).size"
WIDTH = "document.querySelector('.chart .paper img').offsetWidth"
PRESSED = "document.querySelector('[data-follow]').getAttribute('aria-pressed')"
SMALLEST = """(async () => {
  const image = document.querySelector("img[data-picture]");
  await image.decode();
  const text = await (await fetch(image.src)).text();
  const sizes = [...text.matchAll(/font(?:-size)?[:=][^;}]*?(\\d+(?:\\.\\d+)?)px/g)].map((found) => Number(found[1]));
  return Math.min(...sizes) * image.offsetWidth / image.naturalWidth;
})()"""


@pytest_asyncio.fixture
async def screen(browser: Browser) -> AsyncIterator[Chromium]:
    """A browser of 800 x 480 in which an operator has logged in."""
    async with chromium() as found:
        await found.show(800, 480)
        await found.log_in(browser.origin, "alice", PASSWORD)
        yield found


@pytest.mark.parametrize("language", ["en", "de", "fr"])
async def test_navigation_is_in_one_row_and_nothing_is_cut(browser: Browser, screen: Chromium, language: str) -> None:
    await screen.show(800, 480, language=language)
    await screen.go(f"{browser.origin}/jobs")
    assert await screen.run(CLIPPED) == []
    assert await screen.run(ROWS) == 1


async def test_chart_zooms_by_button_wheel_and_two_fingers(browser: Browser, screen: Chromium) -> None:
    await screen.go(f"{browser.origin}/job?id=J1")
    await screen.until(f"{WIDTH} > 0 && !document.querySelector('.chart .controls').hidden")
    first = await screen.run(WIDTH)
    await screen.click("[data-zoom=in]")
    larger = await screen.run(WIDTH)
    assert larger > first * 1.2
    place = await screen.place(".chart .paper")
    await screen.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=100, modifiers=2, **place)
    await screen.until(f"{WIDTH} < {larger}")
    before = await screen.run(WIDTH)
    for kind, apart in (("touchStart", 20), ("touchMove", 30), ("touchMove", 60)):
        fingers = [{"x": place["x"] - apart, "y": place["y"]}, {"x": place["x"] + apart, "y": place["y"]}]
        await screen.call("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)
    await screen.lift()
    await screen.until(f"{WIDTH} > {before}")


async def test_chart_follows_the_active_step_until_it_is_moved(
    browser: Browser, screen: Chromium, plant: Plant
) -> None:
    steps = [action(f"a{number}", f"s{number}") for number in range(12)]
    await plant.teach("long", linear(*steps))
    await plant.order(Cause.STORE_AND_START, order("J2", "long"))
    await screen.go(f"{browser.origin}/job?id=J2")
    await screen.until("!document.querySelector('.map').hidden")
    assert await screen.run(PRESSED) == "true"
    await screen.run("document.querySelector('.chart .paper').scrollTo(0, 500)")
    await screen.until(f"{PRESSED} === 'false'")
    await screen.click("[data-follow]")
    await screen.until(f"{PRESSED} === 'true' && document.querySelector('.chart .paper').scrollTop < 100")


async def test_letters_of_the_timeline_have_twelve_pixels(browser: Browser, screen: Chromium) -> None:
    for width, height in ((800, 480), (390, 844), (1280, 800)):
        await screen.show(width, height)
        await screen.go(f"{browser.origin}/job?id=J1")
        assert await screen.run(SMALLEST) >= 12


async def test_times_are_those_of_the_zone_of_the_browser(browser: Browser, screen: Chromium) -> None:
    shown = set()
    for zone in ("America/New_York", "Asia/Tokyo"):
        await screen.call("Emulation.setTimezoneOverride", timezoneId=zone)
        await screen.go(browser.origin)
        assert zone in await screen.run("document.getElementById('zone').textContent")
        shown.add(await screen.run("document.querySelector('time[data-at=clock]').textContent"))
    assert len(shown) == 2
