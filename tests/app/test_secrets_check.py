"""Passwords that other users can read are findings."""

import os
from pathlib import Path

import pytest

from edge.app.secrets_check import examine_secrets, passwords_in
from edge.config import MqttSettings, RedisSettings, Settings


def _warnings(tmp_path: Path, **sections: object) -> list[str]:
    return list(examine_secrets(Settings(**sections), tmp_path / "edge.toml"))  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["mqtt://127.0.0.1:1883", "mqtt://localhost", "mqtts://broker.plant", "mqtt://[::1]:1"])
def test_password_to_this_host_or_encrypted_is_not_a_finding(tmp_path: Path, url: str) -> None:
    assert _warnings(tmp_path, mqtt=MqttSettings(url=url, password="p")) == []


def test_password_in_clear_text_to_another_host_is_a_finding(tmp_path: Path) -> None:
    (found,) = _warnings(tmp_path, redis=RedisSettings(url="redis://default:p@store.plant"))
    assert found.startswith("redis: the password goes to store.plant in clear text")


def test_secret_that_every_user_can_read_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "passwords").mkdir()
    secret = tmp_path / "passwords" / "mqtt"
    secret.write_text("p")
    secret.chmod(0o644)
    (found,) = _warnings(tmp_path)
    assert found.endswith(f"chmod o-r {secret}")
    secret.chmod(0o640)
    assert _warnings(tmp_path) == []


def test_password_that_this_user_cannot_check_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    (found,) = _warnings(tmp_path, mqtt=MqttSettings(password_file=str(tmp_path / "mqtt")))
    assert found.endswith("this user may not read it; check it as root (sudo)")


def test_passwords_of_a_file_are_reported_by_section(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text('[mqtt]\npassword = "p"\n[southbound.w]\nurl = "mqtt://u:p@h"\n[redis]\npassword = ""\n')
    assert passwords_in(file) == ["mqtt.password", "southbound.w.url"]
    assert passwords_in(tmp_path / "none.toml") == []
