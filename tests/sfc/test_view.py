"""The view of a run with its net."""

from edge.expression.value import UNKNOWN
from edge.sfc.advance import advance
from edge.sfc.identifiers import AssociationKey
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import new_run
from edge.sfc.run_fields import encode
from edge.sfc.signal import Advanced, Answer, Event, Pause, Resume, Tick
from edge.sfc.view import RunView, next_deadline, results
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of, recipe, transition, wait


def test_step_that_was_never_active_has_default_values() -> None:
    net = net_of(chain("A B", action("a", "A")))
    view = RunView(net, new_run("J1", "s", "r", {}), 0)
    assert [view.step("A", prop) for prop in ("X", "T", "count", "done")] == [False, 0.0, 0, False]
    assert [
        view.action((key("a@A"),), prop) for prop in ("state", "done", "failed", "timed_out", "attempts", "result")
    ] == [
        "pending",
        False,
        False,
        False,
        0,
        UNKNOWN,
    ]


def test_view_shows_a_step_with_its_time_and_its_actions() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))), {"torque": 85})
    driven.answer("a", 1500, {"angle": 30})
    view = RunView(driven.net, driven.run, 2000)
    assert [view.step("A", prop) for prop in ("X", "T", "count", "done")] == [False, 1.5, 1, True]
    assert [view.step("B", prop) for prop in ("X", "T", "count", "done")] == [True, 0.5, 1, False]
    assert [view.action((key("a@A"),), prop) for prop in ("state", "done", "attempts", "result")] == [
        "completed",
        True,
        1,
        {"angle": 30},
    ]
    assert [view.job(prop) for prop in ("id", "scope", "parameters")] == ["J1", "station-1", {"torque": 85}]
    assert [view.variable(name) for name in ("angle", "torque", "nothing")] == [30, 85, UNKNOWN]
    assert (view.wake("B", 2), view.wake("A", 2)) == (3500, None)


def test_result_takes_precedence_over_a_parameter_of_the_same_name() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))), {"torque": 85})
    driven.answer("a", 1, {"torque": 90})
    assert RunView(driven.net, driven.run, 1).variable("torque") == 90


def test_failed_and_timed_out_are_distinguished() -> None:
    alternative = [transition("A", "B", "actions.a.failed"), transition("A", "C", "actions.a.timed_out")]
    for what, end in (("failed", "B"), ("timed_out", "C")):
        driven = Driven(net_of(recipe("A B C", alternative, [action("a", "A")])))
        if what == "failed":
            driven.answer("a", 1, error="x")
        else:
            driven.signal(Tick(), 10_000)
        view = RunView(driven.net, driven.run, 10_000)
        assert view.step(end, "X") is True
        assert view.action((key("a@A"),), what) is True


def test_view_shows_the_newest_of_several_associations() -> None:
    driven = Driven(net_of(chain("A B C", action("s", "A", "S"), action("b", "B"), action("s", "C", "R"))))
    driven.answer("s", 1, {"n": 1})
    view = RunView(driven.net, driven.run, 1)
    assert view.action((key("s@A"), key("s@C")), "state") == "completed"
    driven.answer("b", 2)
    view = RunView(driven.net, driven.run, 2)
    assert view.action((key("s@A"), key("s@C")), "state") == "dispatched"
    assert view.action((key("s@C"),), "attempts") == 1


def test_only_time_comparisons_of_active_steps_set_a_deadline() -> None:
    driven = Driven(
        net_of(recipe("A B C", [transition("A", "B", "steps.A.T >= 2s and ok"), transition("B", "C", "ok")]))
    )
    assert next_deadline(driven.net, driven.run) == 2000
    driven.signal(Tick(), 2000)
    assert next_deadline(driven.net, driven.run) == 2001
    driven.signal(Tick(), 2001)
    assert next_deadline(driven.net, driven.run) is None


def test_kept_event_does_not_replace_a_time_test() -> None:
    data = recipe(
        "A B C", [transition("A", "B", "steps.A.T >= 2s"), transition("B", "C")], [wait("w", "B", type_id="part")]
    )
    driven = Driven(net_of(data))
    driven.signal(Event("part", None, "e1", named=True), 2500)
    assert next_deadline(driven.net, driven.run) == 2000


def test_pause_removes_the_deadline_and_resume_restores_it_later() -> None:
    driven = Driven(net_of(chain("A", action("a", "A"))))
    assert next_deadline(driven.net, driven.run) == 10_000
    driven.signal(Pause(), 4000)
    assert next_deadline(driven.net, driven.run) is None
    driven.signal(Resume(), 5000)
    assert next_deadline(driven.net, driven.run) == 11_000
    driven.signal(Tick(), 11_000)
    assert next_deadline(driven.net, driven.run) is None


def test_a_run_that_has_not_started_has_no_deadline() -> None:
    assert next_deadline(net_of(chain("A B")), new_run("J", "s", "r", {})) is None


def test_results_are_the_latest_of_each_action() -> None:
    data = recipe(
        "A B A2", [transition("A", "B"), transition("B", "A2")], [action("a", "A"), action("b", "B"), action("a", "A2")]
    )
    driven = Driven(net_of(data))
    driven.answer("a", 1, {"n": 1})
    driven.answer("b", 2)
    assert results(driven.net, driven.run) == {"a": {"n": 1}}
    driven.answer("a", 3, {"n": 2}, attempt=2)
    assert results(driven.net, driven.run) == {"a": {"n": 2}}


def test_results_of_one_instant_are_in_recipe_order() -> None:
    actions = [action("s", "B", "R"), action("b", "B"), action("s", "A", "S")]
    driven = Driven(net_of(chain("A B", *actions)))
    driven.answer("s", 1)
    driven.answer("b", 2, data={"n": 1})
    driven.signal(Answer("J1/R1/s/1/reset", ok=True, data={"n": 2}), 2)
    assert list(results(driven.net, driven.run)) == ["s", "b"]


def test_decision_leaves_the_previous_run_unchanged() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))))
    before = encode(driven.run)
    advanced = advance(driven.net, driven.run, Answer("J1/R1/a/1", ok=True, data={"x": 1}), 5)
    assert isinstance(advanced, Advanced)
    assert encode(driven.run) == before != encode(advanced.run)


def test_decision_records_the_fields_it_changed() -> None:
    driven = Driven(net_of(chain("A B C", action("a", "A"), action("b", "B"))))
    driven.answer("a", 5, {"x": 1})
    a, b = AssociationKey("a", "A"), AssociationKey("b", "B")
    assert driven.run.touched == {("step", "A"), ("step", "B"), ("action", a), ("action", b), ("var", "x")}
    driven.signal(Tick(), 6)
    assert driven.run.touched == frozenset()
