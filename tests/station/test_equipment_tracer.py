"""A recorder receives the trace of equipment; without a recorder the trace costs nothing."""

import asyncio
from pathlib import Path

from edge.config import RedisSettings
from edge.links.background_task import background_task
from edge.model.equipment_trace import TraceKind
from edge.station.equipment_tracer import EquipmentTracer
from edge.store import trace_channel
from edge.store.client import Store
from edge.store.opening import open_store
from tests.store.servers import own_server


async def test_recorder_receives_records_of_its_equipment(store: Store) -> None:
    tracer = EquipmentTracer(store, ("wrench", "camera"))
    async with trace_channel.subscribe(store, "wrench") as traced, background_task(tracer.run(), "overhearing"):
        tracer.of("wrench")(TraceKind.HAPPENING, "before anybody was noticed")
        await tracer.look()
        tracer.of("camera")(TraceKind.HAPPENING, "elsewhere")
        tracer.of("wrench")(TraceKind.LOST, "pulled out")
        greeting, lost = await anext(traced), await anext(traced)
    assert (greeting.what, greeting.gateway) == (TraceKind.BEGUN, "edge")
    assert (lost.what, lost.data) == (TraceKind.LOST, "pulled out")


async def test_recorder_receives_the_current_equipment_state(store: Store) -> None:
    tracer = EquipmentTracer(store, ("wrench",))
    tracer.of("wrench")(TraceKind.LOST, "pulled out")
    async with trace_channel.subscribe(store, "wrench") as traced, background_task(tracer.run(), "overhearing"):
        await tracer.look()
        assert (await anext(traced)).data["state"] == "away: pulled out"
        tracer.of("wrench")(TraceKind.CONNECTED, [])
        await anext(traced)
        await tracer.look()
        assert (await anext(traced)).data["state"] == "connected"


async def test_second_recorder_receives_the_initial_state(store: Store) -> None:
    tracer = EquipmentTracer(store, ("wrench",))
    async with trace_channel.subscribe(store, "wrench") as one, background_task(tracer.run(), "overhearing"):
        await tracer.look()
        async with trace_channel.subscribe(store, "wrench") as two:
            await tracer.look()
            assert (await anext(one)).data == (await anext(two)).data


async def test_records_beyond_the_rate_are_reported_as_missed(store: Store) -> None:
    tracer = EquipmentTracer(store, ("wrench",))
    async with trace_channel.subscribe(store, "wrench") as traced:
        await tracer.look()
        for number in range(300):
            tracer.of("wrench")(TraceKind.HAPPENING, number)
        async with background_task(tracer.run(), "overhearing"):
            whats = [await anext(traced) for _ in range(201)]
    assert whats[0].what is TraceKind.BEGUN
    assert [each.data for each in whats[1:200]] == list(range(199))
    assert (whats[200].what, whats[200].data) == (TraceKind.MISSED, 101)


async def test_queue_of_large_records_is_bounded_by_size(store: Store) -> None:
    tracer = EquipmentTracer(store, ("wrench",))
    async with trace_channel.subscribe(store, "wrench") as traced:
        await tracer.look()
        for _ in range(20):
            tracer.of("wrench")(TraceKind.HAPPENING, "x" * (1 << 20))
        async with background_task(tracer.run(), "overhearing"):
            whats = [(await anext(traced)).what for _ in range(10)]
    assert whats == [TraceKind.BEGUN, *[TraceKind.HAPPENING] * 8, TraceKind.MISSED]


async def test_tracer_continues_after_a_store_outage(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        tracer = EquipmentTracer(store, ("wrench",))
        async with background_task(tracer.run(), "overhearing"):
            async with trace_channel.subscribe(store, "wrench"):
                await tracer.look()
                await server.kill()
                tracer.of("wrench")(TraceKind.HAPPENING, "nobody is told")
                await tracer.look()
            await server.start()
            async with trace_channel.subscribe(store, "wrench") as traced, asyncio.timeout(60):
                await tracer.look()
                assert (await anext(traced)).what is TraceKind.BEGUN


async def test_every_missed_record_is_counted(store: Store) -> None:
    tracer = EquipmentTracer(store, ("wrench",))
    traced: list[int] = []
    async with trace_channel.subscribe(store, "wrench") as passing:
        await tracer.look()
        async with background_task(tracer.run(), "overhearing"), asyncio.timeout(60):
            for _ in range(3):
                for number in range(500):
                    tracer.of("wrench")(TraceKind.HAPPENING, number)
                await asyncio.sleep(0)
            while sum(traced) < 1500:
                passed = await anext(passing)
                traced.append(passed.data if passed.what is TraceKind.MISSED else passed.what is TraceKind.HAPPENING)
    assert sum(traced) == 1500
