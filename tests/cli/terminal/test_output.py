"""Text output contains no control characters, whatever the origin of the text."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from edge.cli import main
from edge.cli.jobs.tables import report
from edge.cli.terminal.output import print_text, printable
from edge.model.isa95 import JobOrder
from edge.model.job_state import JobState, JobStatus
from edge.sfc.advance import advance
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced, Start
from edge.station.stored_job import StoredJob
from edge.store.jobs import Job
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate
from tests.sfc.recipes import action, chain, net_of

TITLE = "\x1b]0;owned\x07"
"""Sets the title of a terminal; a pipe is given it too, where click takes colours out."""


def printed(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert not isinstance(result.exception, Exception)
    return result.output


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(chain(f"A{TITLE} B", action(f"a{TITLE}", f"A{TITLE}", type_id=f"t{TITLE}"))))
    return file


def test_control_characters_become_blanks_and_line_breaks_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert printable("a\x1b[2J\r\n\x9b\u202eb") == "a [2J    b"
    print_text("one\x1b\ntwo\x07")
    assert capsys.readouterr().out == "one \ntwo \n"


@pytest.mark.parametrize("command", [("simulate",), ("check", "recipe"), ("draw",)])
def test_names_in_a_recipe_are_escaped(command: tuple[str, ...], recipe: Path) -> None:
    shown = printed(*command, recipe)
    assert "\x1b]" not in shown
    assert "\x07" not in shown


def test_names_in_a_script_are_escaped(recipe: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({f"x{TITLE}": 1}))
    assert "\x1b" not in printed("simulate", recipe, "--script", script)


def test_name_of_a_rejected_application_is_escaped(tmp_path: Path) -> None:
    settings = tmp_path / "edge.toml"
    places = {"pki": tmp_path, "trusted": tmp_path / "trusted", "users_file": tmp_path / "users"}
    settings.write_text("\n".join(["[opcua]", *(f'{key} = "{place}"' for key, place in places.items())]))
    certificate = certificates.load_or_make(tmp_path / "stranger", f"urn:stranger{TITLE}", ("here",)).certificate
    add_certificate(certificate, tmp_path / "rejected")
    shown = printed("opcua", "list", "--settings", settings)
    assert "rejected" in shown
    assert "\x1b" not in shown


def test_names_in_the_recipe_of_a_job_are_escaped() -> None:
    net = net_of(chain(f"A{TITLE} B", action(f"a{TITLE}", f"A{TITLE}")))
    advanced = advance(net, new_run("J1", "station-1", "r", {}), Start(), 0)
    assert isinstance(advanced, Advanced)
    job = Job(
        order=JobOrder(job_order_id="J1"),
        scope="station-1",
        status=JobStatus(JobState.RUNNING),
        correlation_id="c",
        stored_at=0,
    )
    open_console = Console(width=200, highlight=False, markup=False)
    with open_console.capture() as capture:
        for part in report(StoredJob(job, advanced.run, net, None), 0):
            open_console.print(part)
    assert "owned" in capture.get()
    assert "\x1b" not in capture.get()
