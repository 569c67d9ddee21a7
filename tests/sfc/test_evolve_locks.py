"""Steps with locks: they are entered once the run holds their locks, and the locks are released when they are left."""

from typing import Any

from edge.foundation.text import Text
from edge.model.recipe import Intervention
from edge.sfc.run import NO_LOCKS, Outcome
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import Abort, Granted, IgnoredKind, Intervene, Pause, Resume, Tick
from edge.sfc.view import next_deadline
from edge.sfc.waiting import explain_waiting
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, net_of, recipe, transition


def locked(data: dict[str, Any], name: str, *locks: str, **keys: Any) -> dict[str, Any]:
    """Return a recipe in which a step or branch has locks."""
    for step in (*data["steps"], *data["branches"]):
        if step["name"] == name:
            step.update(lock=list(locks), **keys)
    return data


def tightening(**keys: Any) -> Driven:
    return Driven(net_of(locked(chain("A B C", action("b", "B")), "B", "wrench", **keys)))


def test_a_step_is_entered_once_its_lock_is_granted() -> None:
    driven = tightening()
    assert driven.run.active == {"A"}
    assert driven.run.locks.missing == ("wrench",)
    assert not driven.requests
    driven.signal(Granted(("wrench",)), 5)
    assert driven.run.active == {"B"}
    assert driven.sent == ["start J1/R1/b/1"]
    assert driven.run.locks.held == ("wrench",)


def test_the_lock_is_released_when_its_step_is_left() -> None:
    driven = tightening()
    driven.signal(Granted(("wrench",)), 5)
    driven.answer("b", 6)
    assert driven.run.outcome is Outcome.COMPLETED
    assert driven.run.locks == NO_LOCKS


def test_the_initial_step_waits_for_its_lock() -> None:
    driven = Driven(net_of(locked(chain("A B", action("a", "A")), "A", "wrench")))
    assert not driven.run.active
    assert driven.run.outcome is Outcome.RUNNING
    (waits,) = explain_waiting(driven.net, driven.run, 2000, {"wrench": Text("held by job J9")})
    assert str(waits) == "start → A [always] waits for lock wrench: held by job J9, waits for 2 s"
    driven.signal(Granted(("wrench",)), 5)
    assert driven.sent == ["start J1/R1/a/1"]


def test_consecutive_steps_keep_the_lock_between_them() -> None:
    data = locked(locked(chain("A B C", action("a", "A"), action("b", "B")), "A", "wrench"), "B", "wrench")
    driven = Driven(net_of(data))
    driven.signal(Granted(("wrench",)), 1)
    driven.answer("a", 2)
    assert driven.run.active == {"B"}
    assert driven.run.locks.held == ("wrench",)


def test_waiting_transition_blocks_transitions_of_lower_priority() -> None:
    data = recipe("A B C", [transition("A", "B", "always"), transition("A", "C", "true", priority=1)])
    driven = Driven(net_of(locked(data, "B", "wrench")))
    driven.signal(Tick(), 100)
    assert driven.run.active == {"A"}


def test_transition_of_higher_priority_overtakes_a_lock_wait() -> None:
    ways = [transition("A", "B", "true", priority=1), transition("A", "C", "steps.A.T > 1s")]
    driven = Driven(net_of(locked(recipe("A B C", ways), "B", "wrench")))
    assert next_deadline(driven.net, driven.run) is not None
    driven.signal(Tick(), 1001)
    assert driven.run.outcome is Outcome.COMPLETED
    assert driven.run.locks == NO_LOCKS


def test_a_lock_that_is_not_free_in_time_fails_the_run() -> None:
    driven = tightening(lock_timeout_seconds=3)
    assert next_deadline(driven.net, driven.run) == 3000
    driven.signal(Tick(), 3000)
    assert str(driven.run.error) == "step 'B': lock 'wrench' was not free within its lock_timeout_seconds"


def test_a_lock_granted_at_its_deadline_is_in_time() -> None:
    driven = tightening(lock_timeout_seconds=3)
    driven.signal(Granted(("wrench",)), 3000)
    assert driven.run.active == {"B"}


def test_a_pause_stops_the_timeout_and_keeps_a_granted_lock() -> None:
    driven = tightening(lock_timeout_seconds=3)
    driven.signal(Pause(), 1000)
    driven.signal(Granted(("wrench",)), 2000)
    assert driven.run.active == {"A"}
    driven.run = decode(encode(driven.run))
    driven.signal(Resume(), 61_000)
    assert driven.run.active == {"B"}
    assert driven.run.locks.held == ("wrench",)


def test_abort_releases_held_and_requested_locks() -> None:
    driven = tightening()
    driven.signal(Abort("e-stop"), 1)
    assert driven.run.locks == NO_LOCKS


def test_grant_of_an_unrequested_lock_is_ignored() -> None:
    driven = tightening()
    assert driven.ignored(Granted(("crane",)), 1) is IgnoredKind.NOT_WAITING
    driven.signal(Granted(("wrench",)), 1)
    assert driven.ignored(Granted(("wrench",)), 2) is IgnoredKind.NOT_WAITING


def test_a_forced_transition_waits_for_its_lock() -> None:
    data = recipe("A B C", [transition("A", "B", "never"), transition("A", "C", "never")])
    data["interventions"] = ["force"]
    driven = Driven(net_of(locked(data, "B", "wrench")))
    driven.signal(Intervene(Intervention.FORCE, step="A", target="B", reason="r", by="p"), 1)
    assert driven.run.active == {"A"}
    assert "lock wrench: not free" in str(explain_waiting(driven.net, driven.run, 1)[0])
    driven.run = decode(encode(driven.run))
    driven.signal(Granted(("wrench",)), 2)
    assert driven.run.outcome is Outcome.COMPLETED


def test_a_branch_holds_its_lock_over_all_its_steps() -> None:
    data = recipe(
        "I A B C End",
        [transition("I", "group"), transition("group", "End")],
        [action("a", "A"), action("b", "B"), action("c", "C")],
        branch("group", "simultaneous", "A B", "C"),
    )
    driven = Driven(net_of(locked(data, "group", "wrench")))
    driven.signal(Granted(("wrench",)), 1)
    driven.answer("a", 2)
    driven.answer("c", 3)
    assert driven.run.locks.held == ("wrench",)
    driven.answer("b", 4)
    assert driven.run.locks == NO_LOCKS


def test_waiting_run_holds_no_lock_of_a_left_step() -> None:
    """Left at the same instant: B is passed through, and `wrench` would be held while the run waits for `crane`."""
    data = chain("A B C", action("a", "A"))
    driven = Driven(net_of(locked(locked(data, "A", "wrench"), "C", "crane", "wrench")))
    driven.signal(Granted(("wrench",)), 1)
    driven.answer("a", 2)
    assert driven.run.active == {"B"}
    assert driven.run.locks.held == ()
    assert driven.run.locks.missing == ("crane", "wrench")
