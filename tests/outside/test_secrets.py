"""Passwords readable by other users are reported, and a backup lists the passwords it contains."""

import subprocess
from pathlib import Path

from tests.free_ports import free_port
from tests.outside.servers import EDGE

_SECRET = "correct-horse"


def _settings(directory: Path) -> Path:
    settings = directory / "edge.toml"
    settings.write_text(
        f'[redis]\nurl = "redis://127.0.0.1:{free_port()}"\n'
        f'[mqtt]\nurl = "mqtt://broker.example:1883"\nusername = "edge"\npassword = "{_SECRET}"\n'
    )
    return settings


def _edge(*arguments: str | Path) -> str:
    done = subprocess.run([EDGE, *arguments], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout + done.stderr


def test_check_warns_of_passwords_that_others_can_read(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    mirror = f'[mirror.line]\nurl = "redis://edge:{_SECRET}@line.example"\nkey = "carriers"\n'
    settings.write_text(f"{settings.read_text()}{mirror}")
    settings.chmod(0o644)
    reported = _edge("check", "settings", settings)
    assert "broker.example in clear text" in reported
    assert "line.example in clear text" in reported
    assert f"chmod o-r {settings}" in reported
    assert _SECRET not in reported
    settings.chmod(0o600)
    settings.write_text(settings.read_text().replace("mqtt://", "mqtts://").replace("redis://edge", "rediss://edge"))
    assert "warning" not in _edge("check", "settings", settings)


def test_backup_lists_the_passwords_it_contains(tmp_path: Path) -> None:
    reported = _edge("backup", tmp_path / "b.tar.gz", "--without-store", "--settings", _settings(tmp_path))
    assert "with the passwords in edge.toml: mqtt.password" in reported
    assert "not saved: private keys, files of passwords/" in reported


def test_equipment_logs_in_with_the_password_of_a_file(tmp_path: Path) -> None:
    settings, password = _settings(tmp_path), tmp_path / "wrench-password"
    password.write_text(f"{_SECRET}\n")
    password.chmod(0o600)
    settings.write_text(
        '[southbound.wrench]\ntype_ids = ["t.v1"]\nurl = "mqtts://tools.example"\nusername = "edge"\n'
        f'password_file = "{password}"\n'
    )
    assert "no problems" in _edge("check", "settings", settings)
