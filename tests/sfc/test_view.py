"""What conditions see of a run."""

from edge.sfc.run import new_run
from edge.sfc.signal import Tick
from edge.sfc.value import UNKNOWN
from edge.sfc.view import RunView
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of, recipe, transition


def test_a_step_that_never_was_active_has_nothing() -> None:
    net = net_of(chain("A B", action("a", "A")))
    view = RunView(net, new_run("J1", "s", "r", {}), 0)
    assert [view.step("A", prop) for prop in ("X", "T", "count", "done")] == [False, 0.0, 0, False]
    assert [view.action(("a@A",), prop) for prop in ("state", "done", "failed", "timed_out", "attempts", "result")] == [
        "pending",
        False,
        False,
        False,
        0,
        UNKNOWN,
    ]


def test_a_step_is_seen_with_its_time_and_its_actions() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))), {"torque": 85})
    driven.answer("a", 1500, {"angle": 30})
    view = RunView(driven.net, driven.run, 2000)
    assert [view.step("A", prop) for prop in ("X", "T", "count", "done")] == [False, 1.5, 1, True]
    assert [view.step("B", prop) for prop in ("X", "T", "count", "done")] == [True, 0.5, 1, False]
    assert [view.action(("a@A",), prop) for prop in ("state", "done", "attempts", "result")] == [
        "completed",
        True,
        1,
        {"angle": 30},
    ]
    assert [view.job(prop) for prop in ("id", "scope", "parameters")] == ["J1", "station-1", {"torque": 85}]
    assert [view.variable(name) for name in ("angle", "torque", "nothing")] == [30, 85, UNKNOWN]
    assert (view.wake("B", 2), view.wake("A", 2)) == (3500, None)


def test_a_result_goes_before_a_parameter_of_the_same_name() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))), {"torque": 85})
    driven.answer("a", 1, {"torque": 90})
    assert RunView(driven.net, driven.run, 1).variable("torque") == 90


def test_failed_and_timed_out_are_told_apart() -> None:
    alternative = [transition("A", "B", "actions.a.failed"), transition("A", "C", "actions.a.timed_out")]
    for what, end in (("failed", "B"), ("timed_out", "C")):
        driven = Driven(net_of(recipe("A B C", alternative, [action("a", "A")])))
        if what == "failed":
            driven.answer("a", 1, error="x")
        else:
            driven.signal(Tick(), 10_000)
        view = RunView(driven.net, driven.run, 10_000)
        assert view.step(end, "X") is True
        assert view.action(("a@A",), what) is True


def test_of_several_associations_the_newest_is_seen() -> None:
    driven = Driven(net_of(chain("A B C", action("s", "A", "S"), action("b", "B"), action("s", "C", "R"))))
    driven.answer("s", 1, {"n": 1})
    view = RunView(driven.net, driven.run, 1)
    assert view.action(("s@A", "s@C"), "state") == "completed"
    driven.answer("b", 2)
    view = RunView(driven.net, driven.run, 2)
    assert view.action(("s@A", "s@C"), "state") == "dispatched"
    assert view.action(("s@C",), "attempts") == 1
