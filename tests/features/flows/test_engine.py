"""Due cycles run on one of the gateways; cycles of a stopped gateway are taken over."""

import asyncio
from functools import partial
from typing import Any

import pytest

from edge.features.flows.cycle import CycleStatus
from edge.features.flows.nodes.kind import Withheld
from edge.features.flows.redis_state import RedisFlowState, keep_answer
from edge.features.flows.state import CycleRecord, KeptAnswer
from edge.store.client import Store
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import CHAIN, FakeOutside, Plant, reasons, statuses

pytestmark = pytest.mark.slow

MINUTE = 60_000
EVERY_MINUTE = flow([node("read", "tag.latest", tag="t")], interval_seconds=60)
FAST = flow([node("read", "tag.latest", tag="t")], interval_seconds=0.02)


async def test_cycles_follow_each_other_without_gaps(plant: Plant) -> None:
    async with plant.gateway():
        await plant.run(FAST)
        record = await plant.until(lambda record: record.cycle.number >= 5)
        flow_record = await plant.service.load("flow")
        first = await plant.service.load_cycle(flow_record, 1)
        assert first
    assert record.cycle.at % 20 == 0
    assert first.cycle.at < record.cycle.at


async def test_cycles_of_a_flow_do_not_overlap(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside) as engine:
        await plant.run(FAST)
        await plant.at("read")
        await plant.until(lambda record: plant.clock() >= record.cycle.at + 100)
        assert outside.asked == {"LatestValue": 1}
        outside.release()
        await plant.until(lambda record: record.cycle.number >= 1)
        assert (await plant.service.load("flow")).missed >= 4
        assert engine.stats.cycles[CycleStatus.COMPLETED] >= 1


async def test_missed_cycles_are_counted_and_not_repeated(plant: Plant) -> None:
    await plant.run(EVERY_MINUTE)
    plant.step_ms += 10 * MINUTE
    async with plant.gateway():
        record = await plant.ended()
    flow_record = await plant.service.load("flow")
    assert (record.cycle.number, flow_record.missed, flow_record.last_cycle) == (0, 9, 0)
    assert 0 <= plant.clock() - record.cycle.at < 2 * MINUTE


async def test_missed_cycles_run_later_with_catch_up(plant: Plant) -> None:
    await plant.run({**EVERY_MINUTE, "catch_up": True})
    plant.step_ms += 3 * MINUTE
    async with plant.gateway():
        last = await plant.until(lambda record: record.cycle.number == 2 and record.ended_at)
    flow_record = await plant.service.load("flow")
    first = await plant.service.load_cycle(flow_record, 0)
    assert first
    assert (last.cycle.at - first.cycle.at, flow_record.missed) == (2 * MINUTE, 0)


async def test_clock_step_forward_skips_at_most_one_cycle(plant: Plant) -> None:
    await plant.run(EVERY_MINUTE)
    plant.step_ms += MINUTE
    async with plant.gateway():
        await plant.ended()
        plant.step_ms += 60 * MINUTE
        await plant.service.put(EVERY_MINUTE)
        record = await plant.until(lambda record: record.cycle.number == 1 and record.ended_at)
    assert plant.clock() - record.cycle.at < MINUTE


@pytest.mark.parametrize(("minutes", "waits"), [(1, 2), (60, 1)])
async def test_clock_step_back_does_not_stop_a_flow(plant: Plant, minutes: int, waits: int) -> None:
    """A small step repeats no cycle; a large one does not delay the next until the old time is reached again."""
    await plant.run(EVERY_MINUTE)
    plant.step_ms += MINUTE
    async with plant.gateway():
        await plant.ended()
    plant.step_ms -= minutes * MINUTE
    async with plant.gateway():
        found = await plant.until_flow(
            lambda found: found.next_at is not None and found.next_at - plant.clock() <= waits * MINUTE
        )
    assert found.last_cycle == 0


async def test_gateway_that_missed_a_clock_step_keeps_the_corrected_schedule(plant: Plant) -> None:
    """The gateway that follows a step second must not run the flow by the old time: it would wait there for an hour."""
    async with plant.gateway("a"), plant.gateway("b"):
        await plant.run({**CHAIN, "interval_seconds": 0.02})
        before = await plant.until(lambda record: record.cycle.number >= 5)
        plant.step_ms -= 60 * MINUTE
        stepped = await plant.until(lambda record: record.cycle.at < before.cycle.at - MINUTE)
        await plant.until(lambda record: record.cycle.number >= stepped.cycle.number + 20)
        flow_record = await plant.service.load("flow")
    assert flow_record.missed < 60 * MINUTE / 20 / 2


async def test_two_gateways_run_each_cycle_once(plant: Plant) -> None:
    first, second = FakeOutside(), FakeOutside()
    async with plant.gateway("a", first), plant.gateway("b", second):
        await plant.run({**CHAIN, "interval_seconds": 0.02})
        await plant.until(lambda record: record.cycle.number >= 10)
        await plant.service.stop("flow", "enough")
        await plant.ended()
    actions = [task for task, _ in (*first.actions, *second.actions)]
    last = (await plant.service.load("flow")).last_cycle
    assert sorted(actions) == sorted(f"flow_{number}_send" for number in range(last + 1))


async def test_read_node_of_a_stopped_gateway_runs_again(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway("a", outside):
        await plant.run(CHAIN)
        await plant.at("read")
    second = FakeOutside()
    async with plant.gateway("b", second):
        record = await plant.ended()
    assert (record.owner, record.cycle.status) == ("b", CycleStatus.COMPLETED)
    assert record.cycle.tasks["read"].attempts == 2
    assert second.actions == [("flow_0_send", 42)]


@pytest.mark.parametrize(
    ("answer", "status", "output"),
    [(KeptAnswer(1, {"ok": 1}), "completed", {"ok": 1}), (KeptAnswer(1, error="no part"), "failed", None)],
    ids=["done", "failed"],
)
async def test_stored_answer_of_equipment_ends_the_node_of_a_killed_gateway(
    store: Store, answer: KeptAnswer, status: str, output: object
) -> None:
    plant, fake_outside = Plant(RedisFlowState(store)), FakeOutside()
    fake_outside.hold()
    command = node("command", "mqtt.publish", topic="x")
    async with plant.gateway("a", fake_outside):
        await plant.run(flow([node("one", "constant", value=1), command], "one>command", interval_seconds=0))
        await plant.at("command")
    await store.commit(keep_answer(store.keys, "flow_0_command", answer))
    async with plant.gateway("b"):
        record = await plant.ended()
    task = record.cycle.tasks["command"]
    assert (task.status.value, task.output, task.reason) == (status, output, answer.error)


def _has_attempts(number: int, record: CycleRecord) -> bool:
    return record.cycle.tasks["read"].attempts == number


async def test_repeatedly_interrupted_node_starts_without_a_retry_pause(plant: Plant) -> None:
    """A gateway that is killed more often than a retry pause lasts still ends its cycles."""
    plant.retry_pause_s = 3600.0
    fake_outside = FakeOutside()
    fake_outside.hold()
    await plant.run(CHAIN)
    for attempts in (1, 2, 3):
        async with plant.gateway(outside=fake_outside):
            await plant.until(partial(_has_attempts, attempts))
    async with plant.gateway() as engine:
        record = await plant.ended()
    assert record.cycle.tasks["read"].attempts == 4
    assert engine.stats.cycles[CycleStatus.COMPLETED] == 1


@pytest.mark.parametrize("name", ["a", "b"])
async def test_action_of_a_stopped_gateway_is_not_repeated(plant: Plant, outside: FakeOutside, name: str) -> None:
    """The same gateway after a restart, or another one: the outcome is unknown."""
    act = [node("a", "constant", value=1), node("b", "mqtt.publish", topic="x"), node("c", "delay", seconds=0)]
    outside.hold()
    async with plant.gateway("a", outside):
        await plant.run(flow(act, "a>b b>c", interval_seconds=0))
        await plant.at("b")
    second = FakeOutside()
    async with plant.gateway(name, second):
        record = await plant.ended()
    assert statuses(record) == {"a": "completed", "b": "failed", "c": "skipped"}
    assert reasons(record)["b"] == "interrupted"
    assert (len(outside.actions), second.actions) == (1, [])


async def test_action_in_progress_ends_before_its_gateway_stops(plant: Plant, outside: FakeOutside) -> None:
    """A restart interrupts no action that ends in time; what follows it runs on the next gateway."""
    plant.stop_within_s = 60.0
    act = [node("a", "constant", value=1), node("b", "mqtt.publish", topic="x"), node("c", "delay", seconds=0)]
    outside.hold()
    async with plant.gateway("a", outside):
        await plant.run(flow(act, "a>b b>c", interval_seconds=0))
        await plant.at("b")
        asyncio.get_running_loop().call_later(0.05, outside.release)
    assert statuses(await plant.until(lambda _: True)) == {"a": "completed", "b": "completed", "c": "pending"}
    async with plant.gateway("a", outside):
        record = await plant.ended()
    assert statuses(record) == {"a": "completed", "b": "completed", "c": "completed"}
    assert len(outside.actions) == 1


async def test_stopped_flow_begins_no_cycle(plant: Plant) -> None:
    await plant.run(FAST)
    await plant.service.stop("flow", "maintenance")
    async with plant.gateway():
        await plant.run({**CHAIN, "id": "other"})
        await plant.ended("other")
    flow_record = await plant.service.load("flow")
    assert (flow_record.last_cycle, flow_record.status.value, flow_record.reason) == (-1, "stopped", "maintenance")


async def test_flow_starts_again_after_a_stop(plant: Plant) -> None:
    async with plant.gateway():
        await plant.run(CHAIN)
        await plant.ended()
        await plant.service.start("flow")
        record = await plant.until(lambda record: record.cycle.number == 1 and record.ended_at)
    assert record.cycle.status is CycleStatus.COMPLETED


async def test_flow_with_a_missing_cycle_continues(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    await plant.run({**CHAIN, "interval_seconds": 60})
    plant.step_ms += MINUTE
    async with plant.gateway("a", outside):
        await plant.at("read")
    cycles: dict[Any, Any] = vars(plant.state)["_cycles"]
    cycles.clear()
    async with plant.gateway("b"):
        record = await plant.until(lambda record: record.ended_at)
    assert (record.cycle.number, record.cycle.status) == (1, CycleStatus.COMPLETED)


async def test_changed_node_keeps_its_last_value_across_cycles(plant: Plant) -> None:
    document = flow([node("read", "tag.latest", tag="t"), node("new", "changed")], "read>new", interval_seconds=0.02)
    async with plant.gateway():
        await plant.run(document)
        record = await plant.until(lambda record: record.cycle.number >= 1 and record.ended_at)
    assert record.cycle.tasks["new"].withheld is Withheld.UNCHANGED
