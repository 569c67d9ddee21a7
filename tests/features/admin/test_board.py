"""Board profiles are valid against their schema, and a faulty one is reported with its file."""

import json
import tomllib
from pathlib import Path

import jsonschema
import msgspec
import pytest

from edge.app.schema_examples import with_examples
from edge.features.admin.board import Board, detect, find_board, profile_directory, read_boards
from edge.foundation.errors import Refused, SettingsError
from tests.foundation.computers import computer

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "schemas" / "board.schema.json"
PROFILES = sorted((ROOT / "hw" / "boards").glob("*.toml"))


def test_published_schema_equals_the_schema_of_the_program() -> None:
    schema = with_examples({"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Board)})
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    assert SCHEMA.read_text(encoding="utf-8") == text, f"{SCHEMA.name} is to be:\n{text}"


@pytest.mark.parametrize("file", PROFILES, ids=lambda file: file.stem)
def test_board_profile_is_valid_against_the_schema(file: Path) -> None:
    jsonschema.validate(tomllib.loads(file.read_text(encoding="utf-8")), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_all_planned_board_profiles_exist() -> None:
    assert set(read_boards(profile_directory() / "boards")) == {
        "cm4",
        "ipc-x86",
        "revpi-connect-4",
        "revpi-connect-5",
        "rpi4",
        "rpi5",
        "sim",
    }


def test_every_faulty_profile_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("name = 3")
    (tmp_path / "b.toml").write_text("name = ")
    (tmp_path / "c.toml").write_text('name = "C"\nwatchdgo = 1\n[detect]\n')
    with pytest.raises(SettingsError) as raised:
        read_boards(tmp_path)
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [
        str(tmp_path / f"{name}.toml") for name in "abc"
    ]
    assert "watchdgo" in raised.value.problems[2]


def test_a_directory_without_profiles_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no board profile"):
        read_boards(tmp_path)


def test_unknown_board_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Refused) as raised:
        find_board(read_boards(profile_directory() / "boards"), "rpi3")
    assert "rpi4" in raised.value.advice


BOARDS = read_boards(profile_directory() / "boards")
MODEL, COMPATIBLE = "/proc/device-tree/model", "/proc/device-tree/compatible"
DMI = {"/sys/class/dmi/id/sys_vendor": "ACME", "/sys/class/dmi/id/product_name": "Box"}


@pytest.mark.parametrize(
    ("files", "board"),
    [
        ({MODEL: "Raspberry Pi 4 Model B Rev 1.5\0"}, "rpi4"),
        ({MODEL: "Raspberry Pi 5 Model B Rev 1.0\0"}, "rpi5"),
        ({MODEL: "Raspberry Pi Compute Module 4 Rev 1.1\0"}, "cm4"),
        (
            {MODEL: "Raspberry Pi Compute Module 4S Rev 1.0", COMPATIBLE: "kunbus,revpi-connect4\0a\0"},
            "revpi-connect-4",
        ),
        ({MODEL: "Raspberry Pi Compute Module 5 Rev 1.0", COMPATIBLE: "a\0kunbus,revpi-connect5\0"}, "revpi-connect-5"),
        (DMI, "ipc-x86"),
        (DMI | {"/proc/cpuinfo": "processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n"}, "sim"),
        ({"/run/systemd/container": "systemd-nspawn"}, "sim"),
    ],
)
def test_a_board_is_recognised(tmp_path: Path, files: dict[str, str], board: str) -> None:
    assert detect(computer(tmp_path, files), BOARDS) == board


@pytest.mark.parametrize("model", ["", "Raspberry Pi 3 Model B", "Raspberry Pi Compute Module 4S Rev 1.0"])
def test_board_without_a_profile_is_refused_with_its_identification(tmp_path: Path, model: str) -> None:
    with pytest.raises(Refused) as raised:
        detect(computer(tmp_path, {MODEL: model}), BOARDS)
    assert model in raised.value.message
    assert "--board" in raised.value.advice
