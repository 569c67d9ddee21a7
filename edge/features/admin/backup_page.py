"""Backups at the station page and in the HTTP API: what there is, download, and upload of one for a restore.

A file that is uploaded is checked as `edge restore` does, by the same command in a process of its own: what it unpacks
to is not in the memory of the gateway. The restore itself is done on the machine, as the gateway has to stand still.
"""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from edge.access.web_audit import WebCaller
from edge.app.gateway_files import is_secret
from edge.app.operations import ARCHIVE, remove_old_files
from edge.app.page_part import ApiCall, ApiOperation, PageData, PageServices, StreamedArchive, Upload
from edge.features.admin.administration import administration, recorded
from edge.features.admin.archive import Manifest, read_manifest
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import local
from edge.foundation.text import Text
from edge.model.instant import Instant, parse_instant, rfc3339
from edge.model.user import Role

GZIP: Final = "application/gzip"
_PIECE: Final = 1 << 20
_CHECK_S: Final = 300.0
_LONGEST_REASON: Final = 1000
_FREE_BYTES: Final = 512 << 20
"""What stays free on the disk: the store of the gateway may be there."""


class PublicBackup(Struct, frozen=True, kw_only=True):
    """A backup in the folder of operations: of which gateway it is, made when by which version.

    `has_keys`: it holds private keys or files of passwords, and leaves this machine by hand only. `fault` is why it
    cannot be read.
    """

    name: str
    size_bytes: int
    is_uploaded: bool
    gateway: str
    version: str
    made_at: Instant | None
    has_keys: bool
    fault: str


class BackupList(Struct, frozen=True, kw_only=True):
    """The backups in the folder of operations, the newest first."""

    backups: tuple[PublicBackup, ...]


class CheckedUpload(Struct, frozen=True, kw_only=True):
    """A backup that was uploaded and can be restored on this machine; `file` is its path there."""

    name: str
    file: str
    backups: tuple[PublicBackup, ...]


def _folder(services: PageServices) -> Path:
    return Path(administration(services).settings.operations.directory)


def _prefix(services: PageServices, kind: str) -> str:
    return f"{administration(services).settings.gateway.name}-{kind}"


def list_backups(services: PageServices, language: str) -> tuple[PublicBackup, ...]:
    """Return the backups in the folder of operations, the newest first. It reads files: call it in a thread."""
    kinds = {_prefix(services, "backup"): False, _prefix(services, "upload"): True}
    files = [(file, is_uploaded) for prefix, is_uploaded in kinds.items() for file in _files(_folder(services), prefix)]
    backups = [_public(file, language, is_uploaded=is_uploaded) for file, is_uploaded in files]
    return tuple(sorted(backups, key=lambda backup: backup.made_at or "", reverse=True))


def _files(folder: Path, prefix: str) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from sorted(folder.glob(f"{prefix}-*{ARCHIVE}"))


def _public(file: Path, language: str, *, is_uploaded: bool) -> PublicBackup:
    manifest, fault = Manifest(version="", made_at=0, gateway="", members={}), ""
    try:
        manifest = read_manifest(file)
    except (Refused, Unavailable) as error:
        fault = error.text.in_language(language)
    return PublicBackup(
        name=file.name,
        size_bytes=file.stat().st_size,
        is_uploaded=is_uploaded,
        gateway=manifest.gateway,
        version=manifest.version,
        made_at=rfc3339(manifest.made_at) if manifest.made_at else None,
        has_keys=any(map(is_secret, manifest.members)),
        fault=fault,
    )


async def _list(services: PageServices, call: ApiCall) -> BackupList:
    return BackupList(backups=await asyncio.to_thread(list_backups, services, call.caller.language))


async def _download(services: PageServices, call: ApiCall) -> StreamedArchive:
    name, language = call.path["backup"], call.caller.language
    with recorded(services, call.caller, "backup download", name):
        # Only a name of the list is a file: a path of the request never is.
        backups = {backup.name: backup for backup in await asyncio.to_thread(list_backups, services, language)}
        if name not in backups:
            raise Refused("unknown_backup", Text.of("there is no backup {name!r}.", name=name), "Look at the list.")
        if backups[name].has_keys:
            fault = Text.of("{name} holds private keys.", name=name)
            raise Refused("has_keys", fault, "Copy it on the machine, as its administrator.")
    return StreamedArchive(_pieces(_folder(services) / name), name, GZIP)


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            yield piece


async def _upload(services: PageServices, call: ApiCall) -> CheckedUpload:
    opened, folder = administration(services), _folder(services)
    if opened.uploading.locked():
        raise Refused("busy", "another backup is uploaded now.", "Try again when it has ended.")
    at = local(parse_instant(rfc3339(services.clock())))
    name = f"{_prefix(services, 'upload')}-{at:%Y%m%d-%H%M%S}{ARCHIVE}"
    async with opened.uploading:
        with recorded(services, call.caller, "backup upload", name):
            # Always the same: one that a power cut left is replaced, not kept for ever.
            part = folder / f"{_prefix(services, 'upload')}.part"
            try:
                await _receive(call.body, part)
                await _check(part, opened.settings_file)
                await asyncio.to_thread(part.rename, folder / name)
            except OSError as error:
                fault = Text.of("{file}: {reason}", file=error.filename or part, reason=error.strerror)
                advice = "Set [operations] directory to a folder that the service may write."
                raise Refused("file", fault, advice) from error
            finally:
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
        remove_old_files(folder, _prefix(services, "upload"), opened.settings.operations.kept_files)
    backups = await asyncio.to_thread(list_backups, services, call.caller.language)
    return CheckedUpload(name=name, file=str(folder / name), backups=backups)


async def _receive(upload: Upload, part: Path) -> None:
    """Write a file as it arrives, readable by its owner only. Raises Refused when the disk has no room, OSError."""
    part.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        async for piece in upload.pieces:
            disk = os.statvfs(part.parent)
            if disk.f_bavail * disk.f_frsize < _FREE_BYTES:
                raise Refused("no_space", "the disk is nearly full.", "Remove files, or restore on the machine.")
            await asyncio.to_thread(file.write, piece)


async def _check(file: Path, settings_file: Path | None) -> None:
    """Check a file as `edge restore --check` does, in a process of its own. Raises Refused with its reason."""
    named = ("--settings", str(settings_file)) if settings_file else ()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge", "restore", "--check", *named, str(file)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_CHECK_S):
            _, errors = await process.communicate()
    except TimeoutError:
        raise Refused("archive", Text.of("its check took more than {seconds:g} s", seconds=_CHECK_S)) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        reason = errors.decode(errors="replace").replace(str(file), file.name.removesuffix(".part")).strip()
        raise Refused("archive", re.sub(r"(?m)^edge: ", "", reason)[:_LONGEST_REASON], "Use another backup.")


async def backups_page(services: PageServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    """Return the backups, and how one is restored."""
    caller.require(Role.ENGINEER)
    return "backups.html", {
        "backups": await asyncio.to_thread(list_backups, services, caller.language),
        "folder": str(_folder(services)),
        "subjects": ["station"],
    }


OPERATIONS: Final = (
    ApiOperation("GET", "/backups", "List the backups in the folder of operations.", Role.ENGINEER, BackupList, _list),
    ApiOperation(
        "GET",
        "/backups/{backup}",
        "Return a backup that holds no private keys.",
        Role.ENGINEER,
        StreamedArchive,
        _download,
    ),
    ApiOperation(
        "POST",
        "/backups/upload",
        "Upload a backup, and check that this machine can restore it; at most 256 MiB.",
        Role.ENGINEER,
        CheckedUpload,
        _upload,
        Upload,
    ),
)
