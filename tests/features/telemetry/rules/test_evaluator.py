"""Many rules over a stream: subjects, routes, timers."""

from typing import Any

import pytest

from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rules.evaluator import Renamed, RuleEvaluator, ready_rule
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports.sample_lines import Occurrence, Sample
from tests.features.telemetry.rules.replayed import events, run

RULES = [
    {"id": "a", "kind": "limit", "tag": "w.*", "limits": {"high": {"at": 5}}, "on_delay_seconds": 1, "severity": 1},
    {"id": "b", "kind": "stale", "tag": "w.t", "seconds": 2, "severity": 1},
    {"id": "c", "kind": "expression", "when": "w.t > 5 and x < 1", "severity": 1},
]


def rules_of(rule: dict[str, Any]) -> tuple[Rule, ...]:
    rules, faults = parse_rules([rule])
    assert faults == ()
    return rules


def evaluator() -> RuleEvaluator:
    rules, faults = parse_rules(RULES)
    assert faults == ()
    return RuleEvaluator(rules, 0)


def test_states_are_kept_by_rule_and_subject() -> None:
    rule_evaluator = evaluator()
    assert set(rule_evaluator.states) == {(1, "w.t")}
    list(rule_evaluator.feed(Sample(5, "w.t", 6)))
    list(rule_evaluator.feed(Sample(6, "other", 6)))
    assert set(rule_evaluator.states) == {(0, "w.t"), (1, "w.t"), (2, "c")}


def test_timers_run_once_in_order_of_time() -> None:
    rule_evaluator = evaluator()
    list(rule_evaluator.feed(Sample(0, "w.b", 6)))
    list(rule_evaluator.feed(Sample(500, "w.a", 6)))
    rows = [
        (ordered_finding.finding.at, ordered_finding.finding.subject)
        for ordered_finding in rule_evaluator.run_until(10_000)
    ]
    assert rows == [(1000, "w.b"), (1500, "w.a"), (2000, "w.t")]
    assert list(rule_evaluator.run_until(20_000)) == []


def test_moved_timer_runs_at_its_new_instant_only() -> None:
    rule_evaluator = evaluator()
    for at in range(0, 5000, 500):
        assert not [
            ordered_finding for ordered_finding in rule_evaluator.run_until(at) if ordered_finding.rule_number == 1
        ]
        list(rule_evaluator.feed(Sample(at, "w.t", 1)))
    assert [ordered_finding.finding.at for ordered_finding in rule_evaluator.run_until(60_000)] == [6500]


def test_occurrence_without_a_rule_is_ignored() -> None:
    rule_evaluator = evaluator()
    before = dict(rule_evaluator.states)
    assert list(rule_evaluator.feed(Occurrence(1, "anything", None, None))) == []
    assert rule_evaluator.states == before


def test_compiled_condition_exists_only_for_expression_rules() -> None:
    rules, _ = parse_rules(RULES)
    assert [ready_rule(rule).condition is not None for rule in rules] == [False, False, True]


def test_evaluator_continues_from_restored_states() -> None:
    first = evaluator()
    list(first.feed(Occurrence(0, "job.started", "J1", None)))
    list(first.feed(Sample(500, "w.a", 6)))
    second = evaluator()
    second.restore(first.states, first.jobs)
    assert second.take_changed() == {}
    assert second.next_timer == first.next_timer == 1500
    assert list(second.run_until(3000)) == list(first.run_until(3000))
    assert second.jobs == first.jobs


def test_only_changed_states_are_returned() -> None:
    rule_evaluator = evaluator()
    assert set(rule_evaluator.take_changed()) == {(1, "w.t")}
    list(rule_evaluator.feed(Sample(5, "w.a", 6)))
    assert set(rule_evaluator.take_changed()) == {(0, "w.a")}
    list(rule_evaluator.feed(Sample(6, "w.a", 6)))
    assert rule_evaluator.take_changed() == {}


def test_state_of_an_occurrence_subject_is_dropped_after_its_cooldown() -> None:
    rules, _ = parse_rules([{"id": "o", "kind": "occurs", "pattern": "x", "severity": 1, "cooldown_seconds": 1}])
    rule_evaluator = RuleEvaluator(rules, 0)
    for number in range(100):
        list(rule_evaluator.feed(Occurrence(0, "x", f"J{number}", None)))
    assert len(rule_evaluator.states) == 100
    list(rule_evaluator.run_until(1000))
    assert rule_evaluator.states == {}
    assert set(rule_evaluator.take_changed().values()) == {None}


def test_each_joining_process_of_a_tag_can_be_a_subject() -> None:
    rules, _ = parse_rules(
        [{"id": "r", "kind": "rate", "tag": "*.torque", "per_second": 1, "severity": 1, "subject": "process"}]
    )
    rule_evaluator = RuleEvaluator(rules, 0)
    for at, process in enumerate(["A", "B", None]):
        list(rule_evaluator.feed(Sample(at, "w.torque", 85, process=process)))
    assert [subject for _, subject in rule_evaluator.states] == ["w.torque[A]", "w.torque[B]", "w.torque"]


HOT_GATEWAY = {"id": "hot", "kind": "limit", "tag": "gateway.temp", "limits": {"high": {"at": 80, "severity": 5}}}


def gateway_sample(at: int, value: float, gateway: str | None, tag: str = "gateway.temp") -> Sample:
    return Sample(at, tag, value, gateway=gateway)


def test_gateways_do_not_clear_the_findings_of_each_other() -> None:
    watch = RuleEvaluator(rules_of(HOT_GATEWAY), 0)
    samples = [gateway_sample(1, 90, "a"), gateway_sample(2, 20, "b"), gateway_sample(3, 95, "b")]
    findings = [ordered_finding.finding for sample in samples for ordered_finding in watch.feed(sample)]
    assert [(finding.subject, finding.event.value) for finding in findings] == [
        ("gateway.temp[a]", "raised"),
        ("gateway.temp[b]", "raised"),
    ]


def test_state_without_a_gateway_is_taken_by_the_first_one() -> None:
    watch = RuleEvaluator(rules_of(HOT_GATEWAY), 0)
    assert [ordered_finding.finding.event.value for ordered_finding in watch.feed(gateway_sample(1, 90, None))] == [
        "raised"
    ]
    watch.take_changed()
    assert list(watch.feed(gateway_sample(2, 91, "a"))) == []
    assert watch.take_renamed() == [Renamed("hot", "gateway.temp", "gateway.temp[a]")]
    assert {key: state is None for key, state in watch.take_changed().items()} == {
        (0, "gateway.temp"): True,
        (0, "gateway.temp[a]"): False,
    }
    assert [ordered_finding.finding.event.value for ordered_finding in watch.feed(gateway_sample(3, 10, "a"))] == [
        "cleared"
    ]


def test_stale_rule_of_a_gateway_tag_waits_for_samples_of_the_gateway() -> None:
    rule = {"id": "s", "kind": "stale", "tag": "gateway.temp", "seconds": 10, "severity": 5}
    first = RuleEvaluator(rules_of(rule), 0)
    list(first.feed(gateway_sample(1, 1, "a")))
    again = RuleEvaluator(rules_of(rule), 5_000)
    again.restore(first.states, first.jobs)
    list(again.feed(gateway_sample(9_000, 1, "a")))
    assert again.take_renamed() == [Renamed("s", "gateway.temp")]
    assert list(again.run_until(16_000)) == []
    assert [ordered_finding.finding.subject for ordered_finding in again.run_until(19_000)] == ["gateway.temp[a]"]


def test_condition_over_tags_of_gateways_is_evaluated_for_each_of_them() -> None:
    rule = {"id": "e", "kind": "expression", "when": "gateway.temp > 80 and oven.on == 1", "severity": 5}
    watch = RuleEvaluator(rules_of(rule), 0)
    samples = [Sample(1, "oven.on", 1), gateway_sample(2, 90, "a"), gateway_sample(3, 20, "b"), Sample(4, "oven.on", 0)]
    findings = [ordered_finding.finding for sample in samples for ordered_finding in watch.feed(sample)]
    assert [(finding.subject, finding.event.value) for finding in findings] == [("e[a]", "raised"), ("e[a]", "cleared")]


HOT: dict[str, Any] = {"kind": "limit", "tag": "*", "limits": {"high": {"at": 80}}}


def test_findings_of_one_instant_are_sorted_by_rule_then_line_then_subject() -> None:
    rules = [
        {"kind": "stale", "tag": "*", "seconds": 1, "id": "z"},
        HOT | {"id": "b"},
        {"kind": "occurs", "pattern": "o", "id": "a"},
    ]
    lines = [(0, "y", 1), (0, "x", 1), (1000, "!o", "J"), (1000, "y", 81), (1000, "x", 81), (1000, "!o", "I")]
    assert [(rule, subject, event) for _, rule, subject, event, _ in run(rules, lines)] == [
        ("z", "x", "raised"),
        ("z", "y", "raised"),
        ("z", "y", "cleared"),
        ("z", "x", "cleared"),
        ("b", "y", "raised"),
        ("b", "x", "raised"),
        ("a", "J", "raised"),
        ("a", "I", "raised"),
    ]


def test_subjects_cleared_by_one_line_are_sorted_by_name() -> None:
    rule = HOT | {"while": "job.running"}
    lines = [(0, "!job.started", "J"), (1, "b", 81), (2, "a", 81), (3, "!job.ended", "J")]
    assert [(at, subject) for at, _, subject, *_ in run(rule, lines)] == [(1, "b"), (2, "a"), (3, "a"), (3, "b")]


@pytest.mark.parametrize(("until", "count"), [(None, 0), (9_999, 0), (10_000, 1), (10_001, 1)])
def test_until_is_inclusive_and_by_default_the_last_line(until: int | None, count: int) -> None:
    assert len(events(HOT | {"on_delay_seconds": 10}, [(0, "t", 81)], until)) == count


def test_lines_after_until_are_not_evaluated() -> None:
    assert events(HOT, [(0, "t", 1), (5, "t", 81), (6, "t", 1)], 5) == [(5, "raised")]


def test_cleared_finding_keeps_its_last_severity() -> None:
    rule = HOT | {"limits": {"high": {"at": 80, "severity": 300}}}
    assert run(rule, [(0, "t", 81), (1, "t", 1)])[-1] == (1, "r0", "t", "cleared", 300)


@pytest.mark.parametrize(
    ("pattern", "lines", "found"),
    [
        ("carrier.left", [(0, "!carrier.left", "J"), (1, "!carrier.joined", "J")], [(0, "J")]),
        ("carrier.left", [(0, "!carrier.left")], [(0, "carrier.left")]),
        (
            "carrier.*",
            [(0, "!carrier.left"), (1, "!carrier.a.b"), (2, "!carrier")],
            [(0, "carrier.*"), (1, "carrier.*")],
        ),
        ("job.*", [(0, "!job.started", "J"), (1, "!job.ended", "J")], [(0, "J"), (1, "J")]),
        ("a?[b]", [(0, "!a?[b]"), (1, "!axb")], [(0, "a?[b]")]),
        ("x", [(0, "x", 5)], []),
    ],
)
def test_occurrence_is_raised_once_and_never_cleared(pattern: str, lines: list[Any], found: list[Any]) -> None:
    rows = run({"kind": "occurs", "pattern": pattern}, lines, 60_000)
    assert [(at, subject) for at, _, subject, *_ in rows] == found
    assert {event for *_, event, _ in rows} <= {"raised"}


def test_start_and_end_of_a_job_count_as_occurrences_during_the_job() -> None:
    lines = [(0, "!x"), (1, "!job.started", "J"), (2, "!x", "J"), (3, "!job.ended", "J"), (4, "!x", "J")]
    rule = {"kind": "occurs", "pattern": "*", "while": "job.running"}
    assert [at for at, _ in events(rule, lines)] == [1, 2, 3]


def test_occurrence_is_raised_once_per_job() -> None:
    lines = [(0, "!job.started", "J"), (1, "!x", "J"), (2, "!x", "J"), (3, "!job.ended", "J"), (4, "!x", "J")]
    assert [at for at, _ in events({"kind": "occurs", "pattern": "x", "once": "job"}, lines)] == [1, 4]


def test_bad_samples_are_ignored() -> None:
    assert events(HOT, [(0, "t", 81, "bad"), (1, "t", 81, "uncertain"), (2, "t", 1, "bad")]) == [(1, "raised")]


def test_empty_input_has_no_findings() -> None:
    assert run(HOT, [], 60_000) == []
