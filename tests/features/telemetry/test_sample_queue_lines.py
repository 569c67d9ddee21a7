"""A full queue of lines drops the oldest of the busiest tag, those of alarms last."""

from collections import Counter, deque

from hypothesis import given
from hypothesis import strategies as st

from edge.features.telemetry.sample_queue import LineQueue
from edge.ports.sample_lines import Line, Occurrence, Sample


def sample(tag: str, number: int) -> Sample:
    return Sample(number, tag, number)


def fill(queue: LineQueue, lines: list[Line], alarms: str = "") -> int:
    return sum(queue.add(line, raises_alarms=isinstance(line, Sample) and line.tag in alarms) for line in lines)


def test_full_queue_drops_the_oldest_line_of_the_busiest_tag() -> None:
    queue = LineQueue(5)
    lines: list[Line] = [sample("a", 0), sample("b", 1), sample("b", 2), sample("c", 3), sample("b", 4)]
    assert fill(queue, [*lines, sample("c", 5), sample("a", 6)]) == 2
    assert [reported.at for reported in queue.take(9)] == [0, 3, 4, 5, 6]


def test_full_queue_drops_tags_of_alarms_last_and_occurrences_never_before() -> None:
    queue = LineQueue(4)
    lines: list[Line] = [
        Occurrence(0, "job.started", "J", None),
        sample("alarm", 1),
        sample("alarm", 2),
        sample("trend", 3),
    ]
    assert fill(queue, [*lines, sample("alarm", 4), sample("alarm", 5)], "alarm") == 2
    assert [reported.at for reported in queue.take(9)] == [0, 2, 4, 5]


def test_settled_counts_lines_before_the_oldest_that_waits() -> None:
    queue = LineQueue(3)
    fill(queue, [sample("quiet", 0), *(sample("noisy", number) for number in range(1, 9))])
    assert queue.settled == 0
    queue.take(1)
    assert queue.settled == 7
    queue.take(9)
    assert queue.settled == 9


@given(st.lists(st.one_of(st.sampled_from("abcd"), st.integers(1, 3)), max_size=60), st.integers(1, 6))
def test_queue_agrees_with_a_slow_one(acts: list[str | int], size: int) -> None:
    queue, slow = LineQueue(size), deque[Sample]()
    for number, act in enumerate(acts):
        if isinstance(act, int):
            assert [reported.at for reported in queue.take(act)] == [
                slow.popleft().at for _ in range(min(act, len(slow)))
            ]
            continue
        line = sample(act, number)
        is_full = len(slow) == size
        assert queue.add(line, raises_alarms=act in "ab") is is_full
        slow.append(line)
        if is_full:
            # Of several tags with as many lines any one may go: the counts must agree, and the order.
            waiting = queue.take(size)
            queue = LineQueue(size)
            fill(queue, list(waiting), "ab")
            before = [item for item in slow if item is not line]
            (lost,) = (item for item in before if item not in waiting)
            ranked = [item for item in before if item.tag not in "ab"] or before
            counts = Counter(item.tag for item in ranked)
            assert lost in ranked
            assert counts[lost.tag] == max(counts.values())
            assert lost is next(item for item in before if item.tag == lost.tag)
            slow.remove(lost)
    assert [reported.at for reported in queue.take(99)] == [item.at for item in slow]
