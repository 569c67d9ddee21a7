"""An answer that could not be published is a problem for an hour, or until a later one passes."""

import pytest
from structlog.testing import capture_logs

from edge.northbound.unsent_answers import UnsentAnswers


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def test_unsent_answer_is_a_problem_for_an_hour(clock: _Clock) -> None:
    unsent = UnsentAnswers(clock)
    assert unsent.problems() == []
    with capture_logs() as logs:
        for _ in range(3):
            unsent.add("app/answers/me", "not authorized", "app/jobs/station-1/commands")
    assert unsent.problems() == ["answers to app/answers/me are not sent: not authorized"]
    assert [entry["event"] for entry in logs] == ["answer dropped"]
    clock.now += 3599
    assert unsent.problems() != []
    clock.now += 2
    assert unsent.problems() == []


def test_answer_that_passes_ends_the_problem_of_its_topic(clock: _Clock) -> None:
    unsent = UnsentAnswers(clock)
    unsent.add("a", "not authorized", "commands")
    unsent.add("b", "not authorized", "commands")
    unsent.remove("a")
    assert unsent.problems() == ["answers to b are not sent: not authorized"]


def test_topics_that_callers_choose_take_bounded_room(clock: _Clock) -> None:
    unsent = UnsentAnswers(clock)
    for number in range(1000):
        unsent.add(f"{number} {'x' * 60_000}", "not allowed", "commands")
    found = unsent.problems()
    assert len(found) == 3
    assert "999 " in found[-1]
    assert max(map(len, found)) < 300
