"""The locks of a run and those that it misses."""

from edge.sfc.run_locks import RunLocks


def test_missing_are_the_wanted_locks_that_are_not_held() -> None:
    locks = RunLocks(held=("a", "z"), entering=("S",), wanted=("a", "b", "c"))
    assert locks.missing == ("b", "c")
    assert locks.claimed == {"a", "b", "c", "z"}
