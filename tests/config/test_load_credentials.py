"""Passwords are found from the same settings by the service and by root."""

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from edge.app.features import declared_sections
from edge.config import load_settings
from edge.foundation.errors import SettingsError


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """Settings as on an installed gateway, with the files of passwords."""
    file = tmp_path / "edge.toml"
    file.write_text('[mqtt]\npassword_file = "password_mqtt"\n')
    (tmp_path / "passwords").mkdir()
    (tmp_path / "passwords" / "mqtt").write_text("sesame\n")
    return file


def test_user_outside_the_service_reads_the_credential_source_file(main: Path) -> None:
    assert load_settings(main, {}, declared_sections()).mqtt.password == "sesame"
    assert (
        load_settings(None, {"CONFIGURATION_DIRECTORY": str(main.parent)}, declared_sections()).mqtt.password
        == "sesame"
    )


def test_the_service_reads_its_credentials(main: Path, tmp_path: Path) -> None:
    handed = tmp_path / "credentials"
    handed.mkdir()
    (handed / "password_mqtt").write_text("open sesame")
    assert (
        load_settings(main, {"CREDENTIALS_DIRECTORY": str(handed)}, declared_sections()).mqtt.password == "open sesame"
    )


def test_missing_credential_and_source_file_is_reported(main: Path) -> None:
    (main.parent / "passwords" / "mqtt").unlink()
    with pytest.raises(SettingsError, match=r"mqtt\.password_file: there is no file .*/passwords/mqtt"):
        load_settings(main, {}, declared_sections())


def deny(monkeypatch: pytest.MonkeyPatch, denied: Path) -> None:
    """Make one path unreadable, also for root."""
    real = os.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        if path == denied:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stat)


def test_service_reads_the_credential_instead_of_its_source_file(main: Path, tmp_path: Path) -> None:
    source = tmp_path / "passwords/mqtt"
    main.write_text(f'[mqtt]\npassword_file = "{source}"\n')
    handed = tmp_path / "credentials"
    handed.mkdir()
    (handed / "password_mqtt").write_text("open sesame")
    environ = {"CREDENTIALS_DIRECTORY": str(handed)}
    assert load_settings(main, environ, declared_sections()).mqtt.password == "open sesame"
    assert load_settings(main, {}, declared_sections()).mqtt.password == "sesame"


def refuse_reading(monkeypatch: pytest.MonkeyPatch, denied: Path) -> None:
    """Make one file unreadable, also for root."""
    real = io.open

    def refuse(file: Any, *arguments: Any, **options: Any) -> Any:
        if file == denied:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return real(file, *arguments, **options)

    monkeypatch.setattr(io, "open", refuse)


def test_settings_load_although_root_passwords_are_unreadable(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    password = main.parent / "passwords" / "mqtt"
    refuse_reading(monkeypatch, password)
    mqtt = load_settings(main, {}, declared_sections()).mqtt
    assert (mqtt.password, mqtt.password_file) == ("", str(password))


def test_unreadable_password_outside_the_credentials_is_a_problem(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = main.with_name("broker.password")
    file.write_text("sesame")
    main.write_text(f'[mqtt]\npassword_file = "{file}"\n')
    refuse_reading(monkeypatch, file)
    with pytest.raises(SettingsError, match=f"mqtt.password_file: {file}: this user may not read it"):
        load_settings(main, {}, declared_sections())


@pytest.mark.parametrize("named", [True, False])
def test_user_without_access_to_the_settings_is_advised_to_use_root(
    main: Path, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    deny(monkeypatch, main)
    environ = {} if named else {"CONFIGURATION_DIRECTORY": str(main.parent)}
    with pytest.raises(SettingsError, match=r"this user may not read it; .*\(sudo\)"):
        load_settings(main if named else None, environ, declared_sections())
