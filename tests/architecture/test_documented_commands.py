"""The commands of the pages exist with their options and arguments; a test executes each page, or a reason is named."""

import re
from pathlib import Path

import click
import pytest

from edge.cli import main
from tests.architecture.sources import ROOT, project_files, text
from tests.outside.page_commands import PageCommand, other_programs, page_commands

PAGES = [path for path in project_files() if path.suffix == ".md" and path.name != "cli.md"]
"""cli.md is written from the commands."""

EXECUTED = {
    "docs/how-to/backup.md": "tests/outside/test_page_commands.py",
    "docs/how-to/draw-a-recipe.md": "tests/outside/test_page_commands.py",
    "docs/how-to/first-alarm.md": "tests/outside/test_first_alarm.py",
    "docs/how-to/add-a-feature.md": "tests/app/test_features_added.py",
    "docs/how-to/first-flow.md": "tests/outside/test_shell_examples.py",
    "docs/how-to/first-job.md": "tests/system/test_first_job.py",
    "docs/how-to/first-recipe.md": "tests/outside/test_first_recipe.py",
    "docs/how-to/fleet.md": "tests/outside/test_page_commands.py",
    "docs/how-to/hardening.md": "tests/outside/test_page_commands.py",
    "docs/how-to/install.md": "tests/outside/test_page_commands.py",
    "docs/how-to/locks.md": "tests/outside/test_page_commands.py",
    "docs/how-to/check-a-recipe.md": "tests/features/recipes/cli/test_check.py",
    "docs/how-to/test-a-recipe.md": "tests/features/recipes/cli/test_test.py",
    "docs/how-to/release-a-recipe.md": "tests/features/recipes/cli/test_revisions.py",
    "docs/how-to/maintenance.md": "tests/outside/test_page_commands.py",
    "docs/how-to/monitoring.md": "tests/outside/test_page_commands.py",
    "docs/how-to/opcua-clients.md": "tests/outside/test_page_commands.py",
    "docs/how-to/operations.md": "tests/outside/test_page_commands.py",
    "docs/how-to/run-workers.md": "tests/outside/test_page_commands.py",
    "docs/how-to/samples-of-the-gateway.md": "tests/outside/test_page_commands.py",
    "docs/how-to/station-files.md": "tests/outside/test_page_commands.py",
    "docs/how-to/store-repair.md": "tests/outside/test_page_commands.py",
    "docs/how-to/traces.md": "tests/outside/test_page_commands.py",
    "docs/how-to/troubleshooting.md": "tests/outside/test_page_commands.py",
    "docs/how-to/two-machines-and-a-witness.md": "tests/system/test_line.py",
    "docs/how-to/upgrade.md": "tests/outside/test_page_commands.py",
    "docs/how-to/users.md": "tests/outside/test_page_commands.py",
    "docs/how-to/watch-a-job.md": "tests/outside/test_page_commands.py",
}
"""Page with whole commands -> the test that executes them."""

NOT_EXECUTED = {
    "docs/how-to/add-equipment.md": "its kind is that of tests/features/lamps/test_equipment.py",
    "docs/how-to/hardware.md": "writes files of the machine; tests/features/admin/test_board_files.py uses a folder",
    "docs/how-to/intervene.md": "the job needs a failed action: tests/outside/test_interventions.py",
    "docs/how-to/results.md": "needs jobs of the past: tests/features/archive/test_commands.py",
    "docs/how-to/opcua-certificates.md": "needs an authority: tests/outside/test_trust.py",
    "docs/how-to/opcua-equipment.md": "needs a controller and a camera: tests/outside/test_opcua_devices.py",
    "docs/how-to/operator-prompts.md": "the job needs prompts: tests/outside/test_prompts.py",
    "docs/how-to/openprotocol-equipment.md": "needs a controller: tests/outside/test_openprotocol_gateways.py",
    "docs/how-to/plcopen.md": "needs a file of a PLC: tests/features/recipes/cli/test_plcopen.py",
    "docs/how-to/raspberry-pi.md": "needs the board; its steps are those of first-job.md",
    "docs/how-to/samples-from-mqtt.md": "tests/outside/test_shell_examples.py calls all but check and doctor",
    "docs/how-to/samples-from-opcua.md": "needs a server: tests/outside/test_encrypted_source.py",
    "docs/how-to/samples-from-redis.md": "needs a second Redis: tests/outside/test_mirrors.py",
    "docs/how-to/samples-of-jobs.md": "needs hours of samples: tests/outside/test_telemetry.py",
    "docs/how-to/station-page.md": "asks for a password: tests/outside/test_users.py",
    "docs/reference/equipment.md": "needs a stop that is not confirmed: tests/outside/test_unconfirmed_stops.py",
    "docs/reference/flows.md": "needs a running flow: tests/outside/test_flows.py",
    "docs/reference/settings.md": "reads the settings of an installed gateway: tests/cli/test_files.py",
    "docs/start.md": "both run without end: tests/features/simulator/cli/test_demo.py, tests/cli/test_run.py",
}
"""Page with whole commands -> why no test executes them as they stand."""

_SHELL = "tests/outside/test_shell_examples.py"
OTHER_PROGRAMS = {
    "curl": {
        "docs/how-to/add-a-feature.md": "tests/app/test_features_added.py asks the same over HTTP",
        "docs/how-to/monitoring.md": _SHELL,
        "docs/how-to/release-a-recipe.md": _SHELL,
        "docs/reference/http-api.md": _SHELL,
    },
    "mosquitto_passwd": {"docs/how-to/two-machines-and-a-witness.md": "tests/system/test_line.py"},
    "mosquitto_pub": {
        "docs/how-to/first-alarm.md": "tests/outside/test_first_alarm.py",
        "docs/how-to/first-flow.md": _SHELL,
        "docs/how-to/first-job.md": "tests/system/test_first_job.py",
        "docs/how-to/samples-from-mqtt.md": _SHELL,
        "docs/reference/equipment.md": "tests/outside/test_mosquitto_examples.py",
        "docs/reference/northbound.md": "tests/outside/test_mosquitto_examples.py",
    },
    "mosquitto_sub": {
        "docs/how-to/first-flow.md": _SHELL,
        "docs/how-to/first-job.md": "tests/system/test_first_job.py",
        "docs/reference/equipment.md": "tests/outside/test_mosquitto_examples.py",
    },
    "nft": {"docs/how-to/hardening.md": "changes the firewall of the machine: tests/system/test_line.py loads a table"},
    "openssl": {
        "docs/how-to/opcua-equipment.md": "tests/outside/test_encrypted_source.py",
        "docs/how-to/two-machines-and-a-witness.md": "tests/system/test_line.py",
    },
    "pip": {"docs/how-to/write-a-node-kind.md": "tests/features/flows/test_plugins_package.py"},
    "python": {
        "docs/how-to/add-a-feature.md": "tests/app/test_features_added.py",
        "docs/how-to/first-order.md": "tests/outside/test_first_order.py",
    },
    "redis-cli": {"docs/how-to/samples-from-redis.md": "tests/outside/test_mirrors.py"},
}
"""Program of others -> page with a command of it -> the test that executes it, or why no test does so as it stands.

Commands of systemd, apt and coreutils belong to an installed machine: tests/system calls those of the first job and of
a line on machines that boot.
"""

_OF_THE_EXAMPLE = "edge has no command shifts"
"""The page `add-a-feature` writes this command; its test calls it in a copy."""
_PLACEHOLDER = re.compile(r"[A-Z_]+|.*[…<>].*|\.\.\.")


def fault(command: PageCommand) -> str | None:
    """Return what the product does not know of a command; None when it can be called."""
    words, context = list(command.words), click.Context(main, info_name="edge")
    arguments: list[str] = []
    given: set[str | None] = set()
    while words:
        word = words.pop(0)
        if word == "--":
            arguments += words
            break
        if word.startswith("-") and word != "-":
            name, has_value, _ = word.partition("=")
            option = _option(context.command, name)
            if option is None:
                return f"{context.command_path} has no option {name}"
            given.add(option.name)
            if not has_value and not option.is_flag and not option.count:
                words = words[option.nargs :]
        elif not isinstance(context.command, click.Group):
            arguments.append(word)
        elif _PLACEHOLDER.fullmatch(word):
            return None
        else:
            commands = [(item, context.command.get_command(context, item)) for item in word.split("|")]
            if unknown := [item for item, found in commands if found is None]:
                return f"{context.command_path} has no command {unknown[0]}"
            name, found = commands[-1]
            context = click.Context(found or main, info_name=name, parent=context)
    return _fault_of_arguments(context, arguments, given, is_whole=command.is_whole)


def _option(command: click.Command, name: str) -> click.Option | None:
    if name in {"-h", "--help"}:
        return click.Option([name], is_flag=True)
    options = (param for param in command.params if isinstance(param, click.Option))
    return next((option for option in options if name in (*option.opts, *option.secondary_opts)), None)


def _fault_of_arguments(
    context: click.Context, arguments: list[str], given: set[str | None], *, is_whole: bool
) -> str | None:
    command = context.command
    accepted = [param for param in command.params if isinstance(param, click.Argument)]
    if all(param.nargs > 0 for param in accepted) and len(arguments) > sum(param.nargs for param in accepted):
        return f"{context.command_path} does not take {arguments[-1]}"
    if not is_whole or given & {"h", "help"}:
        return None
    if isinstance(command, click.Group) and not command.invoke_without_command:
        return f"{context.command_path} needs a command"
    if len(arguments) < sum(max(param.nargs, 1) for param in accepted if param.required):
        return f"{context.command_path} needs more arguments"
    required = {param.name for param in command.params if isinstance(param, click.Option) and param.required}
    return f"{context.command_path} needs {sorted(map(str, required - given))}" if required - given else None


def test_commands_of_pages_exist_with_their_options() -> None:
    found = [(str(page), command) for page in PAGES for command in page_commands(text(page))]
    faults = [(page, " ".join(command.words), fault(command)) for page, command in found]
    assert [row for row in faults if row[2] and row[2] != _OF_THE_EXAMPLE] == []
    assert len(found) > 500


def test_examples_of_the_reference_can_be_called() -> None:
    """The page is written from the help, so that its commands exist; its examples are typed by hand."""
    examples = re.findall(r"^Example: `(.*)`$", text(Path("docs/reference/cli.md")), re.MULTILINE)
    commands = [command for example in examples for command in page_commands(f"    {example}")]
    assert [(" ".join(command.words), reason) for command in commands if (reason := fault(command))] == []
    assert len(commands) >= len(examples) > 150


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("    edge jobs nope", "edge jobs has no command nope"),
        ("    sudo edge jobs list --stat Running", "edge jobs list has no option --stat"),
        ("    edge jobs retry J1 tighten", "edge jobs retry needs ['reason']"),
        ("    edge jobs", "edge jobs needs a command"),
        ("```sh\nedge jobs show > file\n```", "edge jobs show needs more arguments"),
        ("    edge jobs show J1 J2", "edge jobs show does not take J2"),
        ("The command `edge doctors` does not exist.", "edge has no command doctors"),
        ("    $ .venv/bin/edge jobs why J1 | less", None),
        ("`edge jobs store|start` and `edge jobs resolve JOB ACTION`", None),
        ('    edge locks hold job J1 --reason "inspected" -- sleep --help', None),
        ("```toml\nedge jobs nope\n```", None),
    ],
)
def test_fault_in_the_command_of_a_page_is_found(page: str, expected: str | None) -> None:
    commands = list(page_commands(page))
    assert next(filter(None, map(fault, commands)), None) == expected


def test_commands_of_each_page_are_executed_or_a_reason_is_named() -> None:
    shown = {str(page) for page in PAGES if any(command.is_whole for command in page_commands(text(page)))}
    assert shown == EXECUTED.keys() | NOT_EXECUTED.keys(), "list the page in EXECUTED or NOT_EXECUTED"
    assert EXECUTED.keys() & NOT_EXECUTED.keys() == set()


@pytest.mark.parametrize("page", EXECUTED)
def test_test_of_a_page_reads_the_page(page: str) -> None:
    assert Path(page).stem in text(Path(EXECUTED[page]))


def test_commands_of_other_programs_are_executed_or_a_reason_is_named() -> None:
    shown = {
        program: {str(page) for page in PAGES if any(program == name for name in other_programs(text(page)))}
        for program in OTHER_PROGRAMS
    }
    assert shown == {program: rows.keys() for program, rows in OTHER_PROGRAMS.items()}


def test_reasons_name_existing_tests() -> None:
    others = [reason for rows in OTHER_PROGRAMS.values() for reason in rows.values()]
    named = {
        path for reason in [*NOT_EXECUTED.values(), *others] for path in re.findall(r"tests/[\w/]+(?:\.py)?", reason)
    }
    assert [path for path in named if not (ROOT / path).exists()] == []
