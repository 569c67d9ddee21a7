"""Rules of the settings, of the station and of this software are merged by id."""

import pytest

from edge.features.telemetry.rule_sources import RuleOrigin, combine, load_sent_rules, read_rules
from edge.foundation.errors import SettingsError
from edge.store.client import Store
from tests.features.telemetry.plant import HOT, rules_of


def test_station_rule_replaces_the_settings_rule_with_the_same_id() -> None:
    own = rules_of(HOT, HOT | {"id": "cold"}, HOT | {"id": "gateway.job_aborted"})
    sent = rules_of(HOT | {"hysteresis": 9}, HOT | {"id": "gateway.step_overdue"})
    known = {each.rule.id: each for each in combine(own, sent)}
    assert known["hot"].rule == sent[0]
    assert {name: known[name].origin for name in ("hot", "cold", "gateway.job_aborted", "gateway.step_overdue")} == {
        "hot": RuleOrigin.STATION,
        "cold": RuleOrigin.SETTINGS,
        "gateway.job_aborted": RuleOrigin.SETTINGS,
        "gateway.step_overdue": RuleOrigin.STATION,
    }
    assert known["gateway.equipment_offline"].origin is RuleOrigin.BUILT_IN


async def test_rule_that_is_not_json_is_skipped(store: Store) -> None:
    await store.execute("HSET", store.keys.telemetry_rules(), "rev", "3", "id:x", "{")
    sent = await load_sent_rules(store)
    assert (sent.revision, sent.rules) == (3, ())


def test_rules_are_empty_without_a_file_and_a_missing_file_is_a_fault() -> None:
    assert read_rules("") == ()
    with pytest.raises(SettingsError, match="cannot be read"):
        read_rules("away.json")
