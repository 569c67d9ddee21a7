"""The held and missing locks of a run."""

import pytest

from edge.sfc.run_locks import NO_LOCK_CHANGE, NO_LOCKS, LockChange, RunLocks, lock_change


def test_missing_locks_are_wanted_but_not_held() -> None:
    locks = RunLocks(held=("a", "z"), entering=("S",), wanted=("a", "b", "c"))
    assert locks.missing == ("b", "c")
    assert locks.claimed == {"a", "b", "c", "z"}


HOLDS = RunLocks(held=("a",))
WAITS = RunLocks(entering=("S",), wanted=("a", "b"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (NO_LOCKS, WAITS, LockChange(claimed=("a", "b"), reason="step S")),
        (WAITS, WAITS, NO_LOCK_CHANGE),
        (WAITS, RunLocks(held=("a", "b")), LockChange(granted=("a", "b"))),
        (WAITS, NO_LOCKS, LockChange(released=frozenset("ab"))),
        (HOLDS, NO_LOCKS, LockChange(released=frozenset("a"))),
        # Left and wanted again: the lock goes to the end of its queue.
        (HOLDS, WAITS, LockChange(frozenset("a"), ("a", "b"), (), "step S")),
        (WAITS, RunLocks(entering=("T",), wanted=("b", "c")), LockChange(frozenset("a"), ("b", "c"), (), "step T")),
    ],
)
def test_lock_change_is_the_difference_of_the_states_before_and_after(
    before: RunLocks, after: RunLocks, expected: LockChange
) -> None:
    assert lock_change(before, after) == expected
