"""An operation changes its state in a fixed order, and only by its owner while the lease is valid."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.access.operations import (
    INTERRUPTED,
    Cancel,
    Claim,
    Finish,
    Interrupt,
    OperationEvent,
    Renew,
    next_at,
    transition,
)
from edge.model.plant import Operation, OperationState, OperationType

SCHEDULED = Operation(id="1", type=OperationType.BACKUP, by="anna", due=5, created=1)


def after(*events: tuple[OperationEvent, int]) -> Operation:
    operation = SCHEDULED
    for event, now in events:
        found = transition(operation, event, now)
        assert found is not None, event
        operation = found
    return operation


CLAIMED = (Claim("gw-1", 15), 5)


def test_operation_is_claimed_renewed_and_completed() -> None:
    done = after(CLAIMED, (Renew("gw-1", 20, "store"), 10), (Finish("gw-1", "file"), 18))
    assert (done.state, done.result, done.started, done.ended, done.until) == ("done", "file", 5, 18, None)


def test_operation_of_a_dead_owner_is_interrupted_after_its_lease() -> None:
    assert transition(after(CLAIMED), Interrupt(), 14) is None
    failed = after(CLAIMED, (Interrupt(), 15))
    assert (failed.state, failed.error, failed.owner) == ("failed", INTERRUPTED, "gw-1")


def test_requested_cancellation_is_executed_by_the_owner() -> None:
    operation = after(CLAIMED, (Cancel("ben"), 6))
    assert (operation.state, operation.cancelled_by) == ("running", "ben")
    assert after(CLAIMED, (Cancel("ben"), 6), (Finish("gw-1", error="cancelled"), 7)).state is OperationState.CANCELLED
    # It was complete before its owner saw the request.
    assert after(CLAIMED, (Cancel("ben"), 6), (Finish("gw-1", "file"), 7)).state is OperationState.DONE
    assert after((Cancel("ben"), 2)).state is OperationState.CANCELLED


@pytest.mark.parametrize(
    ("before", "event", "now"),
    [
        ((), Claim("gw-1", 9), 4),  # it is not due
        ((CLAIMED,), Claim("gw-2", 30), 6),  # another has it
        ((CLAIMED,), Renew("gw-2", 30), 6),
        ((CLAIMED,), Finish("gw-2"), 6),
        ((), Finish("gw-1"), 6),
        ((), Interrupt(), 10**9),
        (((Cancel("ben"), 2),), Cancel("ben"), 3),
        ((CLAIMED, (Interrupt(), 15)), Renew("gw-1", 30), 16),  # its owner was only slow: it has lost it
    ],
)
def test_event_in_the_wrong_state_is_ignored(
    before: tuple[tuple[OperationEvent, int], ...], event: OperationEvent, now: int
) -> None:
    assert transition(after(*before), event, now) is None


_EVENTS = st.one_of(
    st.builds(Claim, st.sampled_from("ab"), st.integers(0, 50)),
    st.builds(Renew, st.sampled_from("ab"), st.integers(0, 50)),
    st.builds(Finish, st.sampled_from("ab"), error=st.sampled_from(["", "full"])),
    st.builds(Cancel, st.just("ben")),
    st.just(Interrupt()),
)


@given(st.lists(st.tuples(_EVENTS, st.integers(0, 50)), max_size=20))
def test_ended_operation_never_changes_again(events: list[tuple[OperationEvent, int]]) -> None:
    operation = SCHEDULED
    for event, now in events:
        found = transition(operation, event, now)
        assert found is None or not operation.has_ended
        operation = found or operation


@pytest.mark.parametrize(("time_of_day", "expected"), [("02:00", 2), ("00:59", 2), ("23:00", 1), ("01:00", 2)])
def test_next_time_of_day_is_in_the_future(time_of_day: str, expected: int) -> None:
    found = next_at(time_of_day, datetime(2026, 1, 1, 1 if time_of_day != "02:00" else 2, 0, tzinfo=UTC))
    assert (found.day, f"{found:%H:%M}") == (expected, time_of_day)


@pytest.mark.parametrize("text", ["", "2", "24:00", "02:60", "noon"])
def test_malformed_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not match|unconverted|range"):
        next_at(text, datetime(2026, 1, 1, tzinfo=UTC))
