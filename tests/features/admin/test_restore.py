"""A restore returns the saved state, on the same or a new gateway, and is refused while jobs run."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from edge.app.features import declared_sections
from edge.config import RedisSettings, load_settings
from edge.features.admin.archive import MANIFEST, Manifest, Member, read_archive, sha256, write_archive
from edge.features.admin.backup import Part, back_up
from edge.features.admin.restore import restore
from edge.features.admin.snapshot import dump
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.features.admin.gateways import furnish
from tests.store.servers import own_server

pytestmark = pytest.mark.slow

NOW = 1_790_000_000_000
EVERYTHING = (Part.KEYS, Part.STORE)


def nobody(_: Text) -> None:
    """Drop the progress of a restore."""


def files_of(directory: Path) -> dict[str, bytes]:
    """Read what stands below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def changed(file: Path, change: Callable[[dict[str, bytes]], Mapping[str, bytes]], **members: Member) -> Path:
    """Write an archive again with other contents, as an attacker who knows its format."""
    manifest, contents = read_archive(file)
    contents = dict(change(contents))
    described = {
        name: msgspec.structs.replace(members.get(name.replace("/", "_"), Member("")), sha256=sha256(content))
        for name, content in contents.items()
    }
    whole = msgspec.structs.replace(manifest, members=described)
    write_archive(file, {MANIFEST: msgspec.json.encode(whole), **contents}, NOW)
    return file


async def refusal(file: Path, settings: Path) -> Refused:
    before = files_of(settings.parent)
    with pytest.raises(Refused) as caught:
        await restore(file, settings, {}, NOW, nobody, force=False)
    assert files_of(settings.parent) == before
    return caught.value


@pytest.fixture
def settings(redis: RedisSettings, tmp_path: Path) -> Path:
    """The settings of a gateway with all its files."""
    return furnish(tmp_path / "etc", redis)


@pytest.fixture
async def backup(store: Store, settings: Path, tmp_path: Path) -> Path:
    """A backup of that gateway with one job."""
    await store.execute("HSET", store.keys.joborder("J1"), "rev", "1", "order", "{}")
    await store.execute("ZADD", store.keys.joborder_list("station-1"), 5, "J1")
    file = tmp_path / "b.tar.gz"
    await back_up(file, settings, {}, EVERYTHING, NOW, nobody)
    return file


def add(settings: Path, text: str) -> None:
    """Write more into a settings file."""
    settings.write_text(settings.read_text() + text)


async def test_restore_returns_files_and_store_to_the_saved_state(store: Store, backup: Path, settings: Path) -> None:
    files, kept = files_of(settings.parent), await dump(store, NOW)
    await store.execute("DEL", store.keys.joborder("J1"))
    await store.execute("SET", store.keys.counter("later"), "1")
    add(settings, "\n[gateway]\nname = 'other'\n")
    (settings.parent / "conf.d" / "later.toml").write_text("[gateway]\nscopes = ['later']\n")
    (settings.parent / "pki" / "own.pem").unlink()
    reported: list[Text] = []
    await restore(backup, settings, {}, NOW, reported.append, force=False)
    aside = {name: content for name, content in files_of(settings.parent).items() if name.endswith(".before-restore")}
    assert sorted(aside) == ["conf.d/later.toml.before-restore", "edge.toml.before-restore"]
    assert {name: content for name, content in files_of(settings.parent).items() if name not in aside} == files
    assert (settings.parent / "pki" / "own.pem").stat().st_mode & 0o777 == 0o600
    assert [key for key in await dump(store, NOW) if not key.key.startswith(("audit", "operations"))] == kept
    assert f"restored: {settings}" in map(str, reported)
    assert any(str(line).startswith("store: ") for line in reported)


async def test_backup_is_restored_on_a_new_gateway(backup: Path, settings: Path, tmp_path: Path) -> None:
    files = files_of(settings.parent)
    shutil.rmtree(settings.parent)
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), None) as fresh:
        await restore(
            backup,
            settings,
            {"EDGE_REDIS__URL": server.url, "EDGE_REDIS__PREFIX": "microdcs-edge"},
            NOW,
            nobody,
            force=False,
        )
        assert await fresh.execute("HGET", fresh.keys.joborder("J1"), "order") == "{}"
    # The key of the client was never the gateway's; own.der is made from own.pem at the next start.
    expected = {name for name in files if not name.startswith("client/") and name != "pki/own.der"}
    assert files_of(settings.parent).keys() == expected
    assert load_settings(settings, {}, declared_sections()).opcua.manufacturer == "Example"


async def test_trust_lists_of_equipment_are_restored(settings: Path, tmp_path: Path) -> None:
    trusted, pki = settings.parent / "wrench" / "trusted", settings.parent / "pki"
    trusted.mkdir(parents=True)
    (trusted / "controller.der").write_bytes(b"one certificate")
    (settings.parent / "conf.d" / "20-wrench.toml").write_text(
        f'[southbound.wrench]\nkind = "ijt"\ntype_ids = ["t.v1"]\nurl = "opc.tcp://w:4840"\n'
        f'cert_file = "{pki}/own.der"\nkey_file = "{pki}/own.pem"\ntrusted = "{trusted}"\n'
    )
    file = tmp_path / "backup.tar.gz"
    await back_up(file, settings, {}, EVERYTHING, NOW, nobody)
    (trusted / "intruder.der").write_bytes(b"another")
    await restore(file, settings, {}, NOW, nobody, force=False)
    assert {path.name for path in trusted.iterdir()} == {"controller.der", "intruder.der.before-restore"}
    shutil.rmtree(settings.parent)
    await restore(file, settings, {}, NOW, nobody, force=False)
    assert (trusted / "controller.der").read_bytes() == b"one certificate"


async def test_passwords_missing_in_a_backup_are_those_of_the_gateway(settings: Path, tmp_path: Path) -> None:
    password = settings.parent / "passwords" / "redis"
    password.parent.mkdir()
    password.touch()
    add(settings.parent / "conf.d" / "site.toml", '\n[redis]\npassword_file = "password_redis"\n')
    backup = tmp_path / "b.tar.gz"
    await back_up(backup, settings, {}, [Part.STORE], NOW, nobody)
    await restore(backup, settings, {}, NOW, nobody, force=False)
    password.unlink()
    with pytest.raises(SettingsError) as refused:
        await restore(backup, settings, {}, NOW, nobody, force=False)
    assert f"there is no file {password}" in refused.value.message
    assert "--with-key" in refused.value.advice


async def test_restore_is_refused_while_jobs_run(store: Store, backup: Path, settings: Path) -> None:
    await store.execute("SADD", store.keys.sfc_active_jobs(), *(f"J{number}" for number in range(7)))
    error = await refusal(backup, settings)
    assert error.message.endswith("running jobs: J0, J1, J2, J3, J4 and 2 more")
    assert "--force" in error.advice
    await restore(backup, settings, {}, NOW, nobody, force=True)
    assert await store.execute("EXISTS", store.keys.sfc_active_jobs()) == 0


async def test_restore_is_refused_while_a_gateway_runs(store: Store, backup: Path, settings: Path) -> None:
    await store.execute("SET", f"{store.keys.prefix}:lease:instance:edge", "token", "PX", 60_000)
    error = await refusal(backup, settings)
    assert "a gateway works on this store: edge" in error.message
    assert "systemctl stop microdcs-edge" in error.advice


async def test_jobs_running_at_backup_time_are_reported(store: Store, settings: Path, tmp_path: Path) -> None:
    await store.execute("SADD", store.keys.sfc_active_jobs(), "J1")
    file = tmp_path / "running.tar.gz"
    await back_up(file, settings, {}, EVERYTHING, NOW, nobody)
    await store.execute("DEL", store.keys.sfc_active_jobs())
    reported: list[Text] = []
    await restore(file, settings, {}, NOW, reported.append, force=False)
    assert "these jobs ran at the time of the backup and continue from there: J1" in map(str, reported)


async def test_archive_cannot_write_to_paths_of_its_own_settings(backup: Path, settings: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    line = f'[opcua]\nusers_file = "{elsewhere}"\n'.encode()
    error = await refusal(changed(backup, lambda all_: all_ | {"settings/conf.d/site.toml": line}), settings)
    assert f"it would write {elsewhere}" in error.message
    assert not elsewhere.exists()


async def test_archive_cannot_move_a_certificate_to_another_place(backup: Path, settings: Path, tmp_path: Path) -> None:
    def with_tls(contents: dict[str, bytes]) -> Mapping[str, bytes]:
        site = b'[mqtt]\nurl = "mqtts://b"\nca_file = "/nowhere/ca.pem"\n'
        return contents | {"settings/conf.d/site.toml": site, "tls/mqtt.ca_file": b"x"}

    elsewhere = Member("", path=str(tmp_path / "elsewhere"))
    file = changed(backup, with_tls, **{"tls_mqtt.ca_file": elsewhere})
    assert "it would write" in (await refusal(file, settings)).message


@pytest.mark.parametrize(
    ("name", "content", "reported"),
    [
        ("opcua/unknown", b"", "is not a file of a gateway"),
        ("store.jsonl", b"{", "store.jsonl"),
        ("store.jsonl", b'{"type":"list","key":"a","value":{"a":1}}', "store.jsonl"),
        ("store.jsonl", b'{"type":"hash","key":"a","value":{"a":1}}', "store.jsonl"),
        ("store.jsonl", b'{"type":"string","key":"form","value":"99"}', "a newer version: its data have version 99"),
        ("store.jsonl", b'{"type":"string","key":"form","value":"x"}', "store.jsonl"),
    ],
)
async def test_unusable_contents_are_refused(
    backup: Path, settings: Path, name: str, content: bytes, reported: str
) -> None:
    assert reported in (await refusal(changed(backup, lambda all_: all_ | {name: content}), settings)).message


async def test_unusable_settings_are_reported_before_anything_is_written(backup: Path, settings: Path) -> None:
    file = changed(backup, lambda all_: all_ | {"settings/edge.toml": b"[redis]\nulr = 1"})
    before = files_of(settings.parent)
    with pytest.raises(SettingsError, match="ulr"):
        await restore(file, settings, {}, NOW, nobody, force=False)
    assert files_of(settings.parent) == before


async def test_backup_without_a_store_keeps_the_store(store: Store, settings: Path, tmp_path: Path) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "rev", "1")
    file = tmp_path / "files.tar.gz"
    await back_up(file, settings, {}, (), NOW, nobody)
    await store.execute("SADD", store.keys.sfc_active_jobs(), "J1")
    await restore(file, settings, {}, NOW, nobody, force=False)
    assert await store.execute("EXISTS", store.keys.joborder("J1")) == 1


async def test_unwritable_directory_is_reported(backup: Path, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unavailable, match="Permission denied"):
        await restore(backup, settings, {}, NOW, nobody, force=False)


def test_manifest_of_format_1_is_read() -> None:
    text = b'{"format":1,"version":"0.1.0","made_at":1,"gateway":"e","members":{"a":{"sha256":"x"}}}'
    assert msgspec.json.decode(text, type=Manifest).members["a"].mode == 0o600
