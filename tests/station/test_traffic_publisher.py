"""A recorder receives the traffic of equipment; without a recorder it costs nothing."""

import asyncio
from pathlib import Path

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.equipment_traffic import TrafficKind
from edge.station.traffic_publisher import TrafficPublisher
from edge.store import traffic_channel
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.store.servers import own_server


async def test_recorder_receives_records_of_its_equipment(store: Store) -> None:
    publisher = TrafficPublisher(store, ("wrench", "camera"))
    async with traffic_channel.subscribe(store, "wrench") as traffic, background_task(publisher.run(), "traffic"):
        publisher.of("wrench")(TrafficKind.HAPPENING, "before anybody was noticed")
        await publisher.look()
        publisher.of("camera")(TrafficKind.HAPPENING, "elsewhere")
        publisher.of("wrench")(TrafficKind.LOST, "pulled out")
        greeting, lost = await anext(traffic), await anext(traffic)
    assert (greeting.what, greeting.gateway) == (TrafficKind.BEGUN, "edge")
    assert (lost.what, lost.data) == (TrafficKind.LOST, "pulled out")


async def test_recorder_receives_the_current_equipment_state(store: Store) -> None:
    publisher = TrafficPublisher(store, ("wrench",))
    publisher.of("wrench")(TrafficKind.LOST, "pulled out")
    async with traffic_channel.subscribe(store, "wrench") as traffic, background_task(publisher.run(), "traffic"):
        await publisher.look()
        assert (await anext(traffic)).data["state"] == "away: pulled out"
        publisher.of("wrench")(TrafficKind.CONNECTED, [])
        await anext(traffic)
        await publisher.look()
        assert (await anext(traffic)).data["state"] == "connected"


async def test_second_recorder_receives_the_initial_state(store: Store) -> None:
    publisher = TrafficPublisher(store, ("wrench",))
    async with (
        traffic_channel.subscribe(store, "wrench") as async_iterator,
        background_task(publisher.run(), "traffic"),
    ):
        await publisher.look()
        async with traffic_channel.subscribe(store, "wrench") as two:
            await publisher.look()
            assert (await anext(async_iterator)).data == (await anext(two)).data


async def test_records_beyond_the_rate_are_reported_as_missed(store: Store) -> None:
    publisher = TrafficPublisher(store, ("wrench",))
    async with traffic_channel.subscribe(store, "wrench") as traffic:
        await publisher.look()
        for number in range(300):
            publisher.of("wrench")(TrafficKind.HAPPENING, number)
        async with background_task(publisher.run(), "traffic"):
            whats = [await anext(traffic) for _ in range(201)]
    assert whats[0].what is TrafficKind.BEGUN
    assert [what.data for what in whats[1:200]] == list(range(199))
    assert (whats[200].what, whats[200].data) == (TrafficKind.MISSED, 101)


async def test_queue_of_large_records_is_bounded_by_size(store: Store) -> None:
    publisher = TrafficPublisher(store, ("wrench",))
    async with traffic_channel.subscribe(store, "wrench") as traffic:
        await publisher.look()
        for _ in range(20):
            publisher.of("wrench")(TrafficKind.HAPPENING, "x" * (1 << 20))
        async with background_task(publisher.run(), "traffic"):
            whats = [(await anext(traffic)).what for _ in range(10)]
    assert whats == [TrafficKind.BEGUN, *[TrafficKind.HAPPENING] * 8, TrafficKind.MISSED]


async def test_tracer_continues_after_a_store_outage(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        publisher = TrafficPublisher(store, ("wrench",))
        async with background_task(publisher.run(), "traffic"):
            async with traffic_channel.subscribe(store, "wrench"):
                await publisher.look()
                await server.kill()
                publisher.of("wrench")(TrafficKind.HAPPENING, "nobody is told")
                await publisher.look()
            await server.start()
            async with traffic_channel.subscribe(store, "wrench") as traffic, asyncio.timeout(60):
                await publisher.look()
                assert (await anext(traffic)).what is TrafficKind.BEGUN


async def test_every_missed_record_is_counted(store: Store) -> None:
    publisher = TrafficPublisher(store, ("wrench",))
    counted: list[int] = []
    async with traffic_channel.subscribe(store, "wrench") as passing:
        await publisher.look()
        async with background_task(publisher.run(), "traffic"), asyncio.timeout(60):
            for _ in range(3):
                for number in range(500):
                    publisher.of("wrench")(TrafficKind.HAPPENING, number)
                await asyncio.sleep(0)
            while sum(counted) < 1500:
                passed = await anext(passing)
                counted.append(
                    passed.data if passed.what is TrafficKind.MISSED else passed.what is TrafficKind.HAPPENING
                )
    assert sum(counted) == 1500
