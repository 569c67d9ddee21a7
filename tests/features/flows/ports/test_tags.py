"""Flows read the samples of tags from the stream and write derived tags to it, over a real store."""

import asyncio
import itertools
import math
from functools import partial

import msgspec
import pytest

from edge.config import RedisSettings
from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import LatestValue, RaiseAlarm, SampleWindow, WriteTag
from edge.features.flows.plan import Plan, Plans, plan_flow
from edge.features.flows.ports.tags import (
    AlarmRaiser,
    SampleHistory,
    TagLimits,
    TagReader,
    TagWriter,
    record_tags,
    used_tags,
)
from edge.features.telemetry.alarm_keeper import raise_alarm
from edge.features.telemetry.alarm_requests import request_change
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.rules.alarm import Acknowledge
from edge.ports.alarm import AlarmChangeKind, AlarmState
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Quality, Sample
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as tags
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.features.flows.documents import flow, node
from tests.features.flows.memory_state import MemoryFlowState
from tests.features.telemetry.plant import BEGIN, HOT, TelemetryClock, append, at_work, rules_of, until_drained
from tests.station.plant import until_true
from tests.store.losing_store import LosingStore, Loss


def sample(at: int, value: object, tag: str = "press.pressure", quality: Quality = Quality.GOOD) -> Sample:
    return Sample(BEGIN + at, tag, value, quality)


def window(after: int, until: int, tag: str = "press.pressure", *, with_time: bool = False) -> SampleWindow:
    return SampleWindow(tag, BEGIN + after, BEGIN + until, with_time)


async def test_window_has_good_values_after_its_start_up_to_its_end(store: Store) -> None:
    bad = sample(25, 9.0, quality=Quality.BAD)
    await append(store, sample(10, 1.0), sample(20, 2.0), bad, sample(30, float("nan")))
    await append(store, sample(40, 4.0), sample(40, 7.0, "other"), sample(50, 5.0, quality=Quality.UNCERTAIN))
    reader = TagReader([store])
    assert await reader.read(window(10, 40), "") == [2.0, 4.0]
    assert await reader.read(window(30, 50, with_time=True), "") == [
        {"at": BEGIN + 40, "value": 4.0, "quality": "good"},
        {"at": BEGIN + 50, "value": 5.0, "quality": "uncertain"},
    ]
    assert await reader.read(window(0, 60, "unknown"), "") == []


async def test_later_samples_are_found_once(store: Store) -> None:
    reader = TagReader([store])
    for number in range(1, 6):
        await append(store, sample(number, number), sample(number, -number, "other"))
        assert await reader.read(window(0, 100), "") == list(range(1, number + 1))
        if number > 2:
            assert await reader.read(window(0, 100, "other"), "") == [-index for index in range(1, number + 1)]


async def test_samples_of_two_stores_are_in_one_window(store: Store, redis: RedisSettings, unique: str) -> None:
    async with open_store(msgspec.structs.replace(redis, prefix=f"{unique}-volatile"), "gw-2") as volatile:
        reader = TagReader([store, volatile])
        await append(store, sample(1, 1))
        await append(volatile, sample(2, 2))
        assert await reader.read(window(0, 100), "") == [1, 2]
        await append(volatile, sample(3, 3))
        await append(store, sample(4, 4))
        assert await reader.read(window(0, 100), "") == [1, 2, 3, 4]


async def test_cache_of_all_tags_is_bounded(store: Store) -> None:
    reader = TagReader([store], TagLimits(samples=3))
    await append(store, *(sample(number, number, tag) for number in range(3) for tag in ("a", "b")))
    assert await reader.read(window(-1, 10, "a"), "") == [0, 1, 2]
    assert await reader.read(window(-1, 10, "b"), "") == [0, 1, 2]
    await store.execute("XTRIM", store.keys.telemetry(), "MAXLEN", 0)
    assert await reader.read(window(-1, 10, "b"), "") == [0, 1, 2]
    assert await reader.read(window(-1, 10, "a"), "") == []


async def test_window_keeps_samples_trimmed_from_the_stream(store: Store) -> None:
    reader = TagReader([store])
    await append(store, *(sample(number, number) for number in range(5)))
    assert await reader.read(window(-10, 10), "") == [0, 1, 2, 3, 4]
    await store.execute("XTRIM", store.keys.telemetry(), "MAXLEN", 0)
    await append(store, sample(6, 6))
    assert await reader.read(window(-10, 10), "") == [0, 1, 2, 3, 4, 6]
    # A longer window of the same tag cannot have less.
    assert await reader.read(window(-1000, 10), "") == [0, 1, 2, 3, 4, 6]


async def test_follower_caches_windows_before_the_stream_is_trimmed(store: Store) -> None:
    reader = TagReader([store])
    await reader.read(window(0, 10), "")
    following = asyncio.create_task(reader.follow(0.01))
    await append(store, sample(5, 5))
    await until_true(lambda: reader._kept["press.pressure"].samples)  # noqa: SLF001 - it cannot be seen otherwise
    following.cancel()
    await store.execute("XTRIM", store.keys.telemetry(), "MAXLEN", 0)
    assert await reader.read(window(0, 10), "") == [5]


async def test_cache_of_a_tag_is_bounded(store: Store) -> None:
    reader = TagReader([store], TagLimits(samples_of_tag=50))
    await reader.read(window(0, 1_000_000), "")
    for batch in itertools.batched(range(1000), 100) if hasattr(itertools, "batched") else [range(1000)]:
        await append(store, *(sample(number, number) for number in batch))
    found = await reader.read(window(0, 1_000_000), "")
    assert 50 <= len(found) <= 100
    assert found[-1] == 999


async def test_tags_no_longer_read_leave_the_cache(store: Store) -> None:
    reader = TagReader([store], TagLimits(tags=2))
    await append(store, *(sample(1, 1, tag) for tag in "abc"))
    for tag in "abcab":
        assert await reader.read(window(0, 10, tag), "") == [1]
    assert len(reader._kept) == 2  # noqa: SLF001 - what is in memory cannot be seen otherwise


async def test_latest_value_is_read_from_the_stream_before_the_saved_value(store: Store) -> None:
    reader = TagReader([store])
    latest = LatestValue("press.pressure", BEGIN + 15)
    assert await reader.read(latest, "") is None
    await store.commit(tags.save_last(store.keys, {"press.pressure": encode_line(sample(5, 0.5))}))
    assert await reader.read(latest, "") == 0.5
    await append(store, sample(10, 1.0), sample(20, 2.0))
    assert await reader.read(latest, "") == 1.0
    assert await reader.read(LatestValue("press.pressure", BEGIN + 20), "") == 2.0


@pytest.mark.parametrize(
    "text", ["{", '{"at": 1}', encode_line(sample(5, 1, quality=Quality.BAD)), encode_line(sample(90, 1))]
)
async def test_unusable_saved_value_is_unknown(store: Store, text: str) -> None:
    await store.commit(tags.save_last(store.keys, {"press.pressure": text}))
    assert await TagReader([store]).read(LatestValue("press.pressure", BEGIN + 15), "") is None


async def test_stream_entry_that_is_not_a_batch_is_skipped(store: Store) -> None:
    await store.execute("XADD", store.keys.telemetry(), "*", "what", "ever")
    await append(store, sample(1, 1))
    assert await TagReader([store]).read(window(0, 10), "") == [1]


async def test_implausible_source_time_is_replaced_by_the_arrival_time(store: Store) -> None:
    await append(store, sample(-600_000, 1), sample(5, 2))
    assert await TagReader([store]).read(window(0, 10, with_time=False), "") == [1, 2]


@pytest.mark.parametrize("value", [3.5, 7, "open", True, None])
async def test_written_tag_is_read_and_evaluated(store: Store, value: object) -> None:
    output = await TagWriter(store, lambda: BEGIN, 1000).write(WriteTag("mean", value), "t")
    assert output == {"tag": "mean", "at": BEGIN}
    assert await TagReader([store]).read(window(-1, 1, "mean"), "") == [value]
    (entry,) = await telemetry.read_after(store, "", "+", 10)
    # Without a producer the rules evaluate it, however often the gateway was restarted.
    assert entry.fields["producer"] == ""


@pytest.mark.parametrize(("tag", "value"), [("mean", [1]), ("mean", {"a": 1}), ("", 1), ("a\n", 1), ("x", 1 << 64)])
async def test_invalid_tag_or_value_fails_the_node(store: Store, tag: str, value: object) -> None:
    with pytest.raises(NodeError, match="cannot be written"):
        await TagWriter(store, lambda: BEGIN, 1000).write(WriteTag(tag, value), "t")
    assert not await store.execute("EXISTS", store.keys.telemetry())


async def test_unconfirmed_write_has_an_unknown_outcome(store: Store) -> None:
    losing = LosingStore(store, [Loss.REPLY])
    with pytest.raises(OutcomeUnknownError, match="the reply is lost"):
        await TagWriter(losing, lambda: BEGIN, 1000).write(WriteTag("mean", 1), "t")


HISTORY = SampleHistory.of(
    [
        Sample(1000, "t", 1),
        Sample(2000, "t", 2, Quality.UNCERTAIN),
        Sample(2000, "other", 9),
        Sample(3000, "t", 3, Quality.BAD),
        Sample(3000, "t", math.nan),
        Sample(4000, "t", 4),
    ]
)


def test_latest_value_is_not_bad_and_not_later() -> None:
    assert [HISTORY.answer(LatestValue("t", until)) for until in (999, 1000, 3500, 4000, 9000)] == [None, 1, 2, 4, 4]
    assert HISTORY.answer(LatestValue("missing", 9000)) is None


def test_window_excludes_its_beginning_and_includes_its_end() -> None:
    assert HISTORY.answer(SampleWindow("t", 1000, 4000, with_time=False)) == [2, 4]
    assert HISTORY.answer(SampleWindow("t", 4000, 9000, with_time=False)) == []


def test_samples_carry_time_and_quality() -> None:
    assert HISTORY.answer(SampleWindow("t", 0, 2000, with_time=True)) == [
        {"at": 1000, "value": 1, "quality": "good"},
        {"at": 2000, "value": 2, "quality": "uncertain"},
    ]


LOW = RaiseAlarm("shift-report", "cmk-low", 600, "Cmk is {value}", 1.2)


def clock() -> int:
    return BEGIN


def raiser_on(store: Store) -> AlarmRaiser:
    return AlarmRaiser(partial(raise_alarm, store, at=BEGIN))


async def test_alarm_of_a_flow_waits_for_acknowledgement(store: Store) -> None:
    output = await raiser_on(store).raise_alarm(LOW, "t")
    (alarm,) = (await alarms.load(store)).alarms.values()
    assert output == {"alarm": alarm.id, "count": 1}
    assert (alarm.rule, alarm.subject, alarm.severity, alarm.value) == ("cmk-low", "shift-report", 600, 1.2)
    assert alarm.state is AlarmState.RETURNED_UNACKNOWLEDGED
    assert alarm.message == {"en": "Cmk is 1.2"}
    changes = await alarms.newest(store, 10)
    assert [change.kind for change in changes] == [AlarmChangeKind.RAISED, AlarmChangeKind.CLEARED]


async def test_alarm_raised_again_is_counted_and_needs_acknowledgement_again(store: Store) -> None:
    raiser = raiser_on(store)
    first = await raiser.raise_alarm(LOW, "t")
    assert (await raiser.raise_alarm(LOW, "t"))["count"] == 2
    await request_change(store, first["alarm"], Acknowledge("bo"), clock)
    assert (await alarms.load(store)).alarms == {}
    assert await raiser.raise_alarm(LOW, "t") == {"alarm": first["alarm"], "count": 1}


async def test_alarm_stays_while_rules_raise_others(store: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await raiser_on(store).raise_alarm(LOW, "t")
        await until_drained(store)
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await until_drained(store)
    assert [alarm.rule for alarm in (await alarms.load(store)).alarms.values()] == ["cmk-low"]


async def test_large_value_is_left_out_of_the_alarm(store: Store) -> None:
    await raiser_on(store).raise_alarm(RaiseAlarm("f", "a", 1, "", list(range(10_000))), "t")
    (alarm,) = (await alarms.load(store)).alarms.values()
    assert alarm.value is None


async def test_unconfirmed_alarm_has_an_unknown_outcome(store: Store) -> None:
    losing = LosingStore(store, [Loss.REPLY])
    with pytest.raises(OutcomeUnknownError, match="the reply is lost"):
        await raiser_on(losing).raise_alarm(LOW, "t")


async def test_tags_are_recorded_while_their_flow_is_registered() -> None:
    state, plans, interest = MemoryFlowState(), Plans(), RuleInterest([])
    service = FlowService(state, plans, lambda: 0)
    await service.put(flow([node("a", "tag.latest", tag="x")]))
    following = asyncio.create_task(record_tags(state, plans, interest))
    await until_true(lambda: interest.used_tags == {"x"})
    assert interest.wants(Sample(0, "x", 1))
    assert not interest.wants(Sample(0, "y", 1))
    await service.put(flow([node("a", "tag.window", tag="y", seconds=1)]))
    await until_true(lambda: interest.used_tags == {"y"})
    await service.delete("flow")
    await until_true(lambda: interest.used_tags == frozenset())
    following.cancel()


def test_tags_of_reading_and_writing_nodes_are_used() -> None:
    nodes = [
        node("a", "tag.latest", tag="x"),
        node("b", "tag.window", tag="y", seconds=1),
        node("c", "constant", value="z"),
        node("d", "tag.write", tag="w"),
    ]
    plan = plan_flow(flow(nodes, "a>d"))
    assert isinstance(plan, Plan), plan
    assert used_tags(plan) == {"x", "y", "w"}
