"""Tests of the views of the demo: on a terminal and without one."""

import io
import re

import pytest
from rich.console import Console

from edge.features.simulator.demo_view import LiveView, PlainView, view_on
from edge.features.simulator.observed_job import ObservedJob
from tests.features.simulator.test_observed_job import RECIPE, answer, command, see_a_good_run


@pytest.fixture
def job() -> ObservedJob:
    return ObservedJob("station-1", "J1", RECIPE)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None, _environ={"TERM": "xterm"})


def output_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())


def test_terminal_shows_a_table_and_a_pipe_gets_lines() -> None:
    assert isinstance(view_on(terminal()), LiveView)
    assert isinstance(view_on(Console(file=io.StringIO())), PlainView)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(view_on(dumb), PlainView)


def test_plain_lines_report_each_log_entry_once(job: ObservedJob) -> None:
    console = Console(file=io.StringIO(), width=20)
    view = view_on(console)
    view.title("the demo")
    view.report("broker", "mosquitto [red]at[/red] mqtt://127.0.0.1:1883")
    with view.follow(job):
        see_a_good_run(job)
        view.refresh(job)
        view.refresh(job)
    view.quote("/0:Objects/4:Machines")
    view.verdict("DEMO OK")
    lines = output_of(console).splitlines()
    assert lines[0] == "the demo"
    assert lines[1].endswith("  broker      mosquitto [red]at[/red] mqtt://127.0.0.1:1883")
    assert [line.split()[1] for line in lines[2:-2]] == [
        "step",
        "command",
        "state",
        "answer",
        "step",
        "event",
        "state",
    ]
    assert lines[-2:] == ["           /0:Objects/4:Machines", "DEMO OK"]


def test_table_shows_commands_and_answers_in_80_columns(job: ObservedJob) -> None:
    console = terminal()
    view = view_on(console)
    with view.follow(job):
        see_a_good_run(job)
        view.refresh(job)
    picture = output_of(console)[-1000:]
    assert "J1  Ended (Completed)" in picture
    (tighten,) = (line for line in picture.splitlines() if "Tighten" in line)
    assert tighten.split() == ["│", "✓", "Tighten", "tighten", "85Nm", "→", "wrench", "torque", "85.2", "600", "│"]
    (look,) = (line for line in picture.splitlines() if "Look" in line)
    assert look.split() == ["│", "✓", "Look", "look", "←", "camera", "pass", "yes", "│"]
    assert max(len(line) for line in picture.splitlines()) <= 80


def test_table_marks_missing_and_failed_answers(job: ObservedJob) -> None:
    console = terminal()
    with view_on(console).follow(job):
        job.take_equipment_message("wrench", "commands", command(), 1)
        job.take_equipment_message("wrench", "answers", answer(mdcserrorkind="slipped"), 2)
    picture = " ".join(output_of(console)[-1000:].split())
    assert "✗ Tighten tighten 85Nm → wrench slipped" in picture
    assert "· Look" in picture


def test_parts_and_quotes_stay_on_the_screen() -> None:
    console = terminal()
    view = view_on(console)
    view.title("the demo")
    view.report("gateway", "edge run", "OPC UA at opc.tcp://127.0.0.1:4840")
    view.quote("/0:Objects")
    view.verdict("DEMO OK")
    assert [line for line in output_of(console).splitlines() if line] == [
        "  the demo",
        "  gateway     edge run",
        "              OPC UA at opc.tcp://127.0.0.1:4840",
        "  /0:Objects",
        "DEMO OK",
    ]
