"""Defects of background work are counted, logged once while they last, and named as a problem."""

from structlog.testing import capture_logs

from edge.store.defects import Defects


def test_task_that_keeps_failing_is_logged_once_and_counted_each_time() -> None:
    defects = Defects()
    with capture_logs() as logs:
        for _ in range(3):
            defects.record("rules", KeyError("unforeseen"))
        defects.record("safing", ValueError("wrong"))
        assert list(defects.problems()) == ["background task fails: rules (KeyError), safing (ValueError)"]
        assert defects.failing == 2
        defects.end("rules")
        defects.end("rules")
    assert [(log["event"], log["task"]) for log in logs] == [
        ("background task failed, retrying", "rules"),
        ("background task failed, retrying", "safing"),
        ("background task works again", "rules"),
    ]
    assert defects.counts == {"rules": 3, "safing": 1}


def test_gateway_without_defects_has_no_problem() -> None:
    defects = Defects()
    defects.end("rules")
    assert (list(defects.problems()), defects.failing) == ([], 0)
