"""Every gateway has built-in rules about itself, which the user may replace."""

from edge.features.telemetry.built_in_rules import BUILT_IN, with_built_in
from edge.features.telemetry.rules.rule_form import parse_rules
from tests.features.telemetry.plant import HOT, rules_of


def test_built_in_rules_are_without_fault() -> None:
    assert parse_rules(list(BUILT_IN)) == (with_built_in(()), ())


def test_user_rule_replaces_the_built_in_rule() -> None:
    built_in = with_built_in(())
    assert {"gateway.equipment_offline", "gateway.tool_may_be_active", "gateway.outcome_unknown"} < {
        rule.id for rule in built_in
    }
    own = rules_of(HOT | {"id": "gateway.equipment_offline"})
    assert with_built_in(own)[0] == own[0]
    assert len(with_built_in(own)) == len(built_in)
