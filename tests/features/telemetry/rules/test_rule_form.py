"""Faults of rules: each named with the id of its rule, all at once."""

from typing import Any

import pytest

from edge.features.telemetry.model.rule import RULE_KINDS, LimitRule
from edge.features.telemetry.rules.rule_form import parse_rules

GOOD: dict[str, dict[str, Any]] = {
    "limit": {"tag": "t", "limits": {"high": {"at": 1}}},
    "baseline": {"tag": "t"},
    "control_chart": {"tag": "t", "learn": 20},
    "rate": {"tag": "t", "per_second": 1},
    "stale": {"tag": "t", "seconds": 10},
    "share": {"tag": "t", "bad": 1, "of": 1},
    "enters": {"tag": "t"},
    "occurs": {"pattern": "x"},
    "expression": {"when": "a > 1"},
}


def faults(kind: str, **members: Any) -> list[str]:
    """Return the faults of a sound rule with some members replaced; None removes one."""
    item = {"id": "r", "kind": kind, "severity": 500} | GOOD[kind] | members
    _, found = parse_rules([{name: value for name, value in item.items() if value is not None}])
    assert all(fault.startswith("rule 'r': ") for fault in found)
    return [fault.removeprefix("rule 'r': ") for fault in found]


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_valid_rule_has_no_faults(kind: str) -> None:
    assert faults(kind) == []
    assert faults(kind, **{"while": "job.running"}, once="job", cooldown_seconds=1.5, bypass_cooldown=True) == []


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_invalid_common_member_is_a_fault(kind: str) -> None:
    assert faults(kind, colour="red") == ["unknown member 'colour'"]
    assert faults(kind, severity=None) != []
    assert faults(kind, severity=0) == ["member 'severity': expected `int` >= 1, not 0"]
    assert faults(kind, severity=1001) == ["member 'severity': expected `int` <= 1000, not 1001"]
    assert faults(kind, severity=1.5) == ["member 'severity': expected `int | null`, not 1.5"]
    assert faults(kind, once="always") != []
    assert faults(kind, **{"while": "open"}) != []
    assert faults(kind, cooldown_seconds=-1) == ["member 'cooldown_seconds': expected `float` >= 0.0, not -1"]
    assert faults(kind, bypass_cooldown="yes") == ["member 'bypass_cooldown': expected `bool`, not 'yes'"]
    assert faults(kind, tag=5) != []


@pytest.mark.parametrize("kind", sorted(set(RULE_KINDS) - {"occurs", "expression"}))
def test_missing_tag_is_a_fault(kind: str) -> None:
    assert faults(kind, tag=None) == ["missing member 'tag'"]


@pytest.mark.parametrize(
    ("kind", "members", "fault"),
    [
        ("limit", {"limits": {}}, "member 'limits': no limit is there; write one of low_low, low, high, high_high"),
        ("limit", {"limits": []}, "member 'limits': expected `object`, not []"),
        ("limit", {"limits": None}, "missing member 'limits'"),
        ("limit", {"limits": {"high": {}}}, "missing member 'limits.high.at'"),
        ("limit", {"limits": {"higher": {"at": 1}, "low": {"at": 1}}}, "unknown member 'limits.higher'"),
        ("limit", {"limits": {"high": {"at": "1"}}}, "member 'limits.high.at': expected `float`, not '1'"),
        ("limit", {"limits": {"high": {"at": 1, "colour": 1}}}, "unknown member 'limits.high.colour'"),
        (
            "limit",
            {"limits": {"high": {"at": 1, "severity": 0}}},
            "member 'limits.high.severity': expected `int` >= 1, not 0",
        ),
        (
            "limit",
            {"limits": {"low": {"at": 5}, "high": {"at": 5}}},
            "member 'limits': low (5) and high (5) must be in order",
        ),
        (
            "limit",
            {"limits": {"low_low": {"at": 5}, "high_high": {"at": 5}}},
            "member 'limits': low_low (5) and high_high (5) must be in order",
        ),
        (
            "limit",
            {"limits": {"high": {"at": 9}, "high_high": {"at": 8}}},
            "member 'limits': high (9) and high_high (8) must be in order",
        ),
        ("limit", {"hysteresis": -1}, "member 'hysteresis': expected `float` >= 0.0, not -1"),
        ("limit", {"on_delay_seconds": -1}, "member 'on_delay_seconds': expected `float` >= 0.0, not -1"),
        ("limit", {"off_delay_seconds": -1}, "member 'off_delay_seconds': expected `float` >= 0.0, not -1"),
        ("baseline", {"window_seconds": -1}, "member 'window_seconds': expected `float` >= 0.0, not -1"),
        ("baseline", {"sigma": -1}, "member 'sigma': expected `float` >= 0.0, not -1"),
        ("baseline", {"min_samples": 2.5}, "member 'min_samples': expected `int`, not 2.5"),
        ("control_chart", {"nelson": [0]}, "member 'nelson': expected `int` >= 1, not [0]"),
        ("control_chart", {"nelson": [9]}, "member 'nelson': expected `int` <= 8, not [9]"),
        ("control_chart", {"learn": 1}, "member 'learn': expected `int` >= 2, not 1"),
        ("control_chart", {"subgroup": 11}, "member 'subgroup': expected `int` <= 10, not 11"),
        (
            "control_chart",
            {"capability": {"lower": 2, "upper": 1, "cm": 1}},
            "member 'capability': lower (2) and upper (1) must be in order",
        ),
        (
            "control_chart",
            {"capability": {"lower": 1, "upper": 2}},
            "missing member 'capability.cm', and 'capability.cmk'; write one of them",
        ),
        ("control_chart", {"capability": {"upper": 2, "cm": 1}}, "missing member 'capability.lower'"),
        ("control_chart", {"capability": 5}, "member 'capability': expected `object | null`, not 5"),
        ("control_chart", {"learn": None}, "missing member 'learn'; write it, or 'mean' and 'sigma'"),
        ("control_chart", {"learn": None, "mean": 1}, "missing member 'learn'; write it, or 'mean' and 'sigma'"),
        ("control_chart", {"sigma": -1}, "member 'sigma': expected `float` >= 0.0, not -1"),
        ("rate", {"per_second": -1}, "member 'per_second': expected `float` >= 0.0, not -1"),
        ("rate", {"per_second": None}, "missing member 'per_second'"),
        ("stale", {"seconds": None}, "missing member 'seconds'"),
        ("stale", {"seconds": -0.1}, "member 'seconds': expected `float` >= 0.0, not -0.1"),
        ("share", {"bad": 3, "of": 2}, "member 'bad': 3 is more than 'of', 2"),
        ("share", {"bad": 0}, "member 'bad': expected `int` >= 1, not 0"),
        ("share", {"bad": None}, "missing member 'bad'"),
        ("share", {"of": None}, "missing member 'of'"),
        ("occurs", {"pattern": None}, "missing member 'pattern'"),
        ("expression", {"when": None}, "missing member 'when'"),
        ("expression", {"when": "a = 1"}, "member 'when': write '==' to compare (at character 3)"),
        (
            "expression",
            {"when": "a + 1"},
            "member 'when': 'a + 1' is a number, where true or false is needed (at character 1)",
        ),
    ],
)
def test_invalid_member_of_each_kind_is_a_fault(kind: str, members: dict[str, Any], fault: str) -> None:
    assert fault in faults(kind, **members)
    assert len(faults(kind, **members)) == 1


def test_each_limit_needs_a_severity_of_its_own_or_that_of_the_rule() -> None:
    limits = {"high": {"at": 1, "severity": 3}, "low": {"at": 0}}
    fault = "missing member 'limits.low.severity', and the rule has no 'severity'"
    assert faults("limit", severity=None, limits=limits) == [fault]
    assert faults("limit", severity=None, limits={"high": {"at": 1, "severity": 3}}) == []


@pytest.mark.parametrize("kind", sorted(set(RULE_KINDS) - {"limit"}))
def test_every_other_kind_needs_a_severity(kind: str) -> None:
    assert faults(kind, severity=None) == ["missing member 'severity'"]


def test_control_chart_with_mean_and_sigma_needs_no_learn_member() -> None:
    assert faults("control_chart", learn=None, mean=1, sigma=0) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, ["rules must be a list of objects"]),
        ([5], ["rules[0]: must be an object"]),
        ([{"kind": "enters", "tag": "t", "severity": 1}], ["rules[0]: missing member 'id'"]),
        (
            [{"id": "", "kind": "enters", "tag": "t", "severity": 1}],
            ["rules[0]: member 'id': expected `str` of length >= 1, not ''"],
        ),
        ([{"id": 7, "kind": "enters", "tag": "t", "severity": 1}], ["rules[0]: member 'id': expected `str`, not 7"]),
    ],
)
def test_rule_without_id_is_named_by_its_index(data: object, expected: list[str]) -> None:
    assert list(parse_rules(data)[1]) == expected


def test_kind_is_required_and_known() -> None:
    _, found = parse_rules([{"id": "a"}, {"id": "b", "kind": "magic"}, {"id": "c", "kind": 5}])
    assert [fault.partition(";")[0] for fault in found] == [
        "rule 'a': missing member 'kind'",
        "rule 'b': unknown kind 'magic'",
        "rule 'c': unknown kind 5",
    ]


def test_all_faults_of_all_rules_are_reported_at_once() -> None:
    one = {"id": "a", "kind": "limit", "limits": {"high": {"at": "x"}, "low": {}}, "extra": 1, "severity": 5000}
    _, found = parse_rules([one, {"id": "a", "kind": "share", "tag": "t", "severity": 1}, 3])
    assert len(found) == 9
    assert "rule 'a': 2 rules have this id" in found


def test_valid_rules_are_returned_as_models() -> None:
    rules, found = parse_rules([{"id": "r", "kind": "limit", "severity": 5} | GOOD["limit"] | {"while": "job.running"}])
    assert found == ()
    assert isinstance(rules[0], LimitRule)
    assert (rules[0].while_, rules[0].hysteresis) == ("job.running", 0)


def test_faults_of_the_options_of_alarms_name_the_rule() -> None:
    rule = {"id": "hot", "kind": "stale", "severity": 5, "tag": "t", "seconds": 1}
    rules, faults = parse_rules([rule | {"message": {"de": "{val}"}, "action": "stop", "latch": 1}])
    assert rules == ()
    assert len(faults) == 3
    assert all(fault.startswith("rule 'hot': member '") for fault in faults)
    assert parse_rules([rule | {"message": "{value}", "action": "abort", "latch": True}])[1] == ()


def test_invalid_choice_is_reported_with_the_valid_choices() -> None:
    rule = {"id": "r", "kind": "occurs", "pattern": "*", "severity": 1, "while": "job", "action": "stop"}
    assert parse_rules([rule])[1] == (
        "rule 'r': member 'while': expected 'job.running', not 'job'",
        "rule 'r': member 'action': expected 'none' or 'pause' or 'abort', not 'stop'",
    )
