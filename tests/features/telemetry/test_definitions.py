"""Rules of the settings, of the station and of this software are merged by id."""

from pathlib import Path

import pytest

from edge.app.features import settings_kinds
from edge.features.telemetry.definitions import (
    RuleOrigin,
    RuleUpdates,
    TagUpdates,
    combine,
    load_sent_rules,
    read_definitions,
    read_rules,
)
from edge.features.telemetry.model.rule import Rule
from edge.foundation.errors import SettingsError
from edge.foundation.task_group import background_task
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.station.settings import SettingsMethod, StationSettings, follow_settings
from edge.store.client import Store
from edge.store.resources import TAGS
from tests.conftest import WaitUntil
from tests.features.telemetry.plant import HOT, rules_of


def test_station_rule_replaces_the_settings_rule_with_the_same_id() -> None:
    own = rules_of(HOT, HOT | {"id": "cold"}, HOT | {"id": "gateway.job_aborted"})
    sent = rules_of(HOT | {"hysteresis": 9}, HOT | {"id": "gateway.step_overdue"})
    known_rules = {known_rule.rule.id: known_rule for known_rule in combine(own, sent)}
    assert known_rules["hot"].rule == sent[0]
    assert {
        name: known_rules[name].origin for name in ("hot", "cold", "gateway.job_aborted", "gateway.step_overdue")
    } == {
        "hot": RuleOrigin.STATION,
        "cold": RuleOrigin.SETTINGS,
        "gateway.job_aborted": RuleOrigin.SETTINGS,
        "gateway.step_overdue": RuleOrigin.STATION,
    }
    assert known_rules["gateway.equipment_offline"].origin is RuleOrigin.BUILT_IN


async def test_rule_that_is_not_json_is_skipped(store: Store) -> None:
    await store.execute("HSET", store.keys.telemetry_rules(), "rev", "3", "id:x", "{")
    sent_rules = await load_sent_rules(store)
    assert (sent_rules.revision, sent_rules.rules) == (3, ())


def test_rules_are_empty_without_a_file_and_a_missing_file_is_a_fault() -> None:
    assert read_rules("") == ()
    with pytest.raises(SettingsError, match="cannot be read"):
        read_rules("away.json")


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


async def test_changed_definitions_of_the_store_are_loaded(store: Store, wait_until: WaitUntil) -> None:
    tag_definitions = TagDefinitions([TagDefinition("t", unit="CEL"), TagDefinition("u", unit="BAR")])
    settings = StationSettings(store, settings_kinds())
    async with background_task(follow_settings(store, [TagUpdates(store, tag_definitions).refresh]), "updates"):
        sent = [{"tag": "t", "unit": "KEL"}, {"tag": "rev", "unit": "C62"}]
        await settings.apply("s", "tag", SettingsMethod.PUT, sent)
        await wait_until(lambda: tag_definitions.find("rev"))
        assert [definition.unit for tag in ("t", "u", "rev") if (definition := tag_definitions.find(tag))] == [
            "KEL",
            "BAR",
            "C62",
        ]
        await settings.apply("s", "tag", SettingsMethod.DELETE, {"tag": "t"})
        await wait_until(lambda: tag_definitions.find("t") == TagDefinition("t", unit="CEL"))


async def test_unreadable_definition_is_skipped(store: Store) -> None:
    tag_definitions = TagDefinitions()
    await store.commit(TAGS.save(store.keys, 0, {"a": '{"tag":"a","future":1}', "b": '{"tag":"b"}'}))
    await TagUpdates(store, tag_definitions).refresh()
    assert (tag_definitions.find("a"), tag_definitions.find("b")) == (None, TagDefinition("b"))


def test_file_is_read_and_an_empty_name_means_no_definitions(tmp_path: Path) -> None:
    file = tmp_path / "tags.json"
    file.write_text('[{"tag": "t", "unit": "CEL"}]')
    tag_definition = read_definitions(str(file)).find("t")
    assert tag_definition is not None
    assert tag_definition.unit == "CEL"
    assert read_definitions("").find("t") is None


@pytest.mark.parametrize(
    ("text", "fault"), [("[", "not JSON"), ("{}", "a list"), ('[{"tag": "t", "unit": "m"}]', "'t'")]
)
def test_faulty_file_is_named_in_the_refusal(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "tags.json"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_definitions(str(file))
    assert "tags.json" in str(refused.value.problems)
    assert fault in str(refused.value.problems)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_definitions(str(tmp_path / "none.json"))
