"""Who records equipment is told what passes there, and who does not costs nothing."""

import asyncio
from pathlib import Path

from edge.config import RedisSettings
from edge.links.background import beside
from edge.model.traffic import Passing
from edge.station.overhearing import Overhearing
from edge.store import overheard
from edge.store.client import Store
from edge.store.opening import open_store
from tests.store.servers import own_server


async def test_who_records_is_greeted_and_told_what_passes_at_that_equipment(store: Store) -> None:
    overhearing = Overhearing(store, ("wrench", "camera"))
    async with overheard.listening(store, "wrench") as told, beside(overhearing.run(), "overhearing"):
        overhearing.of("wrench")(Passing.HAPPENING, "before anybody was noticed")
        await overhearing.look()
        overhearing.of("camera")(Passing.HAPPENING, "elsewhere")
        overhearing.of("wrench")(Passing.LOST, "pulled out")
        greeting, lost = await anext(told), await anext(told)
    assert (greeting.what, greeting.gateway) == (Passing.BEGUN, "edge")
    assert (lost.what, lost.data) == (Passing.LOST, "pulled out")


async def test_who_records_hears_how_the_equipment_is(store: Store) -> None:
    overhearing = Overhearing(store, ("wrench",))
    overhearing.of("wrench")(Passing.LOST, "pulled out")
    async with overheard.listening(store, "wrench") as told, beside(overhearing.run(), "overhearing"):
        await overhearing.look()
        assert (await anext(told)).data["state"] == "away: pulled out"
        overhearing.of("wrench")(Passing.CONNECTED, [])
        await anext(told)
        await overhearing.look()
        assert (await anext(told)).data["state"] == "connected"


async def test_another_who_records_is_greeted_too(store: Store) -> None:
    overhearing = Overhearing(store, ("wrench",))
    async with overheard.listening(store, "wrench") as one, beside(overhearing.run(), "overhearing"):
        await overhearing.look()
        async with overheard.listening(store, "wrench") as two:
            await overhearing.look()
            assert (await anext(one)).data == (await anext(two)).data


async def test_what_passes_faster_than_it_can_be_told_is_told_as_missed(store: Store) -> None:
    overhearing = Overhearing(store, ("wrench",))
    async with overheard.listening(store, "wrench") as told:
        await overhearing.look()
        for number in range(300):
            overhearing.of("wrench")(Passing.HAPPENING, number)
        async with beside(overhearing.run(), "overhearing"):
            whats = [await anext(told) for _ in range(201)]
    assert whats[0].what is Passing.BEGUN
    assert [each.data for each in whats[1:200]] == list(range(199))
    assert (whats[200].what, whats[200].data) == (Passing.MISSED, 101)


async def test_of_what_is_large_less_waits(store: Store) -> None:
    overhearing = Overhearing(store, ("wrench",))
    async with overheard.listening(store, "wrench") as told:
        await overhearing.look()
        for _ in range(20):
            overhearing.of("wrench")(Passing.HAPPENING, "x" * (1 << 20))
        async with beside(overhearing.run(), "overhearing"):
            whats = [(await anext(told)).what for _ in range(10)]
    assert whats == [Passing.BEGUN, *[Passing.HAPPENING] * 8, Passing.MISSED]


async def test_a_store_that_is_away_ends_nothing(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        overhearing = Overhearing(store, ("wrench",))
        async with beside(overhearing.run(), "overhearing"):
            async with overheard.listening(store, "wrench"):
                await overhearing.look()
                await server.kill()
                overhearing.of("wrench")(Passing.HAPPENING, "nobody is told")
                await overhearing.look()
            await server.start()
            async with overheard.listening(store, "wrench") as told, asyncio.timeout(5):
                await overhearing.look()
                assert (await anext(told)).what is Passing.BEGUN


async def test_what_was_missed_is_counted_to_the_last(store: Store) -> None:
    overhearing = Overhearing(store, ("wrench",))
    told: list[int] = []
    async with overheard.listening(store, "wrench") as passing:
        await overhearing.look()
        async with beside(overhearing.run(), "overhearing"), asyncio.timeout(5):
            for _ in range(3):
                for number in range(500):
                    overhearing.of("wrench")(Passing.HAPPENING, number)
                await asyncio.sleep(0)
            while sum(told) < 1500:
                passed = await anext(passing)
                told.append(passed.data if passed.what is Passing.MISSED else passed.what is Passing.HAPPENING)
    assert sum(told) == 1500
