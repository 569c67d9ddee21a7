"""Tests of the order of the event queue of a simulation."""

from edge.features.simulator.event_queue import EventQueue, EventRank, milliseconds


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
