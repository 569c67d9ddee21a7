"""A defect of one item is logged and skipped; an outage or a cancellation is raised."""

import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from edge.foundation.errors import Unavailable
from edge.store.isolation import Isolated

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
    assert [(each["event"], each["item"], repr(each["exc_info"])) for each in logs] == [
        ("item unreadable", "a", "KeyError('a')")
    ]


@pytest.mark.parametrize("error", [Unavailable("the store is gone"), asyncio.CancelledError()])
def test_outage_and_cancellation_are_not_isolated(error: BaseException) -> None:
    with capture_logs() as logs, pytest.raises(type(error)), Isolated(LOGGER, "item unreadable"):
        raise error
    assert logs == []
