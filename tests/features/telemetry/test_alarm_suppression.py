"""Alarms of the configured rules are suppressed during maintenance and shown again afterwards."""

import pytest

from edge.access.mode import ModeWatch
from edge.features.telemetry.alarm_suppression import AlarmSuppression, plan_suppression
from edge.model.plant import Maintenance
from edge.ports.alarm import ActiveState, Alarm, AlarmChangeKind
from edge.store import kept_alarms as alarms
from edge.store import mode
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange


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
