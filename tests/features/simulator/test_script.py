"""Tests of the parser of simulation scripts: values, defaults, and faults with their place."""

from typing import Any

import pytest

from edge.features.simulator.script import (
    AnswerPlan,
    EventQueue,
    EventRank,
    Script,
    ScriptError,
    ScriptJob,
    milliseconds,
    mirrored,
    parse_script,
)
from edge.sfc.signal import MirrorCopy

TYPE = "com.example.work.v1"


def script(**keys: Any) -> Script:
    return parse_script(keys)


def test_empty_script_is_one_job_with_default_answers() -> None:
    read = script()
    assert read.default == AnswerPlan("ok", 0.1)
    assert [(job.id, job.starts_at) for job in read.jobs] == [("J1", 0)]
    assert read.horizon == 3600


def test_start_of_a_job_is_given_by_at_or_start() -> None:
    read = script(jobs=[{"id": "J1", "at": 2}, {"id": "J2", "start": 3}, {"id": "J3"}])
    assert [job.starts_at for job in read.jobs] == [2, 3, 0]
    assert read.jobs[0] == ScriptJob("J1", at=2)


def test_first_matching_rule_determines_the_answer() -> None:
    rules = [
        {"type_id": TYPE, "nth": 2, "result": "failed"},
        {"type_id": TYPE, "action": "a", "result": "none"},
        {"type_id": TYPE, "job": "J2", "after": 7},
        {"type_id": TYPE, "after": 9},
    ]
    read = script(equipment=rules, default={"after": 5})
    assert read.answer_plan(TYPE, "b", "J1", 2).result == "failed"
    assert read.answer_plan(TYPE, "a", "J1", 1).result == "none"
    assert read.answer_plan(TYPE, "b", "J2", 1).after == 7
    assert read.answer_plan(TYPE, "b", "J1", 1).after == 9
    assert read.answer_plan("other", "b", "J1", 1).after == 5


def test_set_values_are_booleans_numbers_or_strings() -> None:
    read = script(timeline=[{"at": 0, "set": {"a": True, "b": 2, "c": 2.5, "d": "x"}}])
    assert read.timeline[0].set == {"a": True, "b": 2, "c": 2.5, "d": "x"}


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"colour": 1}, "colour"),
        ({"default": {"result": "perhaps"}}, "perhaps"),
        ({"default": {"after": "soon"}}, "$.default.after"),
        ({"default": {"after": -1}}, "times must be seconds"),
        ({"default": {"times": -1}}, "default: 'times' must be between 0 and 1000"),
        ({"equipment": [{"result": "ok"}]}, "type_id"),
        ({"equipment": [{"type_id": TYPE, "times": -1}]}, "equipment[0]: 'times' must be between 0 and 1000"),
        ({"timeline": [{"event": {"type_id": TYPE}}]}, "at"),
        ({"timeline": [{"at": 1}]}, "timeline[0]: exactly one of event, set, mirror, operator, intervene, resolve"),
        ({"timeline": [{"at": 1, "operator": "pause", "system": "restart"}]}, "timeline[0]: exactly one"),
        ({"timeline": [{"at": 1, "operator": "dance"}]}, "dance"),
        ({"timeline": [{"at": 1, "set": {"a": None}}]}, "$.timeline[0].set"),
        ({"timeline": [{"at": 1, "set": {"a": [1]}}]}, "$.timeline[0].set"),
        ({"timeline": [{"at": 1, "system": "replace_recipe"}]}, "timeline[0]: a recipe belongs to"),
        ({"timeline": [{"at": 1, "system": "restart", "recipe": {}}]}, "timeline[0]: a recipe belongs to"),
        ({"equipment": [{"type_id": TYPE, "times": 10**9}]}, "equipment[0]: 'times' must be between 0 and 1000"),
        ({"jobs": []}, "at least one job"),
        ({"jobs": [{"id": ""}]}, "jobs[0]: a job needs an id"),
        ({"jobs": [{"id": "J1"}, {"id": "J1"}]}, "jobs[1]: there is a job 'J1' already"),
        ({"jobs": [{"id": "J1", "at": 1, "start": 1}]}, "jobs[0]: set the start once"),
        ({"horizon": 1e12}, "times must be seconds"),
    ],
)
def test_script_with_the_wrong_structure_is_refused_with_its_place(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ScriptError) as error:
        script(**keys)
    assert reason in error.value.message


@pytest.mark.parametrize("data", [None, [], 7, "script"])
def test_text_that_is_not_a_script_is_refused(data: object) -> None:
    with pytest.raises(ScriptError):
        parse_script(data)


def test_events_are_ordered_by_time_then_rank_then_insertion() -> None:
    calendar: EventQueue[str] = EventQueue()
    calendar.push(5, EventRank.SET, "late")
    calendar.push(1, EventRank.ANSWER, "answer")
    calendar.push(1, EventRank.START, "first start")
    calendar.push(1, EventRank.START, "second start")
    calendar.push(1, EventRank.SET, "value")
    given = []
    while calendar.next_at is not None:
        given.append(calendar.pop())
    assert given == [(1, "value"), (1, "first start"), (1, "second start"), (1, "answer"), (5, "late")]


def test_seconds_of_a_script_are_rounded_to_milliseconds() -> None:
    assert milliseconds(0.1 + 0.2) == 300


def test_set_members_are_replaced_and_a_null_set_is_stale() -> None:
    first = mirrored({}, {"carriers": ["C1", "C2"], "tools": None})
    assert first == {"carriers": MirrorCopy(frozenset({"C1", "C2"}))}
    assert mirrored(first, {"carriers": None}) == {"carriers": MirrorCopy(frozenset({"C1", "C2"}), is_stale=True)}
    assert mirrored(first, {"carriers": []}) == {"carriers": MirrorCopy(frozenset())}
