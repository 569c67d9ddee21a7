"""Passwords are found by the service and by root who looks after it, from the same settings."""

from pathlib import Path

import pytest

from edge.config import load_settings
from edge.errors import SettingsError
from edge.southbound.kinds import EQUIPMENT


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """Settings as on an installed gateway, with the files of passwords."""
    file = tmp_path / "edge.toml"
    file.write_text('[mqtt]\npassword_file = "password_mqtt"\n')
    (tmp_path / "passwords").mkdir()
    (tmp_path / "passwords" / "mqtt").write_text("sesame\n")
    return file


def test_who_is_not_the_service_reads_what_its_credentials_are_made_of(main: Path) -> None:
    assert load_settings(main, {}, EQUIPMENT).mqtt.password == "sesame"
    assert load_settings(None, {"CONFIGURATION_DIRECTORY": str(main.parent)}, EQUIPMENT).mqtt.password == "sesame"


def test_the_service_reads_its_credentials(main: Path, tmp_path: Path) -> None:
    handed = tmp_path / "credentials"
    handed.mkdir()
    (handed / "password_mqtt").write_text("open sesame")
    assert load_settings(main, {"CREDENTIALS_DIRECTORY": str(handed)}, EQUIPMENT).mqtt.password == "open sesame"


def test_who_can_read_neither_is_told(main: Path) -> None:
    (main.parent / "passwords" / "mqtt").unlink()
    with pytest.raises(SettingsError, match=r"mqtt\.password_file"):
        load_settings(main, {}, EQUIPMENT)
