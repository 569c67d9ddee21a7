"""Many rules over a stream: subjects, routes, timers."""

from typing import Any

from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rules.evaluator import Renamed, RuleEvaluator, ready_rule
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports.sample_lines import Occurrence, Sample

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
    found = evaluator()
    assert set(found.states) == {(1, "w.t")}
    list(found.feed(Sample(5, "w.t", 6)))
    list(found.feed(Sample(6, "other", 6)))
    assert set(found.states) == {(0, "w.t"), (1, "w.t"), (2, "c")}


def test_timers_run_once_in_order_of_time() -> None:
    found = evaluator()
    list(found.feed(Sample(0, "w.b", 6)))
    list(found.feed(Sample(500, "w.a", 6)))
    rows = [(each.finding.at, each.finding.subject) for each in found.run_until(10_000)]
    assert rows == [(1000, "w.b"), (1500, "w.a"), (2000, "w.t")]
    assert list(found.run_until(20_000)) == []


def test_moved_timer_runs_at_its_new_instant_only() -> None:
    found = evaluator()
    for at in range(0, 5000, 500):
        assert not [each for each in found.run_until(at) if each.rule_number == 1]
        list(found.feed(Sample(at, "w.t", 1)))
    assert [each.finding.at for each in found.run_until(60_000)] == [6500]


def test_occurrence_without_a_rule_is_ignored() -> None:
    found = evaluator()
    before = dict(found.states)
    assert list(found.feed(Occurrence(1, "anything", None, None))) == []
    assert found.states == before


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
    found = evaluator()
    assert set(found.take_changed()) == {(1, "w.t")}
    list(found.feed(Sample(5, "w.a", 6)))
    assert set(found.take_changed()) == {(0, "w.a")}
    list(found.feed(Sample(6, "w.a", 6)))
    assert found.take_changed() == {}


def test_state_of_an_occurrence_subject_is_dropped_after_its_cooldown() -> None:
    rules, _ = parse_rules([{"id": "o", "kind": "occurs", "pattern": "x", "severity": 1, "cooldown_seconds": 1}])
    found = RuleEvaluator(rules, 0)
    for number in range(100):
        list(found.feed(Occurrence(0, "x", f"J{number}", None)))
    assert len(found.states) == 100
    list(found.run_until(1000))
    assert found.states == {}
    assert set(found.take_changed().values()) == {None}


def test_each_joining_process_of_a_tag_can_be_a_subject() -> None:
    rules, _ = parse_rules(
        [{"id": "r", "kind": "rate", "tag": "*.torque", "per_second": 1, "severity": 1, "subject": "process"}]
    )
    found = RuleEvaluator(rules, 0)
    for at, process in enumerate(["A", "B", None]):
        list(found.feed(Sample(at, "w.torque", 85, process=process)))
    assert [subject for _, subject in found.states] == ["w.torque[A]", "w.torque[B]", "w.torque"]


HOT_GATEWAY = {"id": "hot", "kind": "limit", "tag": "gateway.temp", "limits": {"high": {"at": 80, "severity": 5}}}


def gateway_sample(at: int, value: float, gateway: str | None, tag: str = "gateway.temp") -> Sample:
    return Sample(at, tag, value, gateway=gateway)


def test_gateways_do_not_clear_the_findings_of_each_other() -> None:
    watch = RuleEvaluator(rules_of(HOT_GATEWAY), 0)
    samples = [gateway_sample(1, 90, "a"), gateway_sample(2, 20, "b"), gateway_sample(3, 95, "b")]
    found = [each.finding for sample in samples for each in watch.feed(sample)]
    assert [(each.subject, each.event.value) for each in found] == [
        ("gateway.temp[a]", "raised"),
        ("gateway.temp[b]", "raised"),
    ]


def test_state_without_a_gateway_is_taken_by_the_first_one() -> None:
    watch = RuleEvaluator(rules_of(HOT_GATEWAY), 0)
    assert [each.finding.event.value for each in watch.feed(gateway_sample(1, 90, None))] == ["raised"]
    watch.take_changed()
    assert list(watch.feed(gateway_sample(2, 91, "a"))) == []
    assert watch.take_renamed() == [Renamed("hot", "gateway.temp", "gateway.temp[a]")]
    assert {key: state is None for key, state in watch.take_changed().items()} == {
        (0, "gateway.temp"): True,
        (0, "gateway.temp[a]"): False,
    }
    assert [each.finding.event.value for each in watch.feed(gateway_sample(3, 10, "a"))] == ["cleared"]


def test_stale_rule_of_a_gateway_tag_waits_for_samples_of_the_gateway() -> None:
    rule = {"id": "s", "kind": "stale", "tag": "gateway.temp", "seconds": 10, "severity": 5}
    first = RuleEvaluator(rules_of(rule), 0)
    list(first.feed(gateway_sample(1, 1, "a")))
    again = RuleEvaluator(rules_of(rule), 5_000)
    again.restore(first.states, first.jobs)
    list(again.feed(gateway_sample(9_000, 1, "a")))
    assert again.take_renamed() == [Renamed("s", "gateway.temp")]
    assert list(again.run_until(16_000)) == []
    assert [each.finding.subject for each in again.run_until(19_000)] == ["gateway.temp[a]"]


def test_condition_over_tags_of_gateways_is_evaluated_for_each_of_them() -> None:
    rule = {"id": "e", "kind": "expression", "when": "gateway.temp > 80 and oven.on == 1", "severity": 5}
    watch = RuleEvaluator(rules_of(rule), 0)
    samples = [Sample(1, "oven.on", 1), gateway_sample(2, 90, "a"), gateway_sample(3, 20, "b"), Sample(4, "oven.on", 0)]
    found = [each.finding for sample in samples for each in watch.feed(sample)]
    assert [(each.subject, each.event.value) for each in found] == [("e[a]", "raised"), ("e[a]", "cleared")]
