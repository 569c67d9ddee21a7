"""Alarms of a running processor: floods and shelvings end in time under all conditions."""

import pytest

from edge.access.mode import ModeWatch
from edge.features.telemetry.alarm_decision import FLOOD_RULE
from edge.features.telemetry.alarm_keeper import LOOK_MS, AlarmKeeper, AlarmSuppression, plan_suppression
from edge.features.telemetry.alarm_requests import request_change
from edge.features.telemetry.built_in_rules import JOB_ABORTED_RULE
from edge.features.telemetry.rules.alarm import Acknowledge, Shelve
from edge.foundation.instant import now_ms
from edge.model.plant import Maintenance
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind, alarm_id
from edge.ports.sample_lines import Sample
from edge.store import kept_alarms as alarms
from edge.store import mode
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange
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
from tests.features.telemetry.test_processor import temp, until_kinds
from tests.waiting import until_async


async def test_flood_is_one_alarm_and_active_conditions_are_raised_at_its_end(store: Store) -> None:
    clock = TelemetryClock()
    rules = rules_of(HOT | {"tag": "*", "message": "{subject} has {value}"})
    async with at_work(store, rules, clock, flood_limit=10):
        await append(store, *(Sample(BEGIN, f"t{number}", 90) for number in range(40)))
        await until_drained(store)
        assert await kinds_of(store) == ["raised"] * 11
        await append(store, *(Sample(BEGIN + 1, f"t{number}", 20) for number in range(20)))
        await until_drained(store)
        clock.now += 61_000
        # Samples come all the time: the end of a flood does not wait for silence.
        await until_async(lambda: _has_cleared(store, clock))
    raised = [alarm_change.alarm for alarm_change in await changes_of(store) if alarm_change.kind.value == "raised"]
    assert sorted(alarm.subject for alarm in raised[11:]) == sorted(f"t{number}" for number in range(20, 40))
    assert raised[-1].message["en"].endswith("has 90")
    assert (await telemetry.read_counters(store))["withheld"] == 30


async def _has_cleared(store: Store, clock: TelemetryClock) -> bool:
    clock.now += 10
    await append(store, Sample(clock.now, "other", 1))
    changes = await changes_of(store)
    return changes[-1].alarm.rule == FLOOD_RULE and changes[-1].kind.value == "cleared"


async def test_flood_continues_after_a_restart(store: Store) -> None:
    clock, rules = TelemetryClock(), rules_of(HOT | {"tag": "*"})
    async with at_work(store, rules, clock, flood_limit=10):
        await append(store, *(Sample(BEGIN, f"t{number}", 90) for number in range(40)))
        await until_drained(store)
    async with at_work(store, rules, clock, flood_limit=10):
        await append(store, Sample(BEGIN + 1, "t40", 90))
        await until_drained(store)
        assert await kinds_of(store) == ["raised"] * 11
        clock.now += 61_000
        await until_kinds(store, ["raised"] * 42 + ["cleared"])


async def test_shelving_ends_during_a_continuous_sample_stream(store: Store) -> None:
    """Its end was looked for only when no sample waited."""
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT), clock):
        await append(store, temp(0, 90))
        await until_drained(store)
        (ident,) = (await alarms.load(store)).alarms
        await request_change(store, ident, Shelve("bo", until=clock.now + 5_000), clock)
        await append(store, temp(1, 96))
        await until_drained(store)
        clock.now += 5_000
        for second in range(2, 40):
            await append(store, temp(second, 97))
        await until_drained(store)
    assert await kinds_of(store) == ["raised", "shelved", "escalated", "unshelved"]


async def test_shelving_ends_without_any_other_alarm_change(store: Store) -> None:
    """The processor knew a shelving only after the next change of an alarm: without one it lasted for ever."""
    async with at_work(store, rules_of(HOT), now_ms) as processor:
        await append(store, Sample(now_ms(), "wrench.temp", 90))
        await until_kinds(store, ["raised"])
        (ident,) = (await alarms.load(store)).alarms
        ends_at = now_ms() + 300
        await request_change(store, ident, Shelve("bo", until=ends_at), now_ms)
        await until_kinds(store, ["raised", "shelved", "unshelved"])
        (*_, unshelved) = await changes_of(store)
        assert 0 <= unshelved.alarm.changed_at - ends_at < 60_000
        assert processor.alarms.shelved == 0


async def test_alarm_of_an_aborted_job_expires_with_its_job(store: Store) -> None:
    """Hundreds of them waited for a person, and their jobs were gone."""
    clock = TelemetryClock()
    before = await alarms.load(store)
    unacknowledged = AckState.UNACKNOWLEDGED
    stored = [
        Alarm(id=alarm_id(rule, subject), rule=rule, subject=subject, acknowledgement=unacknowledged)
        for rule, subject in ((JOB_ABORTED_RULE, "J1"), (JOB_ABORTED_RULE, "J2"), ("other", "J1"))
    ]
    raised = [AlarmChange(alarm, AlarmChangeKind.RAISED) for alarm in stored]
    await store.commit(alarms.save(store.keys, before, raised))
    await store.execute("HSET", store.keys.joborder("J2"), "state", "ABORTED")
    keeper = AlarmKeeper(store, clock)
    await keeper.tend(list)
    left = {(alarm.rule, alarm.subject) for alarm in (await alarms.load(store)).alarms.values()}
    assert left == {(JOB_ABORTED_RULE, "J2"), ("other", "J1")}


async def test_acknowledged_and_cleared_alarms_do_not_count_as_standing(store: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT), clock) as processor:
        await append(store, temp(0, 90))
        await append(store, temp(1, 20))
        await until_kinds(store, ["raised", "cleared"])
        (ident,) = (await alarms.load(store)).alarms
        await request_change(store, ident, Acknowledge("bo"), clock)
        clock.now += LOOK_MS
        await append(store, temp(2, 20))

        async def is_over() -> bool:
            return processor.alarms.standing == 0

        await until_async(is_over)


async def test_alarm_rate_counts_the_alarms_of_ten_minutes(store: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT), clock) as processor:
        keeper: AlarmKeeper = processor.alarms
        for second, value in enumerate((90, 20, 90, 20)):
            await append(store, temp(second, value))
        await until_drained(store)
        assert (keeper.rate, keeper.standing, keeper.shelved) == (2, 1, 0)
        clock.now += 600_001
        assert keeper.rate == 1


def alarm(rule: str, *, suppressed: bool = False) -> Alarm:
    return Alarm(id=f"{rule}/x", rule=rule, subject="x", active=ActiveState.ACTIVE, suppressed=suppressed)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [((), ["b"]), (("*",), ["a.1", "a.2"]), (("a.*",), ["a.1", "a.2", "b"]), (("b", "a.1"), ["a.1"])],
)
def test_exactly_the_alarms_of_the_named_rules_are_suppressed(rules: tuple[str, ...], expected: list[str]) -> None:
    found = {item.id: item for item in (alarm("a.1"), alarm("a.2"), alarm("b", suppressed=True))}
    changes = plan_suppression(found, rules, 5)
    assert [change.alarm.rule for change in changes] == expected


async def test_suppression_follows_the_maintenance_mode(store: Store) -> None:
    async def switch(to: Maintenance | None) -> None:
        await store.commit(mode.save(store.keys, await mode.load(store, "gw-1"), "", to))
        await watch.refresh()

    async def suppressed() -> dict[str, bool]:
        return {item.rule: item.suppressed for item in (await alarms.load(store)).alarms.values()}

    async def add(rule: str) -> None:
        change = AlarmChange(alarm(rule), AlarmChangeKind.RAISED)
        await store.commit(alarms.save(store.keys, await alarms.load(store), [change]))

    watch = ModeWatch(store, "gw-1")
    suppression = AlarmSuppression(store, watch, ("a",), lambda: 5)
    await add("a")
    await suppression.look()
    assert await suppressed() == {"a": False}
    await switch(Maintenance())
    await suppression.look()
    await add("b")
    await suppression.look()
    assert await suppressed() == {"a": True, "b": False}
    await switch(None)
    # Another process: the one that suppressed it was killed.
    await AlarmSuppression(store, watch, ("a",), lambda: 5).look()
    assert await suppressed() == {"a": False, "b": False}
