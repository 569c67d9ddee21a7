import structlog
from structlog.testing import capture_logs

from edge.links.log_throttle import LogThrottle


class Time:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


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
