"""A recipe is tried by hand in virtual time: up to each question, and the answers make a script with the same end."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.recipes.recipe_tests import RecipeTest, run_test
from edge.features.recipes.trial import (
    Trial,
    TrialDecisions,
    TrialIntervention,
    TrialQuestion,
    TrialReply,
    tried,
)
from edge.features.recipes.trial_fields import TrialField
from edge.foundation.errors import Refused
from edge.model.recipe import parse_recipe
from tests.features.recipes.test_recipe_tests import LOOP
from tests.sfc.recipes import action, chain, recipe, transition

BAD = "actions.tighten.failed or actions.tighten.timed_out"
RETRY = recipe(
    "Tighten Check Rework Done",
    [
        transition("Tighten", "Check", "actions.tighten.done", priority=1),
        transition("Tighten", "Tighten", f"({BAD}) and actions.tighten.attempts < 3", priority=2),
        transition("Tighten", "Rework", BAD, priority=3),
        transition("Check", "Done", "actions.check.result.ok", priority=1),
        transition("Check", "Rework", "always", priority=2),
    ],
    [
        action("tighten", "Tighten", type_id="tighten.v1", timeout_seconds=30),
        action("check", "Check", type_id="check.v1", interaction="pull_event", timeout_seconds=20),
    ],
)


def trial(
    data: dict[str, Any],
    replies: Sequence[TrialReply] = (),
    language: str = "en",
    *,
    acts: Sequence[TrialIntervention] = (),
    parameters: dict[str, Any] | None = None,
) -> Trial:
    parsed, faults = parse_recipe(data)
    assert parsed is not None
    assert not faults
    decisions = TrialDecisions(replies=tuple(replies), interventions=tuple(acts), parameters=parameters or {})
    return tried(parsed, data, decisions, language)


def answered(question: TrialQuestion, result: str, **members: Any) -> TrialReply:
    """Return the decision about a question."""
    return TrialReply(
        kind=question.kind,
        type_id=question.type_id,
        nth=question.nth,
        step=question.step,
        action=question.action,
        at=question.at,
        timeout_seconds=question.timeout_seconds,
        result=result,  # type: ignore[arg-type]
        **members,
    )


def play(data: dict[str, Any], *answers: tuple[str, dict[str, Any]]) -> tuple[Trial, tuple[TrialReply, ...]]:
    """Answer the first question again and again; return the last trial, and its decisions."""
    replies: tuple[TrialReply, ...] = ()
    state = trial(data)
    for result, members in answers:
        replies = (*replies, answered(state.questions[0], result, **members))
        state = trial(data, replies)
    return state, replies


def test_trial_stops_at_the_first_command() -> None:
    state = trial(RETRY)
    assert [(item.kind, item.action, item.nth, item.at) for item in state.questions] == [("command", "tighten", 1, 0)]
    assert [frame.text for frame in state.frames] == ["step Tighten begins", "tighten is commanded, attempt 1"]
    assert (state.frames[-1].active, state.end) == (("Tighten",), "")


def test_an_event_is_asked_for_again_when_its_step_begins_again() -> None:
    """A retry of a camera check timed out in each trial: the step is left and entered at one instant."""
    again = transition("Check", "Check", "not actions.check.result.ok and actions.check.attempts < 3", priority=2)
    done = transition("Check", "Done", "actions.check.result.ok", priority=1)
    failed = transition("Check", "Failed", "not actions.check.result.ok", priority=3)
    check = action("check", "Check", type_id="check.v1", interaction="pull_event", timeout_seconds=20)
    retry = recipe("Check Done Failed", [done, again, failed], [check])
    bad: tuple[str, dict[str, Any]] = ("ok", {"after": 1, "data": {"ok": False}})
    state, _ = play(retry, bad, bad)
    assert [(item.kind, item.nth, item.at) for item in state.questions] == [("event", 3, 2)]
    assert play(retry, bad, bad, ("ok", {"data": {"ok": True}}))[0].steps[-1] == "Done"
    assert play(retry, bad, bad, bad)[0].steps[-1] == "Failed"


def test_answers_lead_to_the_end_and_make_a_test() -> None:
    state, _ = play(
        RETRY,
        ("failed", {"error": "slipped"}),
        ("ok", {"after": 4}),
        ("ok", {"after": 2, "data": {"ok": True}}),
    )
    assert (state.questions, state.end, state.seconds) == ((), "completed", 7)
    assert state.steps == ("Tighten", "Tighten", "Check", "Done")
    texts = [frame.text for frame in state.frames]
    assert texts.index("tighten has failed") < texts.index("tighten is commanded, attempt 2")
    assert "event check.v1" in texts
    test = RecipeTest(id="t", work_master="WM", script=dict(state.script), end="completed", steps=state.steps)
    assert run_test(test, RETRY, "en").reasons == ()


def test_third_failure_leads_to_rework() -> None:
    state, _ = play(RETRY, *[("failed", {})] * 3)
    assert (state.end, state.steps[-1]) == ("completed", "Rework")


def test_answer_after_the_time_limit_is_late() -> None:
    state, _ = play(RETRY, ("late", {"after": 1}))
    (question,) = state.questions
    assert (question.attempt, question.at) == (2, 30)
    state, _ = play(RETRY, ("late", {}), ("ok", {"after": 5}), ("ok", {"data": {"ok": True}}))
    assert any(frame.text == "tighten answers too late" and frame.at == 31 for frame in state.frames)


def test_event_that_never_comes_runs_into_its_limit() -> None:
    state, _ = play(RETRY, ("ok", {}), ("none", {}))
    assert (state.end, state.seconds) == ("failed", 21)
    assert "check" in state.error


def test_command_without_an_answer_and_limit_waits() -> None:
    endless = chain("A B", action("a", "A", type_id="a.v1", timeout_seconds=0))
    state, _ = play(endless, ("none", {}))
    assert (state.end, state.seconds) == ("running", None)
    assert state.waiting[0].startswith("A: ")


def test_unknown_outcome_waits_for_a_person() -> None:
    state, _ = play(RETRY, ("unknown", {}))
    assert state.end == "running"
    assert any("tighten" in text for text in state.waiting)


def test_parallel_steps_ask_together() -> None:
    both = recipe(
        "S A B E",
        [transition("S", "P", "always"), transition("P", "E", "always")],
        [action("a", "A", type_id="a.v1"), action("b", "B", type_id="a.v1")],
        {"name": "P", "type": "simultaneous", "branches": [["A"], ["B"]]},
    )
    state = trial(both)
    assert [(item.action, item.nth) for item in state.questions] == [("a", 1), ("b", 2)]
    replies = (answered(state.questions[1], "ok", after=1),)
    state = trial(both, replies)
    assert [item.action for item in state.questions] == ["a"]
    state = trial(both, (*replies, answered(state.questions[0], "ok", after=3)))
    assert (state.end, state.seconds) == ("completed", 3)


TWO_EVENTS = recipe(
    "A B",
    [transition("A", "B", "actions.x.done and actions.y.done")],
    [action(name, "A", type_id="code.v1", interaction="pull_event", timeout_seconds=0) for name in ("x", "y")],
)


def test_two_events_of_one_type_in_a_step_are_decided_one_by_one() -> None:
    """The first action takes the first event, as at the station."""
    state, replies = play(TWO_EVENTS, ("ok", {"after": 1}))
    assert [item.action for item in state.questions] == ["y"]
    state = trial(TWO_EVENTS, (*replies, answered(state.questions[0], "ok", after=2)))
    assert (state.questions, state.end, state.seconds) == ((), "completed", 2)


def test_event_is_not_asked_behind_one_that_never_comes() -> None:
    state, _ = play(TWO_EVENTS, ("none", {}))
    assert (state.questions, state.end) == ((), "running")


def test_trial_of_a_loop_without_end_is_stopped_with_a_reason() -> None:
    before = time.process_time()
    state = trial(LOOP, language="de")
    assert time.process_time() - before < 10
    assert (state.end, state.truncated, len(state.frames)) == ("running", True, 2000)
    assert "20000 Wechseln von Schritten" in state.error
    assert state.frames[-1].at == pytest.approx(55, abs=1)


def test_texts_of_a_trial_are_in_the_language_of_the_reader() -> None:
    assert trial(RETRY, language="de").frames[0].text == "Schritt Tighten beginnt"


def test_recipe_that_cannot_run_and_wrong_decisions_are_refused() -> None:
    broken = recipe("A B", [transition("A", "B", "actions.none.done")])
    with pytest.raises(Refused, match="none"):
        trial(broken)
    question = trial(RETRY).questions[0]
    with pytest.raises(Refused, match="times must be seconds"):
        trial(RETRY, [replace(answered(question, "ok"), after=-1)])


HELD = recipe(
    "Tighten Check Done",
    [transition("Tighten", "Check"), transition("Check", "Done", "ok and job.parameters.kind == 'X1'")],
    [
        action("tighten", "Tighten", type_id="tighten.v1", interventions=["retry", "skip"]),
        action("check", "Check", type_id="check.v1", interaction="pull_event", timeout_seconds=0),
    ],
)
HELD["steps"][1]["interventions"] = ["complete", "force"]


def act(state: Trial, kind: str, after: float = 1) -> TrialIntervention:
    """Return what a person could do, as the trial offers it."""
    (found,) = [item for item in state.interventions if item.kind == kind]
    return replace(found, after=after)


def test_person_retries_a_held_failure_in_a_trial() -> None:
    state, replies = play(HELD, ("failed", {}))
    assert (state.questions, state.end) == ((), "running")
    assert [(item.kind, item.action, item.at) for item in state.interventions] == [
        ("retry", "tighten", 1),
        ("skip", "tighten", 1),
        ("abort", "", 1),
    ]
    again = act(state, "retry", after=2)
    state = trial(HELD, replies, acts=[again])
    assert [(item.action, item.attempt, item.at) for item in state.questions] == [("tighten", 2, 3)]
    assert "a person: retry tighten of Tighten" in [frame.text for frame in state.frames]


RATED = recipe(
    "Tighten Good Bad",
    [transition("Tighten", "Good", "actions.tighten.result.torque > 80"), transition("Tighten", "Bad", priority=1)],
    [action("tighten", "Tighten", type_id="tighten.v1", interventions=["skip"])],
)


def test_skip_brings_the_result_that_conditions_ask_for() -> None:
    """Only a script could bring the result of a skipped action."""
    state, replies = play(RATED, ("failed", {}))
    assert [(field.name, field.kind) for field in state.results["tighten"]] == [("torque", "number")]
    skip = act(state, "skip")
    assert trial(RATED, replies, acts=[skip]).steps == ("Tighten", "Bad")
    rated = trial(RATED, replies, acts=[replace(skip, data={"torque": 85})])
    assert rated.steps == ("Tighten", "Good")
    assert rated.script["timeline"][0]["intervene"]["data"] == {"torque": 85}


def test_skip_of_an_open_command_answers_its_question() -> None:
    state = trial(HELD)
    skip = act(state, "skip")
    state = trial(HELD, acts=[skip])
    assert [(item.kind, item.action, item.at) for item in state.questions] == [("event", "check", 1)]
    complete = act(state, "complete")
    state = trial(HELD, acts=[skip, complete], parameters={"kind": "X1", "ok": True})
    assert (state.questions, state.end, state.steps[-1]) == ((), "completed", "Done")
    script = {"equipment": [{"type_id": "tighten.v1", "nth": 1, "result": "none"}]}
    assert state.script["equipment"] == script["equipment"]
    test = RecipeTest(id="t", work_master="WM", script=dict(state.script), end="completed", steps=state.steps)
    assert run_test(test, HELD, "en").reasons == ()


def test_force_and_abort_end_what_was_asked() -> None:
    state, replies = play(HELD, ("ok", {}))
    assert {item.kind for item in state.interventions} == {"complete", "force", "abort"}
    forced = trial(HELD, replies, acts=[act(state, "force")])
    assert (forced.questions, forced.end, forced.steps[-1]) == ((), "completed", "Done")
    aborted = trial(HELD, replies, acts=[act(state, "abort")])
    assert (aborted.questions, aborted.end, aborted.seconds) == ((), "aborted", 2)


def test_act_of_a_person_without_effect_has_its_reason() -> None:
    state = trial(HELD)
    skip = act(state, "skip", after=5)
    state = trial(HELD, [answered(state.questions[0], "ok", after=1)], acts=[skip])
    assert state.planned == ("skip tighten of Tighten",)
    state = trial(
        HELD,
        [answered(trial(HELD).questions[0], "ok"), answered(state.questions[0], "none")],
        acts=[skip],
    )
    texts = [frame.text for frame in state.frames if frame.kind == "person"]
    assert len(texts) == 1
    assert texts[0].startswith("a person: skip tighten of Tighten, without effect: ")


def test_person_decides_about_an_unknown_outcome_in_a_trial() -> None:
    state, replies = play(HELD, ("unknown", {}))
    kinds = [item.kind for item in state.interventions]
    assert kinds == ["retry", "skip", "resolve done", "resolve failed", "resolve repeat", "abort"]
    state = trial(HELD, replies, acts=[act(state, "resolve done")])
    assert [item.kind for item in state.questions] == ["event"]


def test_order_parameters_of_a_trial_become_those_of_its_test() -> None:
    state, replies = play(HELD, ("ok", {}), ("ok", {"data": {"ok": True}}))
    assert state.end == "running"
    state = trial(HELD, replies, parameters={"kind": "X1"})
    assert (state.end, state.steps[-1]) == ("completed", "Done")
    assert state.script["jobs"] == [{"id": "J1", "at": 0, "parameters": {"kind": "X1"}}]
    test = RecipeTest(id="t", work_master="WM", script=dict(state.script), end="completed", steps=state.steps)
    assert run_test(test, HELD, "en").reasons == ()


def test_trial_names_the_values_that_conditions_ask_for() -> None:
    state, _ = play(HELD, ("ok", {}))
    assert state.parameters == (
        TrialField(name="kind", kind="text", values=("X1",)),
        TrialField(name="ok", kind="flag"),
    )
    assert state.questions[0].fields == (TrialField(name="ok", kind="flag"),)
    (question,) = trial(RETRY, play(RETRY, ("ok", {}))[1]).questions
    assert question.fields == (TrialField(name="ok", kind="flag"),)
    assert "torque" in state.members
