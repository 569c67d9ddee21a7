"""Board profiles are valid against their schema, and a faulty one is reported with its file."""

import json
import tomllib
from pathlib import Path

import jsonschema
import msgspec
import pytest

from edge.features.admin.hardware.board import Board, find_board, profile_directory, read_boards
from edge.foundation.errors import Refused, SettingsError

ROOT = Path(__file__).parents[4]
SCHEMA = ROOT / "schemas" / "board.schema.json"
PROFILES = sorted((ROOT / "hw" / "boards").glob("*.toml"))


def test_published_schema_equals_the_schema_of_the_program() -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Board)}
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
