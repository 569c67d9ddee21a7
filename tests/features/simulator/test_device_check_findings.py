"""What a device has answered in a check is judged by content and time."""

import pytest

from edge.features.simulator.device_check import (
    CheckFinding,
    Grade,
    TimedAnswer,
    WorkTimes,
    has_passed,
    judge_lock,
    judge_other_parameters,
    judge_repeated,
    judge_repeated_at_work,
    judge_stop,
)
from edge.links.mqtt import Message

OK, NOTE, FAILED = Grade.OK, Grade.NOTE, Grade.FAILED
LONG = WorkTimes(work=0.5, again=(0.04, 0.04), reset=0.04)
SHORT = WorkTimes(work=0.05, again=(0.04, 0.04), reset=0.04)


def answer(at: float, kind: str = "", payload: bytes = b'{"torque": 85}') -> TimedAnswer:
    return TimedAnswer(at, Message("", payload, user_properties={"mdcserrorkind": kind} if kind else {}))


@pytest.mark.parametrize(
    ("times", "measurable"),
    [
        (LONG, 0.5),
        (SHORT, 0.0),
        (WorkTimes(work=0.01, again=(0.001,), reset=None), 0.0),
        (WorkTimes(work=0.5, again=(None, None), reset=None), 0.0),
        (WorkTimes(work=None, again=(0.1,), reset=0.1), 0.0),
    ],
)
def test_work_is_measurable_when_it_takes_longer_than_an_answer(times: WorkTimes, measurable: float) -> None:
    assert times.measurable == measurable


@pytest.mark.parametrize(
    ("again", "grade"),
    [((0.04, 0.04), OK), ((0.5, 0.04), OK), ((0.5, 0.6), NOTE), ((0.04, None), FAILED)],
)
def test_repeated_start_that_takes_as_long_as_work_is_noted(again: tuple[float | None, ...], grade: Grade) -> None:
    times = WorkTimes(work=0.5, again=again, reset=0.04)
    assert judge_repeated(times, [answer(0.0), answer(1.0)]).grade is grade


@pytest.mark.parametrize(
    ("answers", "grade"),
    [([answer(0.1, "repeated_id")], OK), ([answer(0.1)], NOTE), ([], NOTE), ([answer(0.1, "busy"), answer(1)], NOTE)],
)
def test_start_of_a_known_id_with_other_parameters_has_to_be_declined(answers: list[TimedAnswer], grade: Grade) -> None:
    assert judge_other_parameters(answers).grade is grade


def test_repeated_start_with_another_answer_fails() -> None:
    assert judge_repeated(SHORT, [answer(0.0), answer(0.1, payload=b"2")]).grade is FAILED


@pytest.mark.parametrize(
    ("times", "answers", "grade"),
    [
        (LONG, [answer(0.5)], OK),
        (LONG, [answer(0.5), answer(0.54)], OK),
        (LONG, [answer(0.5), answer(0.75)], NOTE),
        (LONG, [answer(0.5), answer(0.5, payload=b"2")], FAILED),
        (SHORT, [answer(0.05), answer(0.1)], OK),
        (LONG, [], FAILED),
    ],
)
def test_second_work_of_a_start_at_work_is_noted(times: WorkTimes, answers: list[TimedAnswer], grade: Grade) -> None:
    assert judge_repeated_at_work(times, answers).grade is grade


@pytest.mark.parametrize(
    ("times", "answers", "grade"),
    [
        (LONG, [answer(0.29, "stopped")], OK),
        (LONG, [answer(0.29, "stopped"), answer(0.3, "stopped")], OK),
        (LONG, [answer(0.29)], OK),
        (LONG, [answer(0.51)], NOTE),
        (LONG, [answer(0.29, "stopped"), answer(0.5)], FAILED),
        (LONG, [answer(0.29, "not_stopped"), answer(0.5)], NOTE),
        (LONG, [answer(0.9, "stopped")], OK),
        (SHORT, [answer(0.05)], OK),
    ],
)
def test_result_after_a_stop_shows_that_it_was_ignored(
    times: WorkTimes, answers: list[TimedAnswer], grade: Grade
) -> None:
    assert judge_stop(times, 0.0, answers).grade is grade


@pytest.mark.parametrize(("answers", "grade"), [([answer(0.1, "disabled")], OK), ([], OK), ([answer(0.1)], FAILED)])
def test_work_without_permission_fails(answers: list[TimedAnswer], grade: Grade) -> None:
    assert judge_lock(answers).grade is grade


def test_strict_check_fails_with_a_note() -> None:
    findings = [CheckFinding("start", OK, ""), CheckFinding("presence", NOTE, "")]
    assert has_passed(findings, strict=False)
    assert not has_passed(findings, strict=True)
