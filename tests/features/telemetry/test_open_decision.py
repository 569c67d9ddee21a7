"""A decision about batches is made from values alone: without a store, a task or a clock."""

import pytest

from edge.features.telemetry.latest_tags import LatestTags, NewestSamples
from edge.features.telemetry.open_decision import OpenDecision
from edge.features.telemetry.rule_memory import RuleMemory, StreamFacts
from edge.features.telemetry.rules.evaluator import RuleEvaluator
from edge.features.telemetry.rules.subject_state import FindingEvent
from edge.ports.batch import Batch
from edge.ports.sample_lines import Occurrence, Sample
from edge.ports.sample_value import JOB_STARTED
from tests.features.telemetry.plant import BEGIN, HOT, rules_of


def decision_about(newest: NewestSamples, *batches: Batch) -> OpenDecision:
    rules = rules_of(HOT)
    memory = RuleMemory(rules, RuleEvaluator(rules, BEGIN), StreamFacts(), 0, {})
    decision = OpenDecision(memory, LatestTags(), newest)
    for batch in batches:
        assert len([*decision.evaluate(batch)]) <= len(batch.lines)
    return decision


def batch_of(number: int, *values: int) -> Batch:
    lines = tuple(Sample(BEGIN + at, "wrench.temp", value) for at, value in enumerate(values, number * 1000))
    return Batch("p", number, lines[-1].at, lines)


def test_decision_finds_alarms_and_counts_them_by_rule() -> None:
    decision = decision_about(NewestSamples(), batch_of(1, 20, 85), batch_of(2, 96))
    assert [alarm.finding.event for alarm in decision.found] == [FindingEvent.RAISED, FindingEvent.ESCALATED]
    assert [alarm.value for alarm in decision.found] == [85, 96]
    assert decision.take_counts(decision.found) == {"rule:triggered:hot": 1}
    assert (decision.decided, decision.lines, len(decision.samples)) == (2, 3, 3)
    assert [alarm.finding.subject for alarm in decision.standing()] == ["wrench.temp"]


def test_batch_that_came_before_is_not_evaluated_again() -> None:
    decision = decision_about(NewestSamples(), batch_of(1, 85), batch_of(1, 85))
    assert (decision.decided, len(decision.found), len(decision.samples)) == (2, 1, 1)


def test_decision_that_is_made_again_finds_the_same() -> None:
    newest = NewestSamples()
    first = decision_about(newest, batch_of(1, 85))
    again = decision_about(newest, batch_of(1, 85))
    assert again.found == first.found
    again.settle()
    assert (again.decided, again.found) == (0, [])
    assert not decision_about(newest, Batch("q", 1, BEGIN, (Sample(BEGIN, "wrench.temp", 85),))).found


@pytest.mark.parametrize(
    ("members", "job", "expected"),
    [
        ({}, None, None),
        ({}, "J1", "J1"),
        ({"while": "job.running"}, None, "J1"),
        ({"action": "pause"}, None, "J1"),
    ],
)
def test_alarm_bears_a_job_only_if_its_sample_or_rule_concerns_it(
    members: dict[str, str], job: str | None, expected: str | None
) -> None:
    rules = rules_of({**HOT, **members})
    memory = RuleMemory(rules, RuleEvaluator(rules, BEGIN), StreamFacts(), 0, {})
    decision = OpenDecision(memory, LatestTags(), NewestSamples())
    lines = (Occurrence(BEGIN, JOB_STARTED, "J1", None), Sample(BEGIN + 1, "wrench.temp", 85, job=job))
    assert len([*decision.evaluate(Batch("p", 1, BEGIN + 1, lines))]) <= len(lines)
    assert [alarm.job for alarm in decision.found] == [expected]
    assert [alarm.job for alarm in decision.standing()] == [expected if members else None]
