"""Every gateway has built-in rules about itself, which the user may replace."""

from collections.abc import Mapping

from edge.features.telemetry.built_in_rules import built_in_documents, with_built_in
from edge.features.telemetry.rules.rule_form import parse_rules
from tests.features.telemetry.plant import HOT, rules_of


def test_built_in_rules_are_without_fault() -> None:
    assert parse_rules(list(built_in_documents())) == (with_built_in(()), ())


def test_built_in_rules_speak_every_language_with_a_catalogue() -> None:
    (offline,) = (rule for rule in with_built_in(()) if rule.id == "gateway.equipment_offline")
    assert offline.message == {
        "en": "{name} is offline",
        "de": "{name} ist nicht erreichbar",
        "fr": "{name} est hors ligne",
    }


def test_user_rule_replaces_the_built_in_rule() -> None:
    built_in = with_built_in(())
    assert {"gateway.equipment_offline", "gateway.tool_may_be_active", "gateway.outcome_unknown"} < {
        rule.id for rule in built_in
    }
    own = rules_of(HOT | {"id": "gateway.equipment_offline"})
    assert with_built_in(own)[0] == own[0]
    assert len(with_built_in(own)) == len(built_in)


def test_alarms_of_store_servers_state_no_number() -> None:
    """They read "1 sentinels", and "– sentinels" when the gateway opened while one was away."""
    names = {"sentinel_away", "replica_away", "replica_lags", "clock_differs", "without_file"}
    rules = [rule for rule in with_built_in(()) if rule.id.removeprefix("gateway.store_") in names]
    assert len(rules) == len(names)
    for rule in rules:
        assert isinstance(rule.message, Mapping)
        assert not any("{" in text for text in rule.message.values())
