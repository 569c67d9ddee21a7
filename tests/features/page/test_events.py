"""Open pages are notified of changes; without open pages the store is not read."""

import asyncio

import pytest

from edge.features.page.events import EventHub, PageSubscription, notice_pace
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.model.job_state import Cause
from tests.features.page.serving import Browser
from tests.station.plant import Plant


async def test_many_changes_are_merged_into_one_notice() -> None:
    subscription = PageSubscription(notice_pace())
    subscription.put([f"job:{number}" for number in range(1000)])
    assert await subscription.take(60) == ("*",)
    assert await subscription.take(0.01) == ()


async def test_changes_are_merged_while_a_page_waits_for_its_notice() -> None:
    pace = notice_pace()
    for _ in range(30):
        pace.use()
    subscription = PageSubscription(pace)
    subscription.put(["jobs"])
    taking = asyncio.ensure_future(subscription.take(60))
    await asyncio.sleep(0)
    subscription.put(["alarms"])
    assert await taking == ("jobs", "alarms")


async def test_pages_beyond_the_limit_are_refused(plant: Plant) -> None:
    hub = EventHub(plant.store, ("station-1",), most=1)
    with hub.subscribe("eve"), pytest.raises(Refused, match="follow changes already"), hub.subscribe("otto"):
        pass
    assert hub.subscribers == 0


async def test_pages_of_one_user_do_not_keep_those_of_others_away(plant: Plant) -> None:
    hub = EventHub(plant.store, ("station-1",), most=3, most_of_user=1)
    with hub.subscribe("eve"):
        with pytest.raises(Refused, match="follow changes already"), hub.subscribe("eve"):
            pass
        assert (hub.is_full("eve"), hub.is_full("otto")) == (True, False)
        with hub.subscribe("otto"), hub.subscribe(""):
            assert hub.subscribers == 3
    with hub.subscribe("eve"):
        assert hub.subscribers == 1


async def test_change_of_a_job_reaches_an_open_page(browser: Browser, plant: Plant, services: WebServices) -> None:
    eve = await browser.logged_in("eve")
    reader, writer = await eve.connect()
    async with asyncio.timeout(60):
        writer.write(f"GET /api/v1/events HTTP/1.1\r\nhost: x\r\ncookie: {eve.cookie}\r\n\r\n".encode())
        await reader.readuntil(b"changes follow")
        await plant.ask(Cause.PAUSE, "J1")
        received = b""
        while b'"job:J1"' not in received:
            received += await reader.read(1000)
            # The follower may begin after the pause.
            services.events.publish("job:J1")
    writer.transport.abort()


async def test_stream_ends_with_its_session(browser: Browser, services: WebServices) -> None:
    eve = await browser.logged_in("eve")
    reader, writer = await eve.connect()
    async with asyncio.timeout(60):
        writer.write(f"GET /api/v1/events HTTP/1.1\r\nhost: x\r\ncookie: {eve.cookie}\r\n\r\n".encode())
        await reader.readuntil(b"changes follow")
        await eve.send("DELETE", "/api/v1/session", {"origin": eve.origin})
        services.events.publish("jobs")
        await reader.readuntil(b"event: logout")
    writer.transport.abort()
