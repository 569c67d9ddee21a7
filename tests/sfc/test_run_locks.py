"""The held and missing locks of a run."""

from edge.sfc.run_locks import RunLocks


def test_missing_locks_are_wanted_but_not_held() -> None:
    locks = RunLocks(held=("a", "z"), entering=("S",), wanted=("a", "b", "c"))
    assert locks.missing == ("b", "c")
    assert locks.claimed == {"a", "b", "c", "z"}
