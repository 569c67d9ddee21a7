"""The marks of a run show its state at an instant."""

from typing import Any

import pytest

from edge.drawing.marks import SYMBOLS, Marks, duration, marks_of
from edge.sfc.advance import advance
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Run, new_run
from edge.sfc.signal import Abort, Advanced, Answer, Pause, Signal, Start, Stop

RECIPE: dict[str, Any] = {
    "steps": [{"name": "Clamp", "initial": True}, {"name": "Tighten"}, {"name": "End"}],
    "transitions": [
        {"source": "Clamp", "target": "Tighten", "condition": "always"},
        {"source": "Tighten", "target": "End", "condition": "torque_ok"},
    ],
    "actions": [
        {
            "name": "clamp",
            "step": "Clamp",
            "qualifier": "S",
            "interaction": "push_command",
            "type_id": "com.example.clamp.v1",
        },
        {
            "name": "tighten",
            "step": "Tighten",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": "com.example.tighten.v1",
            "timeout_seconds": 60,
        },
    ],
}


def run_of(*signals: tuple[int, Signal]) -> tuple[Net, Run]:
    """Run a job through these signals; answers without an id answer the last command."""
    net = compile_recipe(RECIPE)
    assert isinstance(net, Net)
    run = new_run("J1", "line-4", "1", {})
    command = ""
    for now, signal in signals:
        given = Answer(command, ok=True) if isinstance(signal, Answer) else signal
        advanced = advance(net, run, given, now)
        assert isinstance(advanced, Advanced)
        run = advanced.run
        command = advanced.requests[-1].command_id if advanced.requests else command
    return net, run


def marks_at(now: int, *signals: tuple[int, Signal]) -> Marks:
    return marks_of(*run_of(*signals), now)


ANSWER = Answer("", ok=True)


def test_run_that_has_not_started_has_no_marks() -> None:
    marks = marks_at(5)
    assert str(marks.title) == "job J1 in line-4: not started"
    assert (marks.steps, marks.actions) == ({}, {})


def test_active_steps_show_their_time_and_inactive_steps_their_last() -> None:
    marks = marks_at(12_000, (0, Start()), (2_000, ANSWER))
    assert str(marks.title) == "job J1 in line-4: running after 12.0 s"
    assert {name: (mark.active, mark.elapsed_ms) for name, mark in marks.steps.items()} == {
        "Clamp": (False, 2_000),
        "Tighten": (True, 10_000),
    }


@pytest.mark.parametrize("end", [Abort("enough"), Stop("enough")])
def test_step_of_an_ended_run_is_not_drawn_as_active(end: Signal) -> None:
    marks = marks_at(12_000, (0, Start()), (2_000, ANSWER), (9_000, end))
    assert {name: (mark.active, mark.elapsed_ms) for name, mark in marks.steps.items()} == {
        "Clamp": (False, 2_000),
        "Tighten": (False, 7_000),
    }


def test_actions_show_their_state_time_and_stored_qualifier() -> None:
    marks = marks_at(12_000, (0, Start()), (2_000, ANSWER))
    clamp, tighten = marks.actions[0], marks.actions[1]
    assert (clamp.state, clamp.elapsed_ms, clamp.stored) == (ActionState.COMPLETED, 2_000, True)
    assert (tighten.state, tighten.elapsed_ms, tighten.stored) == (ActionState.DISPATCHED, 10_000, False)


def test_waiting_reasons_are_listed() -> None:
    text = "\n".join(map(str, marks_at(12_000, (0, Start()), (2_000, ANSWER)).waiting))
    assert "tighten" in text
    assert "torque_ok" in text


def test_paused_run_has_stopped_clocks() -> None:
    marks = marks_at(90_000, (0, Start()), (2_000, ANSWER), (5_000, Pause()))
    assert str(marks.title) == "job J1 in line-4: paused after 5.0 s"
    assert marks.steps["Tighten"].elapsed_ms == 3_000


def test_ended_run_has_stopped_clocks() -> None:
    marks = marks_at(90_000, (0, Start()), (2_000, ANSWER), (5_000, Abort("enough")))
    assert str(marks.title) == "job J1 in line-4: aborted after 5.0 s: enough"
    assert tuple(map(str, marks.waiting)) == ()
    assert all(mark.elapsed_ms <= 5_000 for mark in marks.steps.values())
    assert not any(mark.stored for mark in marks.actions.values())


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0.0 s"), (12_340, "12.3 s"), (100_000, "1 min 40 s"), (3_600_000, "1 h 00 min"), (7_260_000, "2 h 01 min")],
)
def test_durations_are_formatted_with_units(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


def test_every_state_has_a_unique_symbol() -> None:
    assert SYMBOLS.keys() == set(ActionState)
    assert len(set(SYMBOLS.values())) == len(SYMBOLS)
