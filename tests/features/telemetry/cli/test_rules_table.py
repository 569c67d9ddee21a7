"""The severity of a rule is that of its levels, and its report has the format of a rules file."""

import json

import pytest

from edge.features.telemetry.cli.rules import as_data, report, table
from edge.features.telemetry.definitions import KnownRule, RuleOrigin
from edge.features.telemetry.model.rule import Rule
from tests.features.telemetry.plant import HOT, rules_of

TWO = HOT | {"limits": {"high": {"at": 80}, "high_high": {"at": 95, "severity": 800}}, "severity": 300}
STALE = {"id": "away", "kind": "stale", "tag": "oven.*", "seconds": 5, "severity": 600}


def known(rule: Rule) -> KnownRule:
    """Return a rule of the settings."""
    return KnownRule(rule, RuleOrigin.SETTINGS)


@pytest.mark.parametrize(("rule", "severity"), [(TWO, "300–800"), (STALE, "600")], ids=["two levels", "stale"])
def test_table_has_the_severities_of_a_rule(rule: dict[str, object], severity: str) -> None:
    found = table(map(known, rules_of(rule)), {"away": 2})
    columns = {str(column.header): [str(cell) for cell in column.cells] for column in found.columns}
    assert (columns["severity"], columns["from"]) == ([severity], ["settings"])


def test_report_has_the_rule_in_file_format() -> None:
    origin, raised, text = report(known(rules_of(STALE)[0]), 2)
    assert (origin.split(), raised.split()) == (["from", "settings"], ["raised", "2"])
    assert rules_of(*json.loads(text)) == rules_of(STALE)
    assert as_data(known(rules_of(STALE)[0]), 2)["raised"] == 2
