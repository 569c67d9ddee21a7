"""The processor: one alarm per condition, one commit per batch, no loss and no duplicate after an outage."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from edge.config import RedisSettings
from edge.features.telemetry import keys as telemetry_keys
from edge.features.telemetry.alarm_requests import request_change
from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.rules.alarm import Acknowledge
from edge.features.telemetry.rules.evaluator import replay
from edge.features.telemetry.sample_queue import SampleQueue
from edge.foundation.task_group import background_task
from edge.ports.alarm import AlarmState
from edge.ports.sample_lines import Line, Occurrence, Quality, Sample
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as tags
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.features.telemetry.plant import (
    BEGIN,
    HOT,
    TelemetryClock,
    append,
    at_work,
    changes_of,
    kinds_of,
    rules_of,
    until_drained,
)
from tests.store.losing_store import LosingStore, Loss
from tests.waiting import until_async


def temp(seconds: float, value: Any, quality: Quality = Quality.GOOD) -> Sample:
    return Sample(BEGIN + round(seconds * 1000), "wrench.temp", value, quality)


async def until_kinds(store: Store, kinds: list[str]) -> None:
    """Wait until the alarms changed in this way."""

    async def are_there() -> bool:
        return await kinds_of(store) == kinds

    await until_async(are_there)


async def test_hot_tool_has_one_alarm_that_is_raised_escalated_and_cleared(store: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await append(store, *(temp(second, 81 + second / 10) for second in range(100)))
        await append(store, temp(100, 96), temp(101, 96.5))
        await append(store, temp(102, 74))
        await until_drained(store)
    assert await kinds_of(store) == ["raised", "escalated", "cleared"]
    (alarm,) = (await alarms.load(store)).alarms.values()
    assert (alarm.state, alarm.severity, alarm.count) == (AlarmState.RETURNED_UNACKNOWLEDGED, 800, 1)
    counters = await store.execute("HGETALL", store.keys.telemetry_counters())
    assert counters == {"processed": "103", "rule:triggered:hot": "1"}


async def test_delay_expires_at_its_instant_without_a_sample(store: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT | {"on_delay_seconds": 0.2}), clock):
        await append(store, temp(0, 90))
        await until_drained(store)
        assert await kinds_of(store) == []
        clock.now += 200
        await until_kinds(store, ["raised"])
    assert (await changes_of(store))[0].alarm.raised_at == BEGIN + 200


async def test_alarm_raised_by_a_delay_shows_the_last_usable_value(store: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT | {"on_delay_seconds": 0.2}), clock):
        await append(store, temp(0, 90), Sample(BEGIN, "wrench.temp", 91, Quality.BAD))
        await until_drained(store)
        clock.now += 200
        await until_kinds(store, ["raised"])
    assert (await changes_of(store))[0].alarm.value == 90


async def test_stale_alarm_is_cleared_by_the_arrival_of_an_old_value(store: Store) -> None:
    clock = TelemetryClock()
    silent = {"id": "silent", "kind": "stale", "tag": "wrench.temp", "seconds": 3, "severity": 400}
    async with at_work(store, rules_of(silent), clock):
        await append(store, temp(0, 60))
        await until_drained(store)
        clock.now += 5_000
        await until_kinds(store, ["raised"])
        clock.now += 5_000
        # The first value of a server that is back, and a source whose clock is slow.
        await append(store, temp(1, 60), arrived_at=clock.now)
        await until_kinds(store, ["raised", "cleared"])
        clock.now += 2_900
        await append(store, Sample(clock.now, "other", 1))
        await until_drained(store)
        assert await kinds_of(store) == ["raised", "cleared"]
        clock.now += 100
        await until_kinds(store, ["raised", "cleared", "raised"])


async def test_delay_and_window_continue_after_a_restart(store: Store) -> None:
    clock = TelemetryClock()
    baseline = {"id": "dev", "kind": "baseline", "tag": "wrench.temp", "severity": 300, "min_samples": 5}
    rules = rules_of(HOT | {"on_delay_seconds": 10}, baseline)
    chance = Random(7)
    lines = [temp(second, 20 + chance.random()) for second in range(400)]
    for first in range(0, 400, 40):
        async with at_work(store, rules, clock):
            await append(store, *lines[first : first + 40])
            await until_drained(store)
    async with at_work(store, rules, clock):
        await append(store, temp(400, 90))
        await until_drained(store)
    clock.now = BEGIN + 410_000
    expected = [*replay(rules, [*lines, temp(400, 90)], clock.now)]

    async def are_there() -> bool:
        return len(await changes_of(store)) >= len(expected)

    async with at_work(store, rules, clock):
        await until_async(are_there)
    found = [
        (alarm_change.alarm.rule, alarm_change.kind.value, alarm_change.alarm.changed_at)
        for alarm_change in await changes_of(store)
    ]
    assert found == [(finding.rule, finding.event.value, finding.at) for finding in expected]
    assert ("dev", "raised", BEGIN + 400_000) in found


async def test_batch_that_was_appended_twice_counts_once(store: Store) -> None:
    occurs = {"id": "left", "kind": "occurs", "pattern": "carrier.left", "severity": 5}
    async with at_work(store, rules_of(occurs), TelemetryClock()):
        for _ in range(3):
            await append(store, Occurrence(BEGIN, "carrier.left", "J1", None), number=1)
        await until_drained(store)
    assert await kinds_of(store) == ["raised", "cleared"]
    assert (await changes_of(store))[0].alarm.count == 1


async def test_acknowledgement_is_kept_while_the_rule_is_evaluated(store: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT), clock):
        await append(store, temp(0, 90))
        await until_drained(store)
        (alarm_id,) = (await alarms.load(store)).alarms
        await request_change(store, alarm_id, Acknowledge("bo"), clock)
        await append(store, temp(1, 70))
        await until_drained(store)
    assert await kinds_of(store) == ["raised", "acknowledged", "cleared"]
    assert (await alarms.load(store)).alarms == {}


async def test_entry_that_is_not_a_batch_becomes_a_dead_letter_without_secrets(store: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await store.execute("XADD", store.keys.telemetry(), "*", "garbage", "password=canary")
        await append(store, temp(0, 90))
        await until_drained(store)
    ((_, fields),) = await store.execute("XRANGE", store.keys.telemetry_dlq(), "-", "+")
    assert "garbage" in str(fields)
    assert "canary" not in str(fields)
    assert await kinds_of(store) == ["raised"]
    assert await store.execute("HGET", store.keys.telemetry_counters(), "dlq") == "1"


async def test_batch_that_crashes_five_times_becomes_a_dead_letter(store: Store) -> None:
    await telemetry.create_group(store)
    await append(store, temp(0, 90))
    (entry,) = await telemetry.take_new(store, 1)
    for _ in range(4):
        await telemetry.count_delivery(store, entry.entry_id)
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await until_drained(store)
    assert await store.execute("XLEN", store.keys.telemetry_dlq()) == 1
    assert await kinds_of(store) == []


async def test_entries_of_a_stopped_consumer_are_taken_over(store: Store, redis: RedisSettings) -> None:
    async with open_store(redis, "gone") as other:
        await telemetry.create_group(other)
        await append(other, temp(0, 90))
        assert await telemetry.take_new(other, 1)
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await until_drained(store)
    assert await kinds_of(store) == ["raised"]


async def test_alarm_of_a_removed_rule_is_cleared(store: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await append(store, temp(0, 90))
        await until_drained(store)
    async with at_work(store, rules_of(HOT | {"id": "other"}), TelemetryClock()):
        await until_kinds(store, ["raised", "cleared"])
        await append(store, temp(1, 90))
        await until_drained(store)
    names = [
        value for value in await store.execute("HKEYS", telemetry_keys.telemetry_state(store.keys)) if "wrench" in value
    ]
    assert names == ['["other","wrench.temp"]']


async def test_bad_samples_are_counted_and_the_others_evaluated(store: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        fields = {"producer": "p", "number": "1", "at": str(BEGIN), "0": "nonsense"}
        fields["1"] = f'{{"at":{BEGIN},"tag":"wrench.temp","value":90}}'
        await store.commit(telemetry.append(store.keys, fields, 100))
        await append(store, temp(1, float("nan")), temp(2, "text"), temp(3, 91, Quality.BAD))
        await until_drained(store)
    assert await kinds_of(store) == ["raised"]
    assert await store.execute("HGET", store.keys.telemetry_counters(), "refused") == "1"


async def test_last_sample_of_a_tag_is_saved(store: Store) -> None:
    async with at_work(store, rules_of(), TelemetryClock()):
        await append(store, temp(0, 20), temp(1, 21))
        await until_async(partial(tags.load_last, store))
    assert await tags.load_last(store) == {"wrench.temp": f'{{"at":{BEGIN + 1000},"tag":"wrench.temp","value":21}}'}


@pytest.mark.parametrize("seed", range(3))
async def test_failed_commits_neither_lose_nor_duplicate_alarms(store: Store, seed: int) -> None:
    chance = Random(seed)
    rules = rules_of(
        HOT | {"on_delay_seconds": 1, "while": "job.running"},
        {"id": "dev", "kind": "baseline", "tag": "*", "severity": 300, "min_samples": 4, "sigma": 1.5},
        {"id": "new", "kind": "enters", "tag": "station", "severity": 5, "once": "job"},
    )
    lines: list[Line] = []
    for second in range(120):
        at = BEGIN + second * 1000
        match chance.randint(0, 9):
            case 0:
                lines.append(Occurrence(at, chance.choice(["job.started", "job.ended"]), chance.choice("JK"), None))
            case 1 | 2:
                lines.append(Sample(at, "station", chance.choice(["S1", "S2", "S3"])))
            case _:
                lines.append(temp(second, chance.choice([70, 85, 99])))
    losses: list[Loss] = []

    def lose_some() -> Iterator[Loss | None]:
        while True:
            loss = chance.choice([*Loss, *[None] * 6])
            losses.extend([loss] if loss else [])
            yield loss

    await telemetry.create_group(store)
    processor = RuleProcessor(
        LosingStore(store, lose_some()),
        rules,
        # Before all samples: their timers end with them, not with the test.
        lambda: BEGIN - 1_000_000 + int(time.monotonic() * 1000) % 1_000,
        retry_s=0.001,
        durable_interval_ms=10 * seed,
    )
    running = asyncio.create_task(processor.run())
    for first in range(0, len(lines), 6):
        await append(store, *lines[first : first + 6])
    await until_drained(store)
    running.cancel()
    expected = [
        finding for finding in replay(rules, lines, lines[-1].at) if finding.rule != "new" or finding.event == "raised"
    ]
    alarm_changes = [
        alarm_change
        for alarm_change in await changes_of(store)
        if (alarm_change.alarm.rule, alarm_change.kind) != ("new", "cleared")
    ]
    assert [
        (alarm_change.alarm.rule, alarm_change.kind.value, alarm_change.alarm.changed_at)
        for alarm_change in alarm_changes
    ] == [(finding.rule, finding.event.value, finding.at) for finding in expected]
    assert len(losses) > 3


async def test_changed_rules_apply_from_the_next_entry(store: Store) -> None:
    """Their alarms are cleared with them; states of rules that stay continue."""
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT, HOT | {"id": "other"}), clock) as processor:
        await append(store, temp(0, 90))
        await until_kinds(store, ["raised", "raised"])
        processor.use_rules(rules_of(HOT))
        await append(store, temp(1, 96))
        await until_kinds(store, ["raised", "raised", "cleared", "escalated"])


async def test_samples_without_an_alarm_share_a_commit(store: Store) -> None:
    """At few samples a second a commit for each costs many times the sample."""
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT), clock, durable_interval_ms=1_000) as processor:
        await append(store, temp(0, 20))
        await until_drained(store)
        for second in range(1, 9):
            await append(store, temp(second, 20))
        await until_async(lambda: _is_taken(store, 8))
        assert processor.evaluated == 1
        clock.now += 1_000
        await until_drained(store)
        await append(store, temp(9, 20), temp(9, 96))
        await until_drained(store)
    assert await kinds_of(store) == ["raised"]
    assert (await telemetry.read_counters(store))["processed"] == 11


async def _is_taken(store: Store, pending: int) -> bool:
    (group,) = await store.execute("XINFO GROUPS", store.keys.telemetry())
    return (int(group["lag"]), int(group["pending"])) == (0, pending)


async def test_entries_of_a_killed_process_are_committed_one_by_one(store: Store) -> None:
    """An entry that ended the process would take along those that wait for a common commit with it."""
    rules, clock = rules_of(HOT), TelemetryClock()
    await telemetry.create_group(store)
    async with at_work(store, rules, clock, durable_interval_ms=1_000):
        await append(store, temp(0, 20))
        await until_drained(store)
    await append(store, temp(1, 20))
    await append(store, temp(2, 20))
    await telemetry.take_new(store, 1)
    async with at_work(store, rules, clock, durable_interval_ms=1_000) as processor:
        await until_drained(store)
        assert processor.evaluated == 2


async def test_findings_suppressed_by_a_cooldown_are_counted(store: Store) -> None:
    occurs = {"id": "left", "kind": "occurs", "pattern": "carrier.left", "severity": 5, "cooldown_seconds": 60}
    async with at_work(store, rules_of(HOT | {"cooldown_seconds": 60}, occurs), TelemetryClock()):
        for second, value in enumerate((90, 91, 20, 90, 91, 20, 90)):
            await append(store, temp(second, value), Occurrence(BEGIN + second * 1000, "carrier.left", "J1", None))
        await until_drained(store)
    counters = await telemetry.read_counters(store)
    assert counters["rule:rate_limited:hot"] == 2
    assert counters["rule:rate_limited:left"] == 6


async def test_counted_bytes_match_the_growth_of_the_append_only_file() -> None:
    clock, began = TelemetryClock(), BEGIN
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        async with open_store(RedisSettings(url=f"embedded:{directory}"), "one") as own:
            baseline = {"id": "dev", "kind": "baseline", "tag": "*", "severity": 300}
            queue = SampleQueue(own, clock)
            async with (
                at_work(own, rules_of(HOT, baseline), clock, durable_interval_ms=1_000) as processor,
                background_task(queue.run(), "samples"),
            ):
                await until_async(lambda: own.execute("EXISTS", own.keys.telemetry()))
                before = int((await own.execute("INFO", "persistence"))["aof_current_size"])
                for second in range(20):
                    clock.now = began + second * 1000
                    for number in range(10):
                        queue.put(temp(second + number / 100, 70 + number * second % 13))
                    await queue.settle(queue.received)
                clock.now += 10_000
                await until_drained(own)
                size = int((await own.execute("INFO", "persistence"))["aof_current_size"]) - before
                counted = queue.written_bytes + processor.written_bytes
                counted += processor.alarms.written_bytes + processor.tags.written_bytes
    assert size > 10_000
    assert counted == pytest.approx(size, rel=0.15)


async def test_alarm_of_an_earlier_release_is_taken_by_the_gateway_that_has_it(store: Store) -> None:
    """The acknowledgement of a person stays, and the alarm of another gateway is another one."""
    rule = HOT | {"tag": "gateway.temp"}
    async with at_work(store, rules_of(rule), TelemetryClock()):
        await append(store, Sample(BEGIN, "gateway.temp", 90))
        await until_kinds(store, ["raised"])
        (before,) = (await alarms.load(store)).alarms.values()
        await request_change(store, before.id, Acknowledge("anna", "seen"), TelemetryClock())
    async with at_work(store, rules_of(rule), TelemetryClock()):
        for number, (gateway, value) in enumerate((("a", 91), ("b", 92), ("b", 20)), 1):
            await append(store, Sample(BEGIN + number, "gateway.temp", value, gateway=gateway))
        await until_drained(store)
    found = {alarm.subject: alarm for alarm in (await alarms.load(store)).alarms.values()}
    assert found["gateway.temp[a]"].state is AlarmState.ACKNOWLEDGED
    assert found["gateway.temp[a]"].comment == "seen"
    assert found["gateway.temp[b]"].state is AlarmState.RETURNED_UNACKNOWLEDGED
    assert "gateway.temp" not in found
