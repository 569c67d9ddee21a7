"""Subjects of rules: tags, joining processes, jobs, carriers and tools each have their own state."""

from typing import Any

import pytest

from edge.features.telemetry.rules.evaluator import MAX_CARRIERS, RuleEvaluator, replay
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.features.telemetry.rules.subject import RunningJobs, name_in_subject
from edge.ports.sample_lines import Line, Occurrence, Sample

HIGH = {"kind": "limit", "limits": {"high": {"at": 80}}, "hysteresis": 1}


def rules_of(*items: dict[str, Any]) -> Any:
    rules, faults = parse_rules([{"id": f"r{n}", "severity": 500} | item for n, item in enumerate(items)])
    assert faults == ()
    return rules


def run(rule: dict[str, Any], *lines: Line) -> list[tuple[int, str, str]]:
    return [(finding.at, finding.subject, finding.event.value) for finding in replay(rules_of(rule), lines, None)]


def starts(at: int, job: str) -> Occurrence:
    return Occurrence(at, "job.started", job, None)


def ends(at: int, job: str) -> Occurrence:
    return Occurrence(at, "job.ended", job, None)


def test_state_of_a_job_subject_ends_with_the_job() -> None:
    found = run(
        HIGH | {"tag": "t", "subject": "job"},
        Sample(0, "t", 90),
        starts(1, "J"),
        Sample(2, "t", 90),
        starts(3, "K"),
        Sample(4, "t", 90),
        Sample(5, "t", 20, job="J"),
        ends(6, "K"),
        Sample(7, "t", 95, job="K"),
        Sample(8, "t", 95),
        ends(9, "J"),
    )
    assert found == [
        (0, "t", "raised"),
        (2, "t[J]", "raised"),
        (4, "t[K]", "raised"),
        (5, "t[J]", "cleared"),
        (6, "t[K]", "cleared"),
        (8, "t[J]", "raised"),
        (9, "t[J]", "cleared"),
    ]


def test_carrier_and_process_are_subjects_of_a_tag() -> None:
    lines = (Sample(0, "t", 90, carrier="C1", process="P"), Sample(1, "t", 90, carrier="C2", process="P"))
    assert run(HIGH | {"tag": "*", "subject": "carrier"}, *lines) == [(0, "t[C1]", "raised"), (1, "t[C2]", "raised")]
    assert run(HIGH | {"tag": "*", "subject": "process"}, *lines) == [(0, "t[P]", "raised")]


def test_tool_is_one_subject_of_all_its_tags() -> None:
    """A tool is silent when none of its tags comes."""
    silent = {"kind": "stale", "tag": "*", "subject": "tool", "seconds": 3}
    lines = [Sample(at, f"wrench.{'torque' if at % 2000 else 'angle'}", 1) for at in range(0, 8000, 1000)]
    assert run(silent, *lines, Sample(20_000, "camera.ok", True)) == [(10_000, "wrench", "raised")]


@pytest.mark.parametrize(
    ("subject", "data", "expected"),
    [
        ("job", None, "J"),
        ("carrier", {"member": "C1"}, "C1"),
        ("carrier", {"carrier": "C2", "member": "C1"}, "C2"),
        ("tool", {"tool": "wrench"}, "wrench"),
        ("tool", {"tool": ["wrench"]}, "car.*"),
        ("carrier", "text", "car.*"),
    ],
)
def test_occurrence_names_its_subject_in_its_data(subject: str, data: Any, expected: str) -> None:
    rule = {"kind": "occurs", "pattern": "car.*", "subject": subject}
    assert run(rule, Occurrence(0, "car.left", "J", data)) == [(0, expected, "raised")]


def test_state_of_an_ended_job_is_not_kept() -> None:
    rules = RuleEvaluator(rules_of(HIGH | {"tag": "t", "subject": "job"}), 0)
    for number in range(50):
        job = f"J{number}"
        for line in (starts(number, job), Sample(number, "t", 90), ends(number, job)):
            list(rules.feed(line))
    assert rules.states == {}
    assert set(rules.take_changed().values()) == {None}


def test_carriers_tracked_by_a_rule_are_bounded() -> None:
    rules = RuleEvaluator(rules_of(HIGH | {"tag": "t", "subject": "carrier"}), 0)
    list(rules.feed(Sample(0, "t", 90, carrier="hot")))
    for number in range(2 * MAX_CARRIERS):
        list(rules.feed(Sample(number, "t", 1, carrier=f"C{number}")))
    assert len(rules.states) <= MAX_CARRIERS + 1
    assert (0, "t[hot]") in rules.states
    assert (0, "t[C1999]") in rules.states


def test_job_whose_name_is_part_of_another_ends_only_its_own_finding() -> None:
    found = run(
        HIGH | {"tag": "t", "subject": "job"},
        starts(0, "a]b"),
        starts(1, "b"),
        Sample(2, "t", 90, job="a]b"),
        ends(3, "b"),
        ends(4, "a]b"),
    )
    assert found == [(2, "t[a]b]", "raised"), (4, "t[a]b]", "cleared")]


@pytest.mark.parametrize(
    ("tag", "subject", "name"),
    [
        ("equipment.*.connected", "equipment.wrench.connected", "wrench"),
        ("equipment.*.connected", "equipment.wrench.connected[press-2]", "wrench (press-2)"),
        ("equipment.*.connected", "equipment.a.connected.connected[press-2][J1]", "a.connected (press-2, J1)"),
        ("gateway.marks_of.*", "gateway.marks_of.events_wrench", "events_wrench"),
        ("*", "wrench.torque", "wrench.torque"),
        ("*.temp", "oven.temp[J1]", "oven (J1)"),
        ("*.*", "oven.temp", "oven.temp"),
        ("equipment.*.connected", "wrench", "wrench"),
        ("oven.temp", "oven.temp[edge]", "oven.temp[edge]"),
    ],
)
def test_name_in_a_subject_is_what_the_wildcard_stands_for(tag: str, subject: str, name: str) -> None:
    rule = {"id": "r", "kind": "limit", "tag": tag, "limits": {"high": {"at": 1, "severity": 500}}}
    (built,) = rules_of(rule)
    assert name_in_subject(built, subject) == name


def test_current_job_is_the_last_started_running_job() -> None:
    jobs = RunningJobs().start("J", 1).start("K", 2)
    assert (jobs.current, jobs.since) == ("K", 1)
    assert jobs.end("J") == RunningJobs(("K",), 1)
    assert jobs.end("K").current == "J"
    assert jobs.end("J").end("K") == RunningJobs()


def test_second_start_and_unknown_end_are_ignored() -> None:
    jobs = RunningJobs().start("J", 1).start("K", 2)
    assert jobs.start("J", 9) == jobs
    assert jobs.end("X") == jobs


def test_job_named_by_a_sample_is_its_current_job() -> None:
    jobs = RunningJobs().start("J", 1).start("K", 2)
    assert jobs.of_sample(None) == jobs.of_sample("K") == jobs
    assert jobs.of_sample("J") == RunningJobs(("K", "J"), 1)
    assert jobs.of_sample("gone") == RunningJobs()
