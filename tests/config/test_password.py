"""A password that this user may not read is required only where it is used."""

import io
from pathlib import Path
from typing import Any

import pytest

from edge.config import MqttSettings, password_of
from edge.foundation.errors import SettingsError


def test_password_is_read_from_the_settings(tmp_path: Path) -> None:
    assert password_of(MqttSettings()) == ""
    assert password_of(MqttSettings(password="sesame", password_file=str(tmp_path / "gone"))) == "sesame"


def test_password_is_empty_if_its_file_is_missing(tmp_path: Path) -> None:
    assert password_of(MqttSettings(password_file=str(tmp_path / "gone"))) == ""


def test_unreadable_password_advises_to_use_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise PermissionError

    file = tmp_path / "mqtt"
    monkeypatch.setattr(io, "open", refuse)
    with pytest.raises(SettingsError, match=f"password_file: {file}: this user may not read it") as raised:
        password_of(MqttSettings(password_file=str(file)))
    assert raised.value.advice == "Call edge as root (sudo)."
