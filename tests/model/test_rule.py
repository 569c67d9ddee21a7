"""The models of rules, their schema and their page."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from edge.model.rule import RULE_KINDS, OccursRule, Rule, StaleRule, rules_schema

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
OPTIONS = {"while", "once", "cooldown_seconds", "bypass_cooldown", "message", "action", "latch", "confirm"}
COMMON = {"id", "severity", "tag", "subject", *OPTIONS}


def documented(heading: str) -> dict[str, str]:
    """Return the members in the table of a section with their defaults."""
    section = PAGE.partition(f"{heading}\n")[2].partition("\n#")[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE))


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_page_lists_the_members_of_a_kind_with_their_defaults(kind: str) -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(RULE_KINDS[kind])}
    own = {name: field for name, field in fields.items() if name not in COMMON}
    table = documented(f"### {kind}")
    assert table.keys() == own.keys()
    for name, field in own.items():
        assert (table[name] == "required") is field.required
        if isinstance(field.default, int | float):
            assert table[name] == str(field.default)


def test_page_lists_the_members_of_every_rule() -> None:
    assert documented("## Members of every rule").keys() == COMMON | {"kind"}


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
def test_schema_accepts_what_the_models_accept(item: dict[str, Any], valid: bool) -> None:  # noqa: FBT001
    errors = list(jsonschema.Draft202012Validator(rules_schema()).iter_errors([item]))
    assert (not errors) is valid
