"""Saves a gateway in one file: settings, certificates, users and the content of the store."""

import asyncio
import grp
import pwd
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from edge import __version__
from edge.app.feature import FileFolder
from edge.app.features import folders_of, gateway_settings
from edge.app.gateway_files import is_secret, locate_files, passwords_in
from edge.config import Settings, main_file
from edge.features.admin.archive import MANIFEST, Manifest, Member, sha256, write_archive
from edge.features.admin.snapshot import dump
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text, join_texts
from edge.store.open_store import open_store

STORE = "store.jsonl"

Progress = Callable[[Text], None]
"""Receives one line of text for each stage of the work."""


class Part(StrEnum):
    """Optional parts of a backup, in addition to settings, certificates and users."""

    KEYS = "keys"
    STORE = "store"


async def back_up(
    file: Path, given: Path | None, environ: Mapping[str, str], parts: Collection[Part], now: int, progress: Progress
) -> None:
    """Write the backup; `now` is its instant.

    Raises SettingsError and Unavailable; a backup is complete, or no file is written.
    """
    settings = gateway_settings(given, environ)
    contents, members = await asyncio.to_thread(_files, settings, main_file(given, environ), parts)
    progress(_described_files(members, folders_of(settings), parts))
    if Part.STORE in parts and settings.redis.url == "embedded:":
        progress(Text.of("store: left out, because it exists only within the process of the gateway"))
    elif Part.STORE in parts:
        contents[STORE] = await _store(settings, now, progress)
        members[STORE] = Member(sha256(contents[STORE]))
    manifest = Manifest(version=__version__, made_at=now, gateway=settings.gateway.name, members=members)
    whole = {MANIFEST: msgspec.json.format(msgspec.json.encode(manifest)), **contents}
    size = await asyncio.to_thread(write_archive, file, whole, now)
    progress(Text.of("{file}: {size:,} bytes, readable by its owner only", file=file, size=size))


async def _store(settings: Settings, now: int, progress: Progress) -> bytes:
    async with open_store(settings.redis, consumer=None) as store:
        kept = await dump(store, now)
    progress(Text.of("store: {count} keys", count=len(kept)))
    return msgspec.json.Encoder().encode_lines(kept)


def _files(settings: Settings, main: Path, parts: Collection[Part]) -> tuple[dict[str, bytes], dict[str, Member]]:
    contents, members = {}, {}
    try:
        for name, path in locate_files(settings, main).existing():
            if is_secret(name) and Part.KEYS not in parts:
                continue
            contents[name] = path.read_bytes()
            members[name] = _described(path, contents[name])
    except OSError as error:
        message = Text.of("{filename} cannot be read: {reason}", filename=error.filename, reason=error.strerror)
        raise Unavailable(message, "Call it as root (sudo).") from error
    return contents, members


def _described_files(members: Mapping[str, Member], folders: Mapping[str, FileFolder], parts: Collection[Part]) -> Text:
    """Return what a backup holds apart from the store, and the secrets that are in it or left out."""
    kinds = join_texts(", ", dict.fromkeys(_kind(name, folders) for name in members))
    stated = [Text.of("files: {count} ({kinds})", count=len(members), kinds=kinds)]
    if Part.KEYS not in parts:
        stated.append(Text.of("not saved: private keys, files of passwords/"))
    paths = [Path(member.path) for member in members.values()]
    found = [f"{path.name}: {name}" for path in paths if path.suffix == ".toml" for name in passwords_in(path)]
    if found:
        stated.append(Text.of("with the passwords in {places}", places=", ".join(found)))
    return join_texts("; ", stated)


def _kind(name: str, folders: Mapping[str, FileFolder]) -> str | Text:
    """Return what a member of a backup is, as people name it."""
    if name == "opcua/users":
        return "users with password hashes and second factors"
    if name.startswith("settings/passwords/"):
        return "files of passwords/"
    if is_secret(name):
        return "private keys"
    folder = folders.get(name.rpartition("/")[0])
    if folder:
        return folder.holds
    return "settings" if name.startswith("settings/") else "certificates"


def _described(path: Path, content: bytes) -> Member:
    status = path.stat()
    try:
        owner, group = pwd.getpwuid(status.st_uid).pw_name, grp.getgrgid(status.st_gid).gr_name
    except KeyError:  # an owner that is unknown on this machine
        owner, group = "", ""
    return Member(sha256(content), str(path), status.st_mode & 0o777, owner, group)
