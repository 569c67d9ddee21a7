"""What a remote peer can cause is limited to a number of actions, lines or seconds of work in a time."""

import pytest
import structlog
from structlog.testing import capture_logs

from edge.foundation.rate_limit import Allowance, LimitByKey, LogThrottle, RateLimit


class Time:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rate_limit_permits_a_number_of_calls_per_period() -> None:
    time = Time()
    quota = RateLimit(2, 60.0, time)
    admitted = []
    for time.now in (0.0, 30.0, 59.0, 60.0, 61.0, 90.0, 91.0):
        admitted.append(quota.try_acquire())
    assert admitted == [True, True, False, True, False, True, False]


def test_declined_actions_are_reported_with_the_next_admitted_one() -> None:
    time, declined = Time(), list[int]()
    quota = RateLimit(2, 60.0, time, declined.append)
    for time.now in (0.0, 30.0, 58.0, 59.0, 60.0):
        quota.try_acquire()
    assert declined == [2]


def test_declined_actions_are_reported_once_in_a_period() -> None:
    time, declined = Time(), list[int]()
    quota = RateLimit(10, 60.0, time, declined.append)
    for tenth in range(6000):
        time.now = tenth / 10
        quota.try_acquire()
    assert len(declined) == 9


def test_each_key_has_its_own_limit_and_further_ones_share_one() -> None:
    declined = dict[str, int]()
    time = Time()
    limit = LimitByKey(1, 60.0, time, declined.__setitem__)
    assert [limit.try_acquire(key) for key in ("eve", "eve", "anna")] == [True, False, True]
    assert sum(limit.try_acquire(str(number)) for number in range(1000)) == 99
    time.now = 60.0
    assert limit.try_acquire("eve")
    assert declined == {"eve": 1}


def test_allowance_refills_at_its_rate_up_to_the_most() -> None:
    time = Time()
    budget = Allowance(per_s=0.5, most=1.0, clock=time)
    assert budget.use(3.0) == 4.0
    time.now += 4.0
    assert budget.wait_s() == 0.0
    time.now += 1000.0
    assert budget.use(2.0) == 2.0


def test_allowance_spreads_what_comes_at_once() -> None:
    time = Time()
    pace = Allowance(per_s=20.0, most=4.0, clock=time)
    waits = [pace.use() for _ in range(50)]
    assert waits[:4] == [0.0] * 4
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(46 / 20)
    time.now += 3.0
    assert pace.use() == 0.0


def test_repeated_faults_are_logged_once_with_their_count() -> None:
    time = Time()
    with capture_logs() as logs:
        throttle = LogThrottle(structlog.get_logger(), interval=60, clock=time)
        for _ in range(1000):
            throttle.warning("message dropped", "topic a", topic="a")
        throttle.warning("message dropped", "topic b", topic="b")
        time.now = 61
        throttle.warning("message dropped", "topic a", topic="a")
    assert logs == [
        {"event": "message dropped", "log_level": "warning", "topic": "a"},
        {"event": "message dropped", "log_level": "warning", "topic": "b"},
        {"event": "message dropped", "log_level": "warning", "topic": "a", "repeated": 999},
    ]


def test_many_different_faults_are_logged_up_to_a_limit() -> None:
    time = Time()
    with capture_logs() as logs:
        throttle = LogThrottle(structlog.get_logger(), interval=60, most_lines=10, clock=time)
        for number in range(10_000):
            throttle.warning("message dropped", str(number))
        time.now = 61
        throttle.warning("message dropped", "last")
    assert len(logs) == 12
    assert {"event": "faults not logged", "log_level": "warning", "count": 9990} in logs
