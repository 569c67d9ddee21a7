"""Secrets are hidden in every output, in any spelling."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.app.features import declared_sections
from edge.app.redaction import redact_data, redact_settings, redactor, secrets_of
from edge.config import load_settings

SETTINGS = """
[redis]
url = "redis://user:canary-1@host:6379"
password = "canary-2"
[mqtt]
password = "canary 3/ü"
[southbound.wrench]
type_ids = ["t"]
url = "mqtt://edge:canary-4@host"
"""


@pytest.fixture
def main(tmp_path: Path) -> Path:
    (tmp_path / "edge.toml").write_text(SETTINGS)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "passwords").mkdir()
    (tmp_path / "passwords" / "mqtt").write_text("canary-5\n")
    return tmp_path / "edge.toml"


def test_secrets_of_every_settings_source_are_found(main: Path) -> None:
    (main.parent / "passwords" / "old").mkdir()
    environ = {"EDGE_MQTT__PASSWORD": "canary-6", "HOME": "canary-no"}
    settings = load_settings(main, {}, declared_sections())
    found = secrets_of(settings, main, environ)
    assert found == {"canary-1", "canary-2", "canary 3/ü", "canary-4", "canary-5", "canary-6"}


def test_secrets_of_unusable_settings_are_hidden(main: Path) -> None:
    (main.parent / "conf.d" / "a.toml").write_text("[redis]\nulr = 1\npassword = 4711\n")
    (main.parent / "conf.d" / "b.toml").write_text("[broken")
    assert {"canary-1", "canary 3/ü", "4711"} <= secrets_of(None, main, {})


def test_settings_are_shown_without_secrets(main: Path) -> None:
    settings = load_settings(main, {}, declared_sections())
    redact = redactor(secrets_of(settings, main, {}))
    text = redact(msgspec.json.encode(redact_settings(settings)).decode())
    assert "canary" not in text
    assert msgspec.json.decode(text)["redis"]["password"] == "***"
    assert msgspec.json.decode(text)["redis"]["url"] == "redis://***@host:6379"


@pytest.mark.parametrize(
    "text",
    [
        "connecting to redis://u:canary@host",
        "mqtt://u:can@ry@host/x",
        'login {"password": "canary"}',
        '{"password":"can \\" ary"}',
        "password=canary, user=u",
        "db_password: 'canary'",
        "API_KEY=canary",
        "pwd=canary",
        "userPwd: canary",
        "PIN: canary",
        "user_pin=canary",
        "operatorPin = canary",
        '{"pinCode": "canary"}',
        "basic_auth=canary",
        "Authorization: Bearer canary",
        "private_key: canary",
        "credentials=canary",
        "alice:operator:$argon2id$v=19$m=1$canary",
        "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\ncanary cut off",
    ],
)
def test_unknown_text_that_looks_like_a_secret_is_hidden(text: str) -> None:
    redacted = redactor(())(text)
    assert "can" not in redacted.replace("***", "")


def test_text_without_a_secret_is_unchanged() -> None:
    text = "password_file = /x; set the password; job J1 at opc.tcp://0.0.0.0:4840 user alice"
    text += "; spin=3 pinned: 4 spinning: 5 shopping=6 author: 7 authority=8 pin_diameter=9 private: 10"
    assert redactor(("pw",))(text) == text


def test_short_secret_is_hidden_as_a_whole_word() -> None:
    assert redactor(("ab",))("ab about AB ab.") == "*** about AB ***."


@given(st.text(min_size=4, max_size=20).filter(str.strip), st.text(max_size=20))
def test_known_secret_is_always_hidden(secret: str, around: str) -> None:
    redact = redactor((secret,))
    assert secret not in redact(f"{around}\n{secret}\n{around}").replace("***", "")


@pytest.mark.parametrize(
    ("data", "shown_as"),
    [
        (
            {"SerialNumber": "A-1", "part_sn": 4711, "program": 7},
            {"SerialNumber": "***", "part_sn": "***", "program": 7},
        ),
        ({"operator": {"name": "Erika"}, "user": ""}, {"operator": "***", "user": ""}),
        ([{"hostname": "line-4"}, {"token": "x"}], [{"hostname": "***"}, {"token": "***"}]),
        ({"at": "opc.tcp://wrench.plant:4840/a"}, {"at": "opc.tcp://***/a"}),
        (
            {"type": "http://opcfoundation.org/UA/IJT/Base/", "link": "http://opcfoundation.org.evil/"},
            {"type": "http://opcfoundation.org/UA/IJT/Base/", "link": "http://***/"},
        ),
        (
            [{"Name": "VIN", "EntityId": "W1", "Description": "of line-4"}, {"Name": "JobOrderID", "EntityId": "J1"}],
            [{"Name": "VIN", "EntityId": "***", "Description": "of ***"}, {"Name": "JobOrderID", "EntityId": "J1"}],
        ),
        ("mail e.muster@plant.example", "mail ***"),
        ("unit http://www.opcfoundation.org/UA/units/un/cefact", ...),
        ("10.0.0.7, fe80::1:2:3 and 00:11:22:aa:bb:cc", "***, *** and ***"),
        ("line-4 says sesame at 10:20:30", "*** says *** at 10:20:30"),
        (
            {"pwd": "a", "userPwd": "b", "pin": 1, "user_pin": 2, "userPin": 3, "pinCode": 4, "PIN": 5, "ToolSN": 6},
            dict.fromkeys(("pwd", "userPwd", "pin", "user_pin", "userPin", "pinCode", "PIN", "ToolSN"), "***"),
        ),
        (
            {"auth": "a", "basicAuth": "b", "Authorization": "c", "credentials": {"x": 1}, "privateKey": "d"},
            dict.fromkeys(("auth", "basicAuth", "Authorization", "credentials", "privateKey"), "***"),
        ),
        ({"pinned": 1, "spinning": 2, "author": "a", "authority": "b", "shopping": 3, "spin": 4, "PinDepth": 5}, ...),
        (["J1/r/work/1", "WVWZZZ1JZ3W386752"], ["J1/r/work/1", "***"]),
        (["ABCDEFGHJKLMNPRST", "WVWZZZ1JZ3W386752-7", "7d444840-9dc0-11d1-b245-5ffdce74fad2"], ...),
        ({"version": "1.2.3", "torque": 85.2, "ok": True, "none": None}, ...),
        ("line-45, 2026-11-20T10:20:30.123456+00:00, urn:microdcs-edge:equipment:light", ...),
    ],
)
def test_serial_numbers_persons_and_hosts_are_hidden(data: Any, shown_as: Any) -> None:
    assert redact_data(data, redactor({"sesame"}, {"line-4"})) == (data if shown_as is ... else shown_as)


@pytest.mark.parametrize("text", ["a." * 100_000, "a://" * 25_000])
def test_redaction_of_hostile_text_takes_less_than_5_s(text: str) -> None:
    began = time.thread_time()
    redact_data(text, redactor({"sesame"}, {"line-4"}))
    assert time.thread_time() - began < 5
