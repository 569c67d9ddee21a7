"""The models of rules, their schema and their page."""

from typing import Any

import jsonschema
import msgspec
import pytest

from edge.features.telemetry.model.rule import RULE_KINDS, OccursRule, Rule, StaleRule, rules_schema
from tests.features.telemetry.model import rule_reference


def test_member_while_has_its_wire_name() -> None:
    rule = msgspec.convert(
        {"id": "r", "kind": "stale", "severity": 5, "tag": "t", "seconds": 1, "while": "job.running"}, Rule
    )
    assert rule == StaleRule(id="r", severity=5, tag="t", seconds=1, while_="job.running")
    assert msgspec.to_builtins(OccursRule(id="r", pattern="x", severity=1)) == {
        "kind": "occurs",
        "id": "r",
        "pattern": "x",
        "severity": 1,
    }


@pytest.mark.parametrize(
    ("item", "valid"),
    [
        ({"id": "r", "kind": "rate", "severity": 5, "tag": "t", "per_second": 1}, True),
        ({"id": "r", "kind": "rate", "severity": 5, "tag": "t"}, False),
        ({"id": "r", "kind": "rate", "severity": 5, "tag": "t", "per_second": 1, "x": 1}, False),
        ({"id": "r", "kind": "limit", "tag": "t", "limits": {"high": {"at": 1, "severity": 2000}}}, False),
    ],
)
def test_schema_accepts_what_the_models_accept(item: dict[str, Any], valid: bool) -> None:  # noqa: FBT001 - a parameter
    errors = list(jsonschema.Draft202012Validator(rules_schema()).iter_errors([item]))
    assert (not errors) is valid


def test_reference_page_has_the_tables_of_the_schemas() -> None:
    text = rule_reference.PAGE.read_text(encoding="utf-8")
    assert text == rule_reference.page(text), rule_reference.__doc__
    assert all(f"### {kind}\n" in text for kind in RULE_KINDS)
    with pytest.raises(AssertionError, match="no table of members below"):
        rule_reference.page("")
