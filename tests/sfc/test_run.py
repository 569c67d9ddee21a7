"""A run finds its commands, its waits and the times of its steps."""

import pytest

from edge.foundation.text import Text
from edge.sfc.run import (
    NO_LOCK_CHANGE,
    NO_LOCKS,
    ActionState,
    Association,
    LockChange,
    Run,
    RunLocks,
    StepState,
    find_command,
    is_outstanding,
    is_too_late,
    lock_change,
    outstanding,
    waits,
)
from edge.sfc.signal import Abort, Pause
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, net_of, recipe, transition, wait

TWO = recipe(
    "I A B End",
    [transition("I", "par"), transition("par", "End")],
    [action("a", "A", "S"), wait("w", "B", type_id="part", timeout_seconds=0)],
    branch("par", "simultaneous", "A", "B"),
)


def test_a_command_is_outstanding_until_it_is_answered_or_stopped() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))))
    assert is_outstanding(driven.run, "J1/R1/a/1")
    driven.answer("a", 1)
    assert not is_outstanding(driven.run, "J1/R1/a/1")
    assert is_outstanding(driven.run, "J1/R1/b/1")
    driven.signal(Abort(), 2)
    assert not is_outstanding(driven.run, "J1/R1/b/1")


def test_the_reset_sent_at_abort_is_outstanding() -> None:
    driven = Driven(net_of(chain("A B C", action("s", "A", "S"), action("b", "B"), action("s", "C", "R"))))
    driven.answer("s", 1)
    driven.signal(Abort(), 2)
    assert driven.sent == ["stop J1/R1/b/1", "reset J1/R1/s/1/reset"]
    assert is_outstanding(driven.run, "J1/R1/s/1/reset")


def test_waits_have_the_start_time_of_each_awaited_type() -> None:
    driven = Driven(net_of(TWO))
    assert waits(driven.run) == {"part": 0}
    driven.signal(Abort(), 5)
    assert waits(driven.run) == {}


@pytest.mark.parametrize(
    ("state", "now", "t"),
    [
        (StepState(active=True, activated_at=1000), 3500, 2500),
        (StepState(active=True, activated_at=1000, held_ms=500), 3500, 2000),
        (StepState(active=True, activated_at=1000), 500, 0),
        (StepState(activated_at=1000, elapsed_ms=700), 9000, 700),
        (StepState(), 9000, 0),
    ],
)
def test_t_runs_while_the_step_is_active_and_keeps_its_value_afterwards(state: StepState, now: int, t: int) -> None:
    assert state.t(now) == t


def test_action_states_have_their_stable_log_names() -> None:
    assert [state.value for state in ActionState] == [
        "pending",
        "dispatched",
        "waiting",
        "completed",
        "failed",
        "timed_out",
        "stopped",
        "unknown",
    ]


def test_only_a_command_that_awaits_an_outcome_is_found() -> None:
    # A limit SL keeps the association open after the answer.
    driven = Driven(net_of(chain("A B", action("s", "A", "SL", duration_seconds=10), action("b", "B"))))
    assert find_command(driven.run, "J1/R1/s/1") is not None
    driven.answer("s", 1)
    assert any(driven.run.associations[key].action == "s" for key in driven.run.open)
    assert find_command(driven.run, "J1/R1/s/1") is None


@pytest.mark.parametrize(
    ("qualifier", "fields", "now", "is_late"),
    [
        ("N", {"timeout_seconds": 5}, 4_999, False),
        ("N", {"timeout_seconds": 5}, 5_000, True),
        ("L", {"timeout_seconds": 5, "duration_seconds": 2}, 2_000, True),
        ("L", {"timeout_seconds": 1, "duration_seconds": 2}, 1_000, True),
        ("N", {"timeout_seconds": 0}, 90_000, False),
    ],
)
def test_start_is_too_late_from_the_end_of_its_time_on(
    qualifier: str, fields: dict[str, float], now: int, *, is_late: bool
) -> None:
    driven = Driven(net_of(chain("A B", action("a", "A", qualifier, **fields), action("b", "B"))))
    assert is_too_late(driven.run, waiting(driven.run, "J1/R1/a/1"), now) is is_late
    driven.signal(Pause(), 100)
    assert not is_too_late(driven.run, waiting(driven.run, "J1/R1/a/1"), now)


def waiting(run: Run, command: str) -> Association:
    association = outstanding(run, command)
    assert association is not None
    return association


def test_reset_is_never_too_late() -> None:
    """It makes the tool safe."""
    driven = Driven(net_of(chain("A B C", action("s", "A", "S"), action("s", "B", "R"), action("c", "C"))))
    driven.answer("s", 1)
    assert not is_too_late(driven.run, waiting(driven.run, "J1/R1/s/1/reset"), 90_000)


def test_missing_locks_are_wanted_but_not_held() -> None:
    locks = RunLocks(held=("a", "z"), entering=("S",), wanted=("a", "b", "c"))
    assert locks.missing == ("b", "c")
    assert locks.claimed == {"a", "b", "c", "z"}


HOLDS = RunLocks(held=("a",))
WAITS = RunLocks(entering=("S",), wanted=("a", "b"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (NO_LOCKS, WAITS, LockChange(claimed=("a", "b"), reason=Text.of("step {step}", step="S"))),
        (WAITS, WAITS, NO_LOCK_CHANGE),
        (WAITS, RunLocks(held=("a", "b")), LockChange(granted=("a", "b"))),
        (WAITS, NO_LOCKS, LockChange(released=frozenset("ab"))),
        (HOLDS, NO_LOCKS, LockChange(released=frozenset("a"))),
        # Left and wanted again: the lock goes to the end of its queue.
        (HOLDS, WAITS, LockChange(frozenset("a"), ("a", "b"), (), Text.of("step {step}", step="S"))),
        (
            WAITS,
            RunLocks(entering=("T",), wanted=("b", "c")),
            LockChange(frozenset("a"), ("b", "c"), (), Text.of("step {step}", step="T")),
        ),
    ],
)
def test_lock_change_is_the_difference_of_the_states_before_and_after(
    before: RunLocks, after: RunLocks, expected: LockChange
) -> None:
    assert lock_change(before, after) == expected
