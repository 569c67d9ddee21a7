"""Each file of a gateway has one name in a backup, and each name one path."""

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from edge.app.gateway_files import (
    environment_variable,
    examine_secrets,
    is_below,
    is_secret,
    locate_files,
    passwords_in,
)
from edge.config import MqttSettings, OpcuaSettings, RedisSettings, Settings


def test_backup_name_of_each_file_leads_to_its_path(tmp_path: Path) -> None:
    for name in (
        "edge.toml",
        "conf.d/10-site.toml",
        "conf.d/notes.txt",
        "passwords/mqtt",
        "trusted/a.der",
        "users",
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(name)
    (tmp_path / "trusted" / "key-left-here.pem").write_text("-----BEGIN PRIVATE KEY-----")
    (tmp_path / "trusted" / "readme.txt").touch()
    key = ec.generate_private_key(ec.SECP256R1())
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "trusted" / "key-left-here.der").write_bytes(der)
    (tmp_path / "trusted" / "b.der.before-restore").touch()
    (tmp_path / "trusted" / ".c.der.partial").touch()
    settings = Settings(
        opcua=OpcuaSettings(
            pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"), users_file=str(tmp_path / "users")
        ),
        mqtt=MqttSettings(url="mqtts://b", ca_file=str(tmp_path / "users")),
    )
    at = locate_files(settings, tmp_path / "edge.toml")
    existing = dict(at.existing())
    assert sorted(existing) == [
        "opcua/trusted/a.der",
        "opcua/users",
        "settings/conf.d/10-site.toml",
        "settings/edge.toml",
        "settings/passwords/mqtt",
        "tls/mqtt.ca_file",
    ]
    assert all(at.of(name) == path for name, path in existing.items())
    assert at.of("settings/unknown") is None
    assert at.of("elsewhere/a.der") is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("opcua/own.pem", True),
        ("opcua/own.der", False),
        ("tls/mqtt.key_file", True),
        ("tls/mqtt.cert_file", False),
        ("settings/passwords/mqtt", True),
        ("settings/edge.toml", False),
    ],
)
def test_keys_and_passwords_are_secret(name: str, *, secret: bool) -> None:
    assert is_secret(name) is secret


def test_links_and_dots_do_not_leave_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    assert is_below(inside / "a", inside)
    assert is_below(inside, inside)
    assert not is_below(inside / "link" / "a", inside)
    assert not is_below(inside / ".." / "a", inside)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tls/mqtt.ca_file", "EDGE_MQTT__CA_FILE"),
        ("tls/southbound.rear-axle.key_file", "EDGE_SOUTHBOUND__REAR_AXLE__KEY_FILE"),
    ],
)
def test_file_setting_has_an_environment_variable(name: str, expected: str) -> None:
    assert environment_variable(name) == expected


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
