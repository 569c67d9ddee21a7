"""A file that root can read but the service cannot is reported as a settings problem."""

from collections.abc import Callable, Sequence
from pathlib import Path

from edge.app.service_user import access_problems
from edge.config import MqttEquipmentSettings, MqttSettings, OpcuaSettings, RedisSettings, Settings


def only(*names: str) -> Callable[[Sequence[Path]], list[Path]]:
    def unreadable(files: Sequence[Path]) -> list[Path]:
        return [file for file in files if file.name in names]

    return unreadable


def test_unreadable_settings_and_certificates_are_reported_with_advice(tmp_path: Path) -> None:
    for name in ("edge.toml", "conf.d/50-site.toml", "ca.pem", "passwords/mqtt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    site, authority = tmp_path / "conf.d/50-site.toml", tmp_path / "ca.pem"
    settings = Settings(
        mqtt=MqttSettings(ca_file=str(authority), password_file=str(tmp_path / "passwords/mqtt")),
        opcua=OpcuaSettings(trusted=str(tmp_path / "none"), pki=str(tmp_path), users_file=str(tmp_path / "none")),
    )
    unreadable = only("50-site.toml", "ca.pem", "mqtt")
    problems = list(access_problems(tmp_path / "edge.toml", settings, unreadable))
    assert problems == [
        f"{file}: microdcs-edge may not read it; permit it: chgrp microdcs-edge {file} && chmod g+r {file}"
        for file in (authority, site)
    ]


def test_unreadable_password_file_must_move_to_passwords(tmp_path: Path) -> None:
    elsewhere, hidden, passed = (tmp_path / name for name in ("broker", "passwords/.store", "passwords/mqtt"))
    for file in (tmp_path / "edge.toml", elsewhere, hidden, passed):
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    settings = Settings(
        redis=RedisSettings(password_file=str(hidden)),
        mqtt=MqttSettings(password_file=str(elsewhere)),
        southbound={"wrench": MqttEquipmentSettings(type_ids=("tighten",), password_file=str(passed))},
    )
    problems = list(access_problems(tmp_path / "edge.toml", settings, only("broker", ".store", "mqtt")))
    assert [problem.partition(",")[0] for problem in problems] == [
        f"{elsewhere}: microdcs-edge may not read it; move it to /etc/microdcs-edge/passwords/broker",
        f"{hidden}: microdcs-edge may not read it; move it to /etc/microdcs-edge/passwords/store",
    ]


def test_credential_of_this_process_is_passed_to_the_service(tmp_path: Path) -> None:
    credential = tmp_path / "credentials/password_mqtt"
    credential.parent.mkdir()
    credential.write_text("")
    settings = Settings(mqtt=MqttSettings(password_file=str(credential)))
    find, main = only("password_mqtt"), tmp_path / "edge.toml"
    assert list(access_problems(main, settings, find, {"CREDENTIALS_DIRECTORY": str(credential.parent)})) == []
    assert len(list(access_problems(main, settings, find, {}))) == 1


def test_directory_hidden_from_the_service_is_reported() -> None:
    problems = list(access_problems(Path("/run/user/1000/edge.toml"), None, only()))
    assert problems == [
        "/run/user/1000/edge.toml: the service has no access to this directory; move the file to /etc/microdcs-edge"
    ]


def test_settings_of_a_checkout_have_no_service_user_problems(tmp_path: Path) -> None:
    assert list(access_problems(tmp_path / "edge.toml", None)) == []
