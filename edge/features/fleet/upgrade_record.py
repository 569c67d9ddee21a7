"""The records of package upgrades: root writes them, and the gateway follows them across its own restart."""

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from edge.features.fleet.signature import FleetState
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.files import write_atomically
from edge.foundation.text import Text

FOLDER: Final = Path("/var/lib/microdcs-edge-upgrade")
"""Owned by root; the group of the gateway may read it."""
SOCKET: Final = Path("/run/microdcs-edge-upgrade.sock")
_LOCK: Final = "lock"
_MODE: Final = 0o640
_SUFFIX: Final = ".json"
_LOOKS: Final = 10
_LOOK_S: Final = 0.05


class UpgradeRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One upgrade, named by the id of its command; `exp` is the expiry of the command in seconds since the epoch."""

    id: str
    state: FleetState
    exp: int
    output: str = ""
    reason: str = ""


class UpgradeReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the gateway is answered at once: the upgrade runs, or why it does not."""

    state: FleetState
    reason: str = ""


def claim(folder: Path, record: UpgradeRecord) -> bool:
    """Write the first record of a command; return False when there is one: a command is executed once."""
    try:
        descriptor = os.open(_file(folder, record.id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except FileExistsError:
        return False
    os.close(descriptor)
    save(folder, record)
    return True


def save(folder: Path, record: UpgradeRecord) -> None:
    """Replace the record of a command. Raises OSError."""
    write_atomically(_file(folder, record.id), msgspec.json.encode(record), _MODE)


def load(folder: Path, id: str) -> UpgradeRecord | None:
    """Return the record of a command; None without a readable one."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(_file(folder, id).read_bytes(), type=UpgradeRecord)
    return None


def remove_expired(folder: Path, before_s: int) -> None:
    """Remove the records of commands that expired before an instant: they cannot be repeated any more."""
    for file in folder.glob(f"*{_SUFFIX}"):
        upgrade_record = load(folder, file.stem)
        if upgrade_record is not None and upgrade_record.exp < before_s:
            file.unlink(missing_ok=True)


@contextmanager
def only_upgrade(folder: Path) -> Iterator[bool]:
    """Lock upgrades for the length of the block; yield False when another process holds the lock."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        above = folder.stat()
        if os.geteuid() == 0:
            os.fchown(descriptor, above.st_uid, above.st_gid)
            os.fchmod(descriptor, _MODE)
        yield _is_soon_free(descriptor)
    finally:
        os.close(descriptor)


def is_running(folder: Path) -> bool:
    """Return whether a process holds the lock of upgrades."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _is_free(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _is_soon_free(descriptor: int) -> bool:
    """Return whether the file could be locked; wait shortly for a gateway that holds the lock while it reads."""
    for _ in range(_LOOKS):
        if _is_free(descriptor, fcntl.LOCK_EX):
            return True
        time.sleep(_LOOK_S)
    return False


def _is_free(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file(folder: Path, id: str) -> Path:
    return folder / f"{id}{_SUFFIX}"


_ANSWER_WITHIN_S = 120.0
_LOOK_EVERY_S = 1.0
_ADVICE = Text.of("Permit upgrades: systemctl enable --now microdcs-edge-upgrade.socket")


async def request_upgrade(id: str, text: str, socket: Path = SOCKET, folder: Path = FOLDER) -> str:
    """Request a signed upgrade from the unit of root; return its output. Raises Refused and Unavailable."""
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            reply = await _ask(text, socket)
    except TimeoutError as error:
        raise Unavailable(
            Text.of(
                "{socket} did not answer within {answer_within_s:.0f} s",
                socket=socket,
                answer_within_s=_ANSWER_WITHIN_S,
            )
        ) from error
    except OSError as error:
        problem = Text.of(
            "this gateway is not upgraded by commands: {socket}: {reason}. {advice}",
            socket=socket,
            reason=error.strerror,
            advice=_ADVICE,
        )
        raise Refused("upgrade", problem, _ADVICE) from error
    if reply.state is not FleetState.EXECUTING:
        raise Refused("upgrade", reply.reason)
    return await follow_upgrade(id, folder)


async def follow_upgrade(id: str, folder: Path = FOLDER, look_every_s: float = _LOOK_EVERY_S) -> str:
    """Wait for the end of an upgrade; return its output. Raises Refused when it failed or was interrupted."""
    while True:
        # Asked before the record is read: the record of an upgrade that has ended is complete.
        runs = await asyncio.to_thread(is_running, folder)
        upgrade_record = await asyncio.to_thread(load, folder, id)
        match upgrade_record.state if upgrade_record else None:
            case FleetState.SUCCESSFUL:
                return upgrade_record.output if upgrade_record else ""
            case FleetState.FAILED:
                raise Refused("upgrade", upgrade_record.reason if upgrade_record else "")
            case _ if not runs:
                problem = "the upgrade was interrupted; look at it: journalctl -u 'microdcs-edge-upgrade@*'"
                raise Refused("upgrade", problem, "Then: sudo dpkg --configure -a")
            case _:
                await asyncio.sleep(look_every_s)


async def _ask(text: str, socket: Path) -> UpgradeReply:
    reader, writer = await asyncio.open_unix_connection(str(socket))
    try:
        writer.write(text.encode() + b"\n")
        writer.write_eof()
        return msgspec.json.decode(await reader.readline(), type=UpgradeReply)
    except (msgspec.DecodeError, ValueError) as error:
        raise Unavailable("the unit microdcs-edge-upgrade@ did not answer; its journal has the reason") from error
    finally:
        writer.close()
