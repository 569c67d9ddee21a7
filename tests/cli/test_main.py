"""The command `edge` starts fast, imports only the called command, and reports errors without a traceback."""

import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import edge
from edge.app.features import features
from edge.cli import CommandTable, main
from edge.cli import commands as commands_of_edge
from edge.foundation.errors import Defect, EdgeError, Refused, SettingsError, Unavailable
from tests.cli.reference import PAGE, commands, heading, section

EVERY_COMMAND = list(commands(click.Context(main, info_name="edge")))[1:]


def test_help_lists_every_command_without_loading_one() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom edge.cli import commands, main\n"
        "output = CliRunner().invoke(main, ['--help']).output\n"
        "assert all(name in output for name in commands()), output\n"
        "vendors = {'asyncua', 'redis', 'paho', 'uvloop', 'rich', 'structlog'}\n"
        "print(sorted(vendors & sys.modules.keys()))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_every_file_of_the_folder_of_commands_defines_one_of_the_table() -> None:
    of_features = {name for feature in features() for name in feature.commands}
    entries = {path.stem for path in Path(edge.cli.__file__).parent.iterdir() if not path.name.startswith("__")}
    modules = {noun.module for name, noun in commands_of_edge().items() if name not in of_features}
    assert entries == {module.split(".")[2] for module in modules} | {"terminal"}


@pytest.mark.parametrize("name", commands_of_edge())
def test_help_of_each_command_begins_with_its_summary_in_the_table(name: str) -> None:
    answer = CliRunner().invoke(main, [name, "--help"])
    assert answer.exit_code == 0
    assert commands_of_edge()[name].help in " ".join(answer.output.split())


def test_an_unknown_command_is_reported() -> None:
    answer = CliRunner().invoke(main, ["rnu"])
    assert answer.exit_code == 2
    assert "No such command 'rnu'. Did you mean 'run'?" in answer.output


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [(["job", "list"], "jobs"), (["alrams", "list"], "alarms"), (["jobs", "lst"], "list"), (["jobs", "simulat"], "")],
)
def test_a_mistyped_noun_or_verb_is_answered_with_the_name_that_is_meant(mistyped: list[str], meant: str) -> None:
    answer = CliRunner().invoke(main, mistyped)
    assert answer.exit_code == 2
    assert f"'{meant}'" in answer.output if meant else "Did you mean" not in answer.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["jobs", "list", "--state", "Runing"],
            (
                "'Runing' is not one of NotAllowedToStart, AllowedToStart, Running, Interrupted, Ended, Aborted. "
                "Did you mean 'Running'?"
            ),
        ),
        (["locks", "list", "jbo"], "'jbo' is not one of equipment, station, job, operation. Did you mean 'job'?"),
        (["operations", "schedule", "bakup"], "Did you mean 'backup'?"),
        (["station", "set", "workmster", "a"], "Did you mean 'workmaster'?"),
    ],
)
def test_a_mistyped_argument_is_answered_with_the_word_that_is_meant(arguments: list[str], reason: str) -> None:
    """States were listed in lower case, unlike anywhere else, and no word was suggested."""
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 2
    assert reason in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["jobs", "list", "--json", "--settings", "/nowhere/edge.toml"], "invalid_settings"),
        (["jobs", "show", "--json"], "invalid_arguments"),
        (["jobs", "lst", "--json"], "invalid_arguments"),
        (["--vresion", "--json"], "invalid_arguments"),
    ],
)
def test_an_error_of_a_command_with_json_is_json(arguments: list[str], kind: str) -> None:
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 2
    assert answer.stderr == ""
    error = json.loads(answer.stdout)
    assert error.keys() == {"kind", "reason", "advice"}
    assert error["kind"] == kind
    assert error["reason"]


def test_json_behind_two_dashes_belongs_to_another_program() -> None:
    answer = CliRunner().invoke(main, ["locks", "hold", "nothing", "id", "--", "program", "--json"])
    assert answer.exit_code == 2
    assert answer.stdout == ""
    assert "Invalid value" in answer.stderr


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"microdcs-edge {edge.__version__}\n"


def test_the_package_runs_as_a_module() -> None:
    output = subprocess.check_output([sys.executable, "-m", "edge", "--version"], text=True)
    assert output == f"microdcs-edge {edge.__version__}\n"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SettingsError(["redis.ulr: there is no such key", "mqtt.url: not a URL"], "mend them"), 2),
        (Unavailable("the broker does not answer", "is it running?"), 1),
        (Refused("recipe", "step 3 leads nowhere"), 1),
        (Defect("a state that cannot be"), 1),
    ],
)
def test_expected_error_is_printed_with_advice_and_exit_status(error: EdgeError, status: int) -> None:
    @click.group(cls=CommandTable, invoke_without_command=True)
    def failing() -> None:
        raise error

    answer = CliRunner().invoke(failing, [])
    assert answer.exit_code == status
    assert answer.stdout == ""
    assert error.message in answer.stderr
    assert error.advice in answer.stderr
    assert "Traceback" not in answer.stderr


def test_permission_error_advises_to_use_root() -> None:
    @click.group(cls=CommandTable, invoke_without_command=True)
    def failing() -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/etc/microdcs-edge/edge.toml")

    answer = CliRunner().invoke(failing, [])
    assert answer.exit_code == 1
    assert answer.stderr == "edge: /etc/microdcs-edge/edge.toml: Permission denied\nedge: Call it as root (sudo).\n"


@pytest.mark.parametrize("context", EVERY_COMMAND, ids=lambda context: context.command_path)
def test_the_reference_page_equals_the_help_of_each_command(context: click.Context) -> None:
    printed = section(context)
    assert printed in PAGE.read_text(encoding="utf-8"), f"in {PAGE.name} this section belongs:\n\n{printed}"


def test_reference_page_lists_the_commands_in_their_order() -> None:
    found = re.findall(r"^##+ edge .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found == [heading(context) for context in EVERY_COMMAND]


@pytest.mark.parametrize("context", EVERY_COMMAND, ids=lambda context: context.command_path)
def test_help_of_each_command_has_an_example(context: click.Context) -> None:
    if not isinstance(context.command, click.Group):
        assert re.match(rf"Example: {context.command_path}\b", context.command.epilog or "")


def test_commands_that_end_with_status_3_are_in_the_table_of_the_page() -> None:
    """`edge simulate --strict` ends with 3; the table had `edge station diff` only."""
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| 3 |"))
    ending = [
        context.command_path
        for context in EVERY_COMMAND
        if re.search(r"(?:status is|--strict) 3\b", " ".join((context.command.help or "").split()))
    ]
    assert len(ending) > 1
    assert [path for path in ending if f"`{path}" not in row] == []


@pytest.mark.parametrize("context", EVERY_COMMAND, ids=lambda context: context.command_path)
def test_help_of_each_command_names_every_choice_of_its_arguments(context: click.Context) -> None:
    """The help of `edge station set` had no `recipetest`."""
    words = {word.rstrip(".") for word in re.findall(r"[\w.-]+", context.get_help())}
    for argument in context.command.params:
        if isinstance(argument, click.Argument) and isinstance(argument.type, click.Choice):
            assert set(argument.type.choices) - words == set()
