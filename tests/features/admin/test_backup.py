"""A backup contains the files and data of a gateway that were requested, and no others."""

from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.features.admin.archive import read_archive
from edge.features.admin.backup import Part, back_up
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.text import Text
from edge.store.client import Store
from tests.features.admin.gateways import furnish

NOW = 1_790_000_000_000


async def saved(settings: Path, *parts: Part) -> tuple[dict[str, bytes], list[str]]:
    reported: list[Text] = []
    file = settings.parent.parent / "b.tar.gz"
    await back_up(file, settings, {}, parts, NOW, reported.append)
    assert file.stat().st_mode & 0o777 == 0o600
    manifest, contents = read_archive(file)
    assert (manifest.made_at, manifest.gateway) == (NOW, "edge")
    return contents, list(map(str, reported))


async def test_backup_contains_settings_certificates_users_and_store(
    store: Store, redis: RedisSettings, tmp_path: Path
) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "rev", "1")
    contents, reported = await saved(furnish(tmp_path / "etc", redis), Part.STORE)
    (trusted,) = (name for name in contents if name.startswith("opcua/trusted/"))
    assert contents.keys() == {
        *("settings/edge.toml", "settings/conf.d/site.toml", "opcua/users", "opcua/own.der", trusted, "store.jsonl")
    }
    assert b'"joborder:J1"' in contents["store.jsonl"]
    assert reported[0] == (
        "files: 5 (settings, users with password hashes and second factors, certificates); "
        "not saved: private keys, files of passwords/; with the passwords in edge.toml: mqtt.password"
    )
    assert reported[1].startswith("store: ")


async def test_backup_contains_private_keys_only_if_requested(redis: RedisSettings, tmp_path: Path) -> None:
    settings = furnish(tmp_path / "etc", redis)
    assert b"PRIVATE KEY" not in b"".join((await saved(settings))[0].values())
    assert b"PRIVATE KEY" in (await saved(settings, Part.KEYS))[0]["opcua/own.pem"]


async def test_saved_private_keys_and_password_files_are_reported(redis: RedisSettings, tmp_path: Path) -> None:
    settings = furnish(tmp_path / "etc", redis)
    (settings.parent / "passwords").mkdir()
    (settings.parent / "passwords" / "redis").write_text("secret")
    _, reported = await saved(settings, Part.KEYS)
    assert "private keys, files of passwords/)" in reported[0]
    assert "not saved" not in reported[0]


async def test_unavailable_store_leaves_no_partial_backup(tmp_path: Path) -> None:
    settings = furnish(tmp_path / "etc", RedisSettings(url=f"unix://{tmp_path}/none.sock"))
    with pytest.raises(Unavailable):
        await saved(settings, Part.STORE)
    assert not Path.exists(tmp_path / "b.tar.gz")
    assert "store.jsonl" not in (await saved(settings))[0]


async def test_embedded_store_is_reported_as_not_saved(tmp_path: Path) -> None:
    contents, reported = await saved(furnish(tmp_path / "etc", RedisSettings(url="embedded:")), Part.STORE)
    assert "store.jsonl" not in contents
    assert "exists only within" in reported[1]


async def test_unusable_settings_are_reported(tmp_path: Path) -> None:
    settings = furnish(tmp_path / "etc", RedisSettings())
    settings.write_text("[redis]\nulr = 1")
    with pytest.raises(SettingsError, match="ulr"):
        await saved(settings)
