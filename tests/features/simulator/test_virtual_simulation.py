"""Tests of the simulation in virtual time: traces, faults, restarts and the horizon."""

from time import process_time
from typing import Any

from edge.features.simulator.script import Script, parse_script
from edge.features.simulator.virtual_simulation import simulate
from tests.sfc.recipes import action, chain, recipe, transition, wait


def script(**keys: Any) -> Script:
    return parse_script(keys)


def test_trace_has_equipment_commands_and_step_changes() -> None:
    trace = simulate(chain("A B", action("a", "A"), action("b", "B")), Script())
    assert trace.as_json() == {
        "commands": [
            {"t": 0.0, "job": "J1", "action": "a", "type_id": "a.v1", "phase": "start", "attempt": 1},
            {"t": 0.1, "job": "J1", "action": "b", "type_id": "b.v1", "phase": "start", "attempt": 1},
        ],
        "steps": [
            {"t": 0.0, "job": "J1", "step": "A", "active": True},
            {"t": 0.1, "job": "J1", "step": "A", "active": False},
            {"t": 0.1, "job": "J1", "step": "B", "active": True},
        ],
        "final": "completed",
        "final_by_job": {"J1": "completed"},
        "error": None,
        "warnings": [],
        "end": 0.2,
        "waiting": [],
        "verdict_by_job": {"J1": "ok"},
        "interventions": [],
        "possible_interventions": [],
        "until": 0.2,
    }


def test_a_faulty_recipe_is_rejected_with_all_its_faults() -> None:
    trace = simulate({"steps": [{"name": "A", "foo": 1}, {"name": "A"}]}, script(jobs=[{"id": "X"}]))
    assert (trace.final, trace.final_by_job, trace.commands, trace.end) == (
        "rejected_at_load",
        {"X": "rejected_at_load"},
        [],
        None,
    )
    assert trace.error is not None
    assert "unknown key 'foo'" in trace.error
    assert "names 2" in trace.error


def test_a_run_that_does_not_end_is_running_at_the_horizon() -> None:
    trace = simulate(recipe("A B", [transition("A", "B", "never")]), script(horizon=5))
    assert (trace.final, trace.end) == ("running", None)
    trace = simulate(chain("A", action("a", "A", timeout_seconds=100)), script(default={"after": 50}, horizon=5))
    assert trace.final == "running"


def test_worst_end_of_several_jobs_counts_and_errors_name_their_job() -> None:
    keys = {
        "jobs": [{"id": "J1"}, {"id": "J2", "at": 1}],
        "equipment": [{"type_id": "a.v1", "job": "J2", "result": "failed"}],
    }
    trace = simulate(chain("A B", action("a", "A")), script(**keys))
    assert trace.final == "failed"
    assert trace.final_by_job == {"J1": "completed", "J2": "failed"}
    assert trace.error == "J2: action 'a' of step 'A' failed"
    assert trace.end == 1.1


def test_values_precede_starts_and_answers_at_the_same_instant() -> None:
    timeline = [
        {"at": 0, "event": {"type_id": "w.v1"}},
        {"at": 0, "set": {"go": True}},
        {"at": 0.1, "operator": "pause"},
        {"at": 9, "operator": "resume"},
    ]
    data = recipe("A B C", [transition("A", "B", "go"), transition("B", "C")], [wait("w", "A"), action("b", "B")])
    trace = simulate(data, script(timeline=timeline))
    assert [(step["step"], step["t"]) for step in trace.steps if step["active"]] == [("A", 0), ("B", 0), ("C", 9)]


def test_operator_calls_and_events_for_unknown_jobs_are_ignored() -> None:
    timeline = [
        {"at": 0.05, "operator": "abort", "job": "J9"},
        {"at": 0.05, "event": {"type_id": "x", "job": "J9"}},
    ]
    assert simulate(chain("A B", action("a", "A")), script(timeline=timeline)).final == "completed"


def test_equipment_may_answer_never_or_many_times() -> None:
    data = chain("A B C", action("a", "A"), action("b", "B"))
    assert simulate(data, script(default={"times": 0})).final == "failed"
    assert simulate(data, script(default={"times": 5, "repeat_gap": 0.01})).final == "completed"


def test_restart_reloads_the_job_with_its_pinned_recipe_from_the_store() -> None:
    timeline = [{"at": t / 4, "system": "restart"} for t in range(40)]
    data = recipe("A B C", [transition("A", "B", "x"), transition("B", "C", "steps.B.T >= 3s")], [wait("w", "A")])
    trace = simulate(data, script(timeline=[*timeline, {"at": 2, "event": {"type_id": "w.v1", "data": {"x": True}}}]))
    assert (trace.final, trace.end) == ("completed", 5)


def test_simulation_of_500_steps_takes_less_than_5_seconds() -> None:
    data = chain(" ".join(f"S{n}" for n in range(501)), *(action(f"a{n}", f"S{n}") for n in range(500)))
    began = process_time()
    trace = simulate(data, Script())
    assert trace.final == "completed"
    assert len(trace.commands) == 500
    assert process_time() - began < 5


COMMAND: dict[str, Any] = {
    "name": "a",
    "step": "A",
    "qualifier": "N",
    "interaction": "push_command",
    "type_id": "a.v1",
    "timeout_seconds": 5,
}


def waiting_recipe(condition: str) -> dict[str, Any]:
    ends = {"source": "A", "target": "B", "condition": condition}
    return {"steps": [{"name": "A", "initial": True}, {"name": "B"}], "transitions": [ends], "actions": [COMMAND]}


def test_step_of_a_job_without_an_end_has_what_it_waits_for() -> None:
    trace = simulate(waiting_recipe("torque_ok"), parse_script({}))
    assert trace.final == "running"
    assert trace.waiting == [
        {"job": "J1", "step": "A", "waits_for": ["A → B [torque_ok] waits for torque_ok: torque_ok: no value yet"]}
    ]


def test_script_answers_that_the_outcome_is_unknown() -> None:
    script = parse_script({"default": {"result": "unknown", "error": "power lost"}})
    handled = simulate(waiting_recipe("actions.a.unknown"), script)
    assert (handled.final, handled.waiting) == ("completed", [])
    waiting = simulate(waiting_recipe("always"), script)
    assert waiting.final == "running"
    assert any("power lost" in text for text in waiting.waiting[0]["waits_for"])


def test_parameters_of_the_order_reach_conditions() -> None:
    data = recipe("A B C", [transition("A", "B", "job.parameters.kind == 'X1' and torque > 5"), transition("A", "C")])
    jobs = [{"id": "J1", "parameters": {"kind": "X1", "torque": 8}}, {"id": "J2", "at": 1}]
    trace = simulate(data, script(jobs=jobs))
    entered = [(step["job"], step["step"]) for step in trace.steps if step["active"]]
    assert entered == [("J1", "A"), ("J1", "B"), ("J2", "A"), ("J2", "C")]


HELD = recipe(
    "A B",
    [transition("A", "B", "always")],
    [COMMAND | {"interventions": ["retry", "skip"]}],
)


def test_job_that_waits_for_a_person_lists_the_possible_interventions() -> None:
    trace = simulate(HELD, script(default={"result": "failed"}))
    assert (trace.final, trace.until) == ("running", 0.1)
    possible = [(item["job"], item["kind"], item["action"], item["step"]) for item in trace.possible_interventions]
    assert possible == [("J1", "retry", "a", "A"), ("J1", "skip", "a", "A")]
    entry = {"at": 3, "intervene": {"kind": "retry", "action": "a"}}
    rule = {"type_id": "a.v1", "nth": 1, "result": "failed"}
    trace = simulate(HELD, script(equipment=[rule], timeline=[entry]))
    assert (trace.final, trace.end, trace.possible_interventions) == ("completed", 3.1, [])
    assert [(item["t"], item["kind"], item["ignored"]) for item in trace.interventions] == [(3, "retry", "")]


def test_intervention_without_effect_has_its_reason() -> None:
    timeline = [{"at": 0.05, "intervene": {"kind": "complete", "step": "A"}}]
    (decision,) = simulate(HELD, script(timeline=timeline)).interventions
    assert decision["ignored"] == "the recipe does not allow complete for step 'A'"


def test_person_resolves_an_unknown_outcome() -> None:
    unknown = script(default={"result": "unknown"})
    kinds = [item["kind"] for item in simulate(waiting_recipe("always"), unknown).possible_interventions]
    assert kinds == ["resolve done", "resolve failed", "resolve repeat"]
    entry = {"at": 2, "resolve": {"action": "a", "resolution": "done", "data": {"torque": 5}}}
    trace = simulate(waiting_recipe("torque == 5"), script(default={"result": "unknown"}, timeline=[entry]))
    assert (trace.final, trace.end) == ("completed", 2)
