"""Restores a gateway from a backup: validates everything first, then writes."""

import asyncio
import contextlib
import grp
import os
import pwd
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import msgspec

from edge.access.audit_trail import plan_append
from edge.access.instances import working_instances
from edge.app.feature import FileFolder
from edge.app.features import gateway_settings
from edge.app.gateway_files import REPLACED_SUFFIX, GatewayFiles, environment_variable, is_below, locate_files
from edge.config import Settings, main_file
from edge.features.admin.archive import Member, memory_limit, read_archive
from edge.features.admin.backup import STORE, Progress
from edge.features.admin.snapshot import KeyDump, StringKey, leased_instances, restore_dump
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.foundation.files import make_directory, write_atomically
from edge.foundation.text import Text
from edge.model.audit import AuditRecord
from edge.model.plant import Operation, OperationState, OperationType
from edge.store import operations
from edge.store.client import Store
from edge.store.commit import Committed, join
from edge.store.open_store import open_store
from edge.store.runs import active_jobs
from edge.store.server_check import STORE_VERSION
from edge.store.server_time import server_time


async def record_restore(store: Store, settings: Settings, file: Path, by: str, started: int) -> Operation:
    """Write the operation and its audit record in one commit. Raises Unavailable.

    No gateway executes a restore: it replaces the store that it would work on, and with it the record of its begin.
    """
    ended = await server_time(store)
    operation = Operation(
        id=uuid.uuid4().hex[:12],
        type=OperationType.RESTORE,
        state=OperationState.DONE,
        by=by,
        owner="edge restore",
        due=started,
        created=started,
        started=started,
        ended=ended,
        result=str(file),
    )
    record = AuditRecord(
        at=ended,
        kind="cli.call",
        instance=settings.gateway.name,
        user=by,
        action="restore",
        subject=str(file),
        status="Good",
        comment=operation.id,
    )
    while True:
        audited = await plan_append(store, [record], settings.retention.audit)
        done = operations.save(store.keys, operations.StoredOperation(operation, 0.0, None), operation, 100.0)
        if isinstance(await store.commit(join((done, audited))), Committed):
            return operation


STATE_DIRECTORY = Path("/var/lib/microdcs-edge")

_FRESH = frozenset({"opcua/own.der"})
"""Generated from other files at each start."""
_WHOLE_FOLDERS = frozenset({"settings/conf.d", "opcua/trusted"})
"""Folders whose other files would still take effect: they are replaced as a whole."""
_SHARED_BITS = 0o755
"""Mode bits that an archive may set: no file becomes writable by others."""
_SHOWN = 5


class _RestorePlan(msgspec.Struct, frozen=True):
    """The files to write, and the files to replace."""

    files: dict[Path, tuple[bytes, Member]]
    aside: list[Path]
    settings: Settings


async def check_backup(
    file: Path, given: Path | None, environ: Mapping[str, str], progress: Progress
) -> tuple[list[KeyDump] | None, _RestorePlan]:
    """Return the store of a backup and the plan of its files, without a change of this machine. Raises as `restore`."""
    manifest, contents = await asyncio.to_thread(read_archive, file, memory_limit())
    snapshot = _snapshot(file, contents.pop(STORE, None))
    plan = await asyncio.to_thread(_plan, contents, manifest.members, main_file(given, environ), environ)
    progress(
        Text.of(
            "{file}: gateway {gateway}, microdcs-edge {version}, {count} files",
            file=file,
            gateway=manifest.gateway,
            version=manifest.version,
            count=len(contents),
        )
    )
    return snapshot, plan


async def restore(
    file: Path,
    given: Path | None,
    environ: Mapping[str, str],
    now: int,
    progress: Progress,
    *,
    force: bool,
    by: str = "edge",
) -> None:
    """Restore a backup for the user `by`; `force` allows it over running jobs and a running gateway.

    Raises Refused when the archive is invalid, would write to a forbidden path, or jobs run; SettingsError when its
    settings are invalid here; Unavailable when a file or the store cannot be written. The store is replaced in one
    transaction; replaced files are kept under another ending.
    """
    snapshot, plan = await check_backup(file, given, environ, progress)
    async with _open(plan.settings, snapshot) as store:
        if store is not None and snapshot is not None:
            if not force:
                await _refuse_over_work(store)
            every = len(snapshot)
            await restore_dump(
                store,
                snapshot,
                now,
                lambda done: progress(Text.of("store: {done} of {every} keys", done=done, every=every)),
            )
            await record_restore(store, plan.settings, file, by, now)
            if resumed := await active_jobs(store):
                listed = _listed(resumed)
                progress(
                    Text.of("these jobs ran at the time of the backup and continue from there: {jobs}", jobs=listed)
                )
                progress(Text.of("to prevent that, abort them before the gateway starts: edge jobs abort JOB"))
    for path in plan.aside:
        progress(Text.of("kept: {path}", path=f"{path}{REPLACED_SUFFIX}"))
    try:
        await asyncio.to_thread(_write, plan)
    except OSError as error:
        message = Text.of("{filename} cannot be written: {reason}", filename=error.filename, reason=error.strerror)
        raise Unavailable(message, "Call it as root (sudo); the restore can be repeated.") from error
    for path in plan.files:
        progress(Text.of("restored: {path}", path=path))


@contextlib.asynccontextmanager
async def _open(settings: Settings, snapshot: list[KeyDump] | None) -> AsyncIterator[Store | None]:
    if snapshot is None or settings.redis.url == "embedded:":
        yield None
        return
    async with open_store(settings.redis, consumer=None) as store:
        yield store


async def _refuse_over_work(store: Store) -> None:
    if there := sorted(await working_instances(store, await leased_instances(store))):
        message = Text.of("a gateway works on this store: {there}", there=", ".join(there))
        raise Refused("busy", message, "Stop it (systemctl stop microdcs-edge), or use --force.")
    if running := await active_jobs(store):
        message = Text.of("the store has running jobs: {listed}", listed=_listed(running))
        raise Refused("busy", message, "Wait for their end, or abort them (edge jobs abort JOB), or use --force.")


def _listed(ids: list[str]) -> str | Text:
    first = ", ".join(ids[:_SHOWN])
    if len(ids) <= _SHOWN:
        return first
    return Text.of("{subject} and {count} more", subject=first, count=len(ids) - _SHOWN)


def _snapshot(file: Path, lines: bytes | None) -> list[KeyDump] | None:
    if lines is None:
        return None
    try:
        kept: list[KeyDump] = msgspec.json.Decoder(KeyDump).decode_lines(lines)
        version = next((int(key.value) for key in kept if isinstance(key, StringKey) and key.key == "form"), 0)
    except (msgspec.DecodeError, ValueError) as error:
        raise Refused(
            "archive",
            Text.of("{file} cannot be used: {store}: {reason}", file=file, store=STORE, reason=error),
            "Use another backup.",
        ) from error
    if version > STORE_VERSION:
        message = Text.of(
            "the store of {file} was written by a newer version: its data have version {version}",
            file=file,
            version=version,
        )
        raise Refused("archive", message, "Install the version that made the backup.")
    return kept


def _plan(
    contents: Mapping[str, bytes], members: Mapping[str, Member], main: Path, environ: Mapping[str, str]
) -> _RestorePlan:
    settings = _settings_of(contents, main, environ)
    at = locate_files(settings, main)
    # The settings were read with temporary copies of these files.
    stood = {name: Path(members[name].path) for name in contents if name.startswith("tls/")}
    folders = {
        folder: FileFolder(path.parent) for name, path in stood.items() if (folder := name.rpartition("/")[0]) != "tls"
    }
    at = GatewayFiles({**at.files, **stood}, {**at.folders, **folders})
    allowed = tuple(_allowed(main, environ))
    files = {}
    for name, content in contents.items():
        if name in _FRESH:
            continue
        path = at.of(name)
        if path is None:
            raise Refused(
                "archive",
                Text.of("it contains {name!r}, which is not a file of a gateway", name=name),
                "Use another backup.",
            )
        if not any(is_below(path, item) for item in allowed):
            advice = "Name that path in the settings here first, or restore by hand."
            raise Refused(
                "archive",
                Text.of("it would write {path}, which is not below {parent}", path=path, parent=main.parent),
                advice,
            )
        files[path] = content, members[name]
    return _RestorePlan(files, list(_replaced(at, files)), settings)


def _allowed(main: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the directories that an archive may write to: those of the gateway and of the present settings."""
    yield main.parent
    yield STATE_DIRECTORY
    with contextlib.suppress(SettingsError):  # absent or invalid settings here: the restore corrects them
        here = locate_files(gateway_settings(main, environ), main)
        yield from here.files.values()
        yield from (folder.path for folder in here.folders.values())


def _settings_of(contents: Mapping[str, bytes], main: Path, environ: Mapping[str, str]) -> Settings:
    """Read the settings of a backup with its files, and with the passwords of this machine."""
    passwords = [path for path in main.parent.glob("passwords/*") if path.is_file()]
    here = {f"settings/passwords/{path.name}": _password(path) for path in passwords}
    with tempfile.TemporaryDirectory(prefix="edge-restore-") as directory:
        settings = str(Path(directory, "settings"))
        Path(settings, "passwords").mkdir(parents=True)
        staged = dict(environ)
        for name, content in {**here, **contents}.items():
            path = Path(directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if name.startswith("tls/"):
                named = "/".join(name.split("/")[:2])
                staged[environment_variable(named)] = str(Path(directory, named))
        try:
            return gateway_settings(None, staged | {"CONFIGURATION_DIRECTORY": settings})
        except SettingsError as error:
            problems = [problem.replace(settings, str(main.parent)) for problem in error.problems]
            advice = "A backup without --with-key has no passwords and private keys: install them here first."
            raise SettingsError(["the settings of the backup are invalid here", *problems], advice) from error


def _password(path: Path) -> bytes:
    """Return a password of this machine; a stand-in where only root may read it, as for the check of the service."""
    try:
        return path.read_bytes()
    except PermissionError:
        return b"-"


def _replaced(at: GatewayFiles, files: Mapping[Path, tuple[bytes, Member]]) -> Iterator[Path]:
    """Yield the files that are removed or changed."""
    for name, path in at.existing():
        if path in files:
            if path.read_bytes() != files[path][0]:
                yield path
        elif (folder := name.rpartition("/")[0]) in _WHOLE_FOLDERS or folder.endswith(".trusted"):
            yield path


def _write(plan: _RestorePlan) -> None:
    for path in plan.aside:
        path.replace(path.with_name(path.name + REPLACED_SUFFIX))
    for path, (content, member) in plan.files.items():
        make_directory(path.parent, 0o750)
        write_atomically(path, content, member.mode & _SHARED_BITS)
        if os.geteuid() == 0:
            with contextlib.suppress(KeyError):  # unknown on this machine: the owner of the folder applies
                os.chown(path, pwd.getpwnam(member.owner).pw_uid, grp.getgrnam(member.group).gr_gid)
