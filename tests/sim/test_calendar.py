"""The calendar of a simulation gives what is planned in its order."""

from edge.sim.calendar import Calendar, Rank, milliseconds


def test_what_is_planned_comes_by_time_then_rank_then_as_it_was_planned() -> None:
    calendar: Calendar[str] = Calendar()
    calendar.plan(5, Rank.SET, "late")
    calendar.plan(1, Rank.ANSWER, "answer")
    calendar.plan(1, Rank.START, "first start")
    calendar.plan(1, Rank.START, "second start")
    calendar.plan(1, Rank.SET, "value")
    given = []
    while calendar.next_at is not None:
        given.append(calendar.pop())
    assert given == [(1, "value"), (1, "first start"), (1, "second start"), (1, "answer"), (5, "late")]


def test_seconds_of_a_script_are_whole_milliseconds() -> None:
    assert milliseconds(0.1 + 0.2) == 300
