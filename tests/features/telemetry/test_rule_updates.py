"""Rules of the MES replace those of the settings by id, also when another gateway received them."""

from edge.app.features import settings_kinds
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rule_updates import RuleUpdates
from edge.links.background_task import background_task
from edge.station.settings import SettingsMethod, StationSettings, follow_settings
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.plant import HOT, rules_of


async def test_changed_rules_of_the_mes_are_loaded(store: Store, wait_until: WaitUntil) -> None:
    applied: list[tuple[Rule, ...]] = []
    updates = RuleUpdates(store, rules_of(HOT), applied.append)
    settings = StationSettings(store, settings_kinds())
    await updates.refresh()
    assert applied == []
    async with background_task(follow_settings(store, [updates.refresh]), "updates"):
        await settings.apply("s", "rule", SettingsMethod.PUT, [HOT | {"hysteresis": 9}, HOT | {"id": "cold"}])
        await wait_until(lambda: applied)
        assert [rule.id for rule in applied[-1]][:2] == ["cold", "hot"]
        assert applied[-1][1] == rules_of(HOT | {"hysteresis": 9})[0]
        await settings.apply("s", "rule", SettingsMethod.DELETE, [{"id": "hot"}, {"id": "cold"}])
        await wait_until(lambda: len(applied) == 2)
    assert applied[-1][0] == rules_of(HOT)[0]


async def test_unreadable_rule_is_skipped(store: Store) -> None:
    applied: list[tuple[Rule, ...]] = []
    await store.execute("HSET", store.keys.telemetry_rules(), "rev", "1", "id:x", '{"id": "x", "kind": "future"}')
    await RuleUpdates(store, (), applied.append).refresh()
    assert "x" not in {rule.id for rule in applied[0]}
