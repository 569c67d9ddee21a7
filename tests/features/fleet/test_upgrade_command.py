"""Root executes a signed upgrade once, by its own policy, and refuses files that others may change."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.features.fleet.signature import FleetCommand, FleetState, sign
from edge.features.fleet.signing_keys import new_key, write_public
from edge.features.fleet.upgrade_command import UpgradeHost, execute_upgrade, wanted_version
from edge.features.fleet.upgrade_record import load, only_upgrade
from edge.foundation.errors import Refused

PRIVATE, PUBLIC = new_key("anna")
STRANGER, _ = new_key("ben")
NOW_S = 1_800_000_000
COMMAND = FleetCommand(jti="0123456789abcdef", aud=("gw-1",), iat=NOW_S, exp=NOW_S + 600, cmd="upgrade")
SETTINGS = """
[gateway]
name = "gw-1"
[redis]
url = "unix:///tmp/none.sock"
[fleet]
listen = "store"
allow = ["status", "upgrade"]
keys = "{keys}"
"""


@pytest.fixture
def host(tmp_path: Path) -> UpgradeHost:
    """A machine whose settings allow upgrades by anna; its programs fail, as none may be run."""
    keys, records = tmp_path / "keys", tmp_path / "records"
    records.mkdir()
    write_public(keys, PUBLIC)
    keys.chmod(0o755)
    tmp_path.chmod(0o755)
    settings = tmp_path / "edge.toml"
    settings.write_text(SETTINGS.format(keys=keys))
    settings.chmod(0o644)
    return UpgradeHost(settings, records, lambda _: (100, "no apt here"), lambda: NOW_S, os.getuid())


def refused(host: UpgradeHost, text: str) -> str:
    """Return why a text is refused before anything begins."""
    begun: list[str] = []
    with pytest.raises(Refused) as exception_info:
        execute_upgrade(text, host, begun.append)
    assert begun == []
    return exception_info.value.message


def test_signed_command_is_executed_once_with_a_record(host: UpgradeHost) -> None:
    begun: list[str] = []
    text = sign(COMMAND, PRIVATE, PUBLIC.kid)
    ended = execute_upgrade(text, host, begun.append)
    assert begun == ["anna"]
    assert ended.state is FleetState.FAILED, "this machine has no repository"
    assert load(host.records, COMMAND.jti) == ended
    assert "executed before" in refused(host, text)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cmd": "status"}, "is not a upgrade"),
        ({"cmd": "restart"}, "not_allowed"),
        ({"aud": ("gw-2",)}, "for other components"),
        ({"aud": ()}, "malformed: it names no component"),
        ({"aud": ("*", "*")}, "malformed: `aud` names a component twice"),
        ({"iat": NOW_S - 600, "exp": NOW_S}, "expired"),
        ({"iat": NOW_S + 3600, "exp": NOW_S + 4000}, "clock"),
        ({"args": ("--version=1.0", "-oX=y")}, "arguments"),
        ({"args": ("--version=../../etc/passwd",)}, "is not a version"),
        ({"args": ("--version=-oDir::Etc=/tmp",)}, "is not a version"),
        ({"jti": "../../etc/cron.d/x"}, "malformed"),
    ],
)
def test_other_command_is_refused(host: UpgradeHost, changed: dict[str, object], reason: str) -> None:
    assert reason in refused(host, sign(replace(COMMAND, **changed), PRIVATE, PUBLIC.kid))
    assert [file.name for file in host.records.iterdir() if file.name != "lock"] == []


def test_text_without_the_signature_of_an_administrator_is_refused(host: UpgradeHost) -> None:
    text = sign(COMMAND, PRIVATE, PUBLIC.kid)
    assert refused(host, "nonsense") == "no signed command"
    assert refused(host, "") == "no signed command"
    assert refused(host, f"{text[:-4]}AAAA") == "signature wrong"
    assert refused(host, sign(COMMAND, STRANGER, PUBLIC.kid)) == "signature wrong"


def test_revoked_key_and_keys_of_the_store_are_refused(host: UpgradeHost) -> None:
    assert host.settings
    write_public(host.settings.parent / "keys", replace(PUBLIC, revoked=True))
    assert "key_revoked" in refused(host, sign(COMMAND, PRIVATE, PUBLIC.kid))
    host.settings.write_text(host.settings.read_text() + 'keys_from = "store"\n')
    assert "not in the store" in refused(host, sign(COMMAND, PRIVATE, PUBLIC.kid))


# The key is new in each process: its name must not be that of a test.
@pytest.mark.parametrize(
    "name", [".", "edge.toml", "keys", f"keys/{PUBLIC.kid}.jwk"], ids=["folder", "settings", "keys", "key"]
)
def test_files_writable_by_others_are_refused(host: UpgradeHost, name: str) -> None:
    assert host.settings
    (host.settings.parent / name).chmod(0o777)
    reason = refused(host, sign(COMMAND, PRIVATE, PUBLIC.kid))
    assert reason == f"others than root may change {host.settings.parent / name}"


@pytest.mark.parametrize("linked", ["edge.toml", "keys", f"keys/{PUBLIC.kid}.jwk"], ids=["settings", "keys", "key"])
def test_links_to_files_writable_by_others_are_refused(host: UpgradeHost, tmp_path: Path, linked: str) -> None:
    (others := tmp_path / "others").mkdir()
    link = tmp_path / linked
    link.rename(others / "moved")
    link.symlink_to(others / "moved")
    others.chmod(0o777)
    assert refused(host, sign(COMMAND, PRIVATE, PUBLIC.kid)) == f"others than root may change {others}"


def test_links_between_files_of_root_are_accepted(host: UpgradeHost, tmp_path: Path) -> None:
    assert host.settings
    (tmp_path / "loop.jwk").symlink_to("loop.jwk")
    (tmp_path / "keys" / "loop.jwk").symlink_to(tmp_path / "loop.jwk")
    host.settings.rename(tmp_path / "moved.toml")
    host.settings.symlink_to("moved.toml")
    begun: list[str] = []
    execute_upgrade(sign(COMMAND, PRIVATE, PUBLIC.kid), host, begun.append)
    assert begun == ["anna"]


def test_files_of_another_user_are_refused(host: UpgradeHost) -> None:
    other = UpgradeHost(host.settings, host.records, host.run, host.now_s, os.getuid() + 1)
    if os.getuid() == 0:  # root may change everything anyway
        assert host.settings
        os.chown(host.settings, 12345, 12345)
    assert "others than root may change" in refused(other, sign(COMMAND, PRIVATE, PUBLIC.kid))


def test_second_upgrade_at_once_is_refused(host: UpgradeHost) -> None:
    with only_upgrade(host.records) as ours:
        assert ours
        assert refused(host, sign(COMMAND, PRIVATE, PUBLIC.kid)) == "another upgrade runs"


def test_version_is_read_from_the_last_argument() -> None:
    assert wanted_version(()) == ""
    assert wanted_version(("--version", "0.2.0+deb13u1")) == "0.2.0+deb13u1"
