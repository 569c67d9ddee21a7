"""A user causes a bounded number of audit records; other users have their own limits."""

from structlog.testing import capture_logs

from edge.access.caller_limit import CallerLimit


def test_dropped_records_of_a_user_are_counted() -> None:
    now = 0.0
    limit, eve = CallerLimit(clock=lambda: now), "eve"
    assert sum(limit.admits(eve) for _ in range(500)) == 60
    assert limit.admits("anna")
    now = 61.0
    with capture_logs() as logs:
        assert limit.admits(eve)
    assert [(each["user"], each["dropped"]) for each in logs] == [("eve", 440)]
