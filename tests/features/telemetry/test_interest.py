"""Lines used by no rule are not recorded."""

import pytest

from edge.features.telemetry.interest import RuleInterest
from edge.ports.sample_lines import Line, Occurrence, Sample
from tests.features.telemetry.plant import HOT, rules_of

EXPRESSION = {"id": "e", "kind": "expression", "when": "a.b > 1", "severity": 1}
OCCURS = {"id": "o", "kind": "occurs", "pattern": "carrier.*", "severity": 1}
STARTED = Occurrence(1, "job.started", "J", None)


@pytest.mark.parametrize(
    ("rule", "line", "wanted"),
    [
        (HOT, Sample(1, "wrench.temp", 1), True),
        (HOT, Sample(1, "wrench.torque", 1), False),
        (HOT | {"tag": "*.torque"}, Sample(1, "wrench.torque", 1), True),
        (EXPRESSION, Sample(1, "a.b", 1), True),
        (EXPRESSION, Sample(1, "a", 1), False),
        (OCCURS, Occurrence(1, "carrier.left", None, None), True),
        (OCCURS, STARTED, False),
        (HOT, STARTED, False),
        (HOT | {"while": "job.running"}, STARTED, True),
        (HOT | {"once": "job"}, STARTED, True),
        (HOT | {"action": "pause"}, STARTED, True),
    ],
)
def test_only_lines_that_a_rule_uses_are_recorded(rule: dict[str, object], line: Line, wanted: bool) -> None:  # noqa: FBT001 - a parameter
    interest = RuleInterest(rules_of(rule))
    assert not interest.is_empty
    assert interest.wants(line) is wanted
    assert interest.wants(line) is wanted
    assert RuleInterest(rules_of(rule), record_all=True).wants(line)
    interest.use_rules(())
    assert interest.is_empty
    assert not interest.wants(line)


def test_occurrences_that_delimit_a_span_are_recorded() -> None:
    rule = {"id": "r", "kind": "limit", "tag": "t", "severity": 1, "limits": {"high": {"at": 1}}}
    interest = RuleInterest(rules_of(rule | {"while": {"after": "entered", "until": "left.*"}}))
    names = ("entered", "left.early", "left", "job.started")
    assert [interest.wants(Occurrence(0, name, None, None)) for name in names] == [True, True, False, False]


def test_published_tags_are_recorded() -> None:
    interest = RuleInterest(())
    assert not interest.wants(Sample(1, "press.oil", 1))
    assert interest.is_empty
    interest.publish(("press.*",))
    assert not interest.is_empty
    assert interest.wants(Sample(1, "press.oil", 1))
    assert not interest.wants(Sample(1, "wrench.torque", 1))


def test_only_tags_that_a_rule_evaluates_raise_alarms() -> None:
    interest = RuleInterest(rules_of({"id": "hot", "kind": "rate", "tag": "a.*", "per_second": 1, "severity": 1}))
    interest.publish(("b",))
    assert [interest.raises_alarms(tag) for tag in ("a.temp", "b")] == [True, False]
    assert interest.wants(Sample(1, "b", 1))
    interest.use_rules(())
    assert not interest.raises_alarms("a.temp")
