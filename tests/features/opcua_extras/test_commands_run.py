"""`edge opcua advertise` says what it did, and what is missing."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.features.opcua_extras import commands as announcement


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of avahi-daemon, which is not there yet."""
    path = tmp_path / "services"
    monkeypatch.setattr(announcement, "DIRECTORY", path)
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "edge.toml"
    file.write_text('[opcua]\nadvertise = true\nendpoint = "opc.tcp://0.0.0.0:4840"\n')
    return file


def advertise(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["opcua", "advertise", *map(str, arguments)])


def test_advertise_without_avahi_is_refused_with_advice(directory: Path, settings: Path) -> None:
    answer = advertise("--settings", settings)
    assert (answer.exit_code, "edge: Install avahi-daemon." in answer.output) == (1, True)
    assert not directory.exists()


def test_service_file_is_written_and_removed(directory: Path, settings: Path) -> None:
    directory.mkdir()
    assert advertise("--settings", settings).output == "service file written\n"
    assert len(list(directory.iterdir())) == 1
    assert advertise("--remove").output == "service file removed\n"
    assert list(directory.iterdir()) == []
    assert advertise("--remove").output == "there is no service file\n"


def test_directory_that_cannot_be_read_is_named(directory: Path, settings: Path) -> None:
    directory.mkdir()
    (directory / "microdcs-edge.service").mkdir()
    answer = advertise("--settings", settings)
    assert answer.exit_code == 1
    assert "Is a directory" in answer.output
    assert "Call it as root" in answer.output
