"""Defects of background work are counted, logged once while they last, and named as a problem."""

import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from edge.foundation.errors import Unavailable
from edge.store.defects import Defects, Isolated


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


LOGGER = structlog.get_logger(__name__)


def test_a_defect_is_logged_with_its_item_and_ends_the_block() -> None:
    done: list[str] = []
    with capture_logs() as logs:
        for item in ("a", "b"):
            with Isolated(LOGGER, "item unreadable", item=item):
                if item == "a":
                    raise KeyError(item)
                done.append(item)
    assert done == ["b"]
    assert [(entry["event"], entry["item"], repr(entry["exc_info"])) for entry in logs] == [
        ("item unreadable", "a", "KeyError('a')")
    ]


@pytest.mark.parametrize("error", [Unavailable("the store is gone"), asyncio.CancelledError()])
def test_outage_and_cancellation_are_not_isolated(error: BaseException) -> None:
    with capture_logs() as logs, pytest.raises(type(error)), Isolated(LOGGER, "item unreadable"):
        raise error
    assert logs == []
