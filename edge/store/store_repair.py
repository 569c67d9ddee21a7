r"""Repairs the append-only file of a store that does not start after a power cut.

Only what a power cut leaves is cut off: a torn command and zeros at the end of the last file. Nothing can be read from
them. The checks of the server itself have to accept the result before it replaces the file. The damaged file is kept.

The file has commands of RESP, `*1\r\n$4\r\nPING\r\n`. A power cut leaves at its end what the file system had allocated
and not written: a part of a command, zeros, or both. fsync had not confirmed these bytes: with `appendfsync everysec`
they are of the last two seconds, unless the storage lost what it had confirmed. Other bytes after the last whole
command are a damage that the file does not explain.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.files import write_atomically
from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.sentinels import is_sentinel

_LINE_END = b"\r\n"
_MOST_HEAD = 32
"""The longest first line of a command or of an argument, in bytes."""


class Rest(Enum):
    """What follows the last whole command of a file."""

    NONE = "nothing"
    TORN = "a torn command, an open transaction or zeros"
    DAMAGE = "bytes that are not a command"


class Survey(Struct, frozen=True):
    """The number of bytes up to the last whole command outside of a transaction, and what follows them."""

    whole: int
    rest: Rest


class _TornError(Exception):
    """The content ends within a command."""


class _DamageError(Exception):
    """The content is not a command."""


def survey(content: bytes) -> Survey:
    r"""Return how far a file is whole.

    survey(b"*1\r\n$4\r\nPING\r\n" + bytes(512)) == Survey(14, Rest.TORN)
    """
    position, whole, is_open = 0, 0, False
    while position < len(content):
        try:
            position, name = _command(content, position)
        except (_TornError, _DamageError):
            return Survey(whole, Rest.TORN if _is_torn(content[position:]) else Rest.DAMAGE)
        is_open = name == b"MULTI" or (is_open and name != b"EXEC")
        if not is_open:
            whole = position
    return Survey(whole, Rest.TORN if is_open else Rest.NONE)


def _is_torn(rest: bytes) -> bool:
    """Return whether the bytes are the beginning of one command, or none, with zeros behind it."""
    begun = rest.rstrip(b"\0")
    if not begun:
        return True
    try:
        _command(begun, 0)
    except _TornError:
        return True
    except _DamageError:
        return False
    # A whole command that is followed by zeros was read before.
    return False


def _command(content: bytes, position: int) -> tuple[int, bytes]:
    """Return the end of the command at a position, and its name in capitals; "" for an annotation."""
    if content[position : position + 1] == b"#":
        end = content.find(_LINE_END, position)
        if end < 0:
            raise _TornError
        return end + len(_LINE_END), b""
    position, count = _number(content, position, b"*")
    name = b""
    for number in range(count):
        position, length = _number(content, position, b"$")
        end = position + length
        if number == 0:
            name = content[position:end].upper()
        ending = content[end : end + len(_LINE_END)]
        if not _LINE_END.startswith(ending):
            raise _DamageError
        if len(ending) < len(_LINE_END):
            raise _TornError
        position = end + len(_LINE_END)
    return position, name


def _number(content: bytes, position: int, mark: bytes) -> tuple[int, int]:
    """Return the end of a line such as `*3` or `$12`, and its number."""
    line = content[position : position + _MOST_HEAD]
    if not line:
        raise _TornError
    digits, found, _ = line.partition(_LINE_END)
    is_number = digits[:1] == mark and digits[1:].rstrip(b"\r").isdigit()
    if found and is_number and not digits.endswith(b"\r"):
        return position + len(digits) + len(_LINE_END), int(digits[1:])
    # Without its end the line is torn where the content ends, and no line anywhere else.
    if not found and len(line) < _MOST_HEAD and (is_number or line == mark):
        raise _TornError
    raise _DamageError


KEPT = "repaired"
"""The folder of damaged files, below that of the store; each repair has a folder of its own there."""
_REPORT = "report.json"
_FOLDER = "appendonlydir"
_MANIFEST = "appendonly.aof.manifest"
_ANY_FILE = "appendonly.aof.*"
_CHECK_WITHIN_S = 300.0
_MOST_KEPT = 3
_SNAPSHOTS = (b"REDIS", b"VALKEY")
"""How a snapshot begins; a base file may be one, or have commands."""
_PAGE = Text.of("The page store-repair.md says the way back for each case.")


class RepairReport(Struct, frozen=True, kw_only=True):
    """A repair: its instant in milliseconds since the epoch, the file, and the bytes that were cut off at its end."""

    at: int
    file: str
    cut_bytes: int
    whole_bytes: int
    kept: str = ""
    """The folder of the damaged file; empty where the report lies in it."""
    discarded: bool = False
    """Whether a person had commands behind a damage cut off, too."""


class StoreRepair(Struct, frozen=True):
    """A repair with the folder of the damaged file, and its report where that lies elsewhere."""

    report: RepairReport
    kept: Path
    elsewhere: Path | None = None

    @property
    def remains(self) -> str:
        """Return what a person removes when the cause is found, as arguments of `rm -r`."""
        return " ".join(map(str, filter(None, (self.kept, self.elsewhere))))


def refuse_unlisted(directory: Path) -> None:
    """Raise Refused(`damaged`) where a store has files and no list of them: a server would start empty next to them.

    Its next rewrite would remove them. Empty files are those of a first start that a power cut ended.
    """
    folder = directory / _FOLDER
    if not (folder / _MANIFEST).exists() and any(file.stat().st_size for file in folder.glob(_ANY_FILE)):
        raise _without_manifest(folder)


def _without_manifest(folder: Path) -> Refused:
    return Refused("damaged", Text.of("{folder} has no manifest of an append-only file", folder=folder), _PAGE)


def repair_store(
    directory: Path, program: Path, now: int, reports: Path | None = None, *, discard_damage: bool = False
) -> StoreRepair | None:
    """Repair the append-only file in the directory of a store that is stopped; None when the file is whole.

    `program` is the server, which checks the result under the name redis-check-aof; `now` is in milliseconds since the
    epoch. The report is written into `reports`, too, where the gateway may not read the directory. With
    `discard_damage` also commands behind a damage of the last file are cut off, which a person has to decide. Raises
    Refused(`damaged`) for every other damage, Refused(`in_use`) while a process has the file open, Unavailable when a
    file cannot be read or written; the file is repaired when it names a file in `reports`.
    """
    try:
        repair = _repair(directory, program, now, discard_damage=discard_damage)
        return repair if repair is None or reports is None else _report_elsewhere(repair, reports)
    except OSError as error:
        message = Text.of("{filename}: {reason}", filename=error.filename or directory, reason=error.strerror or error)
        raise Unavailable(message, "Call it as root (sudo), and free space on its disk.") from error


def load_repairs(directory: Path) -> tuple[StoreRepair, ...]:
    """Return the repairs whose damaged files are kept, the oldest first. Raises OSError."""
    store_repairs = []
    for report in sorted((directory / KEPT).glob(f"*/{_REPORT}")):
        try:
            store_repairs.append(
                StoreRepair(msgspec.json.decode(report.read_bytes(), type=RepairReport), report.parent)
            )
        except msgspec.DecodeError:
            continue
    return tuple(store_repairs)


def load_reports(reports: Path) -> tuple[StoreRepair, ...]:
    """Return the repairs of a store whose directory the gateway may not read, the oldest first. Raises OSError."""
    store_repairs = []
    for file in sorted(reports.glob("*.json")):
        with suppress(msgspec.DecodeError):
            report = msgspec.json.decode(file.read_bytes(), type=RepairReport)
            store_repairs.append(StoreRepair(report, Path(report.kept), file))
    return tuple(store_repairs)


def _report_elsewhere(repair: StoreRepair, reports: Path) -> StoreRepair:
    """Write the report of a repair for the gateway to read; remove the oldest ones beyond a number."""
    file = reports / f"{repair.report.at}.json"
    report = replace(repair.report, kept=str(repair.kept))
    write_atomically(file, msgspec.json.encode(report) + b"\n", 0o644)
    for old in sorted(reports.glob("*.json"))[:-_MOST_KEPT]:
        old.unlink()
    return StoreRepair(report, repair.kept, file)


async def find_repairs(store: Store, settings: RedisSettings) -> tuple[StoreRepair, ...]:
    """Return the repairs of the store on this machine that stand to be looked at; none where they cannot be seen.

    Of a store behind Sentinel that is the data node of this machine. Raises Unavailable without the store.
    """
    if is_sentinel(settings.url):
        with suppress(OSError):
            return await asyncio.to_thread(load_reports, Path(settings.repair_reports))
        return ()
    if not settings.url.startswith(("unix:", "embedded:")):
        return ()
    configured = await store.execute("CONFIG", "GET", "dir")
    try:
        return await asyncio.to_thread(load_repairs, Path(configured["dir"]))
    except (OSError, KeyError):
        return ()


def _repair(directory: Path, program: Path, now: int, *, discard_damage: bool) -> StoreRepair | None:
    folder = directory / _FOLDER
    files = _files(folder)
    for file in files:
        if not file.exists():
            raise Refused("damaged", Text.of("{file} is missing", file=file), _PAGE)
    last = files[-1]
    if (pid := _user_of(last)) is not None:
        raise Refused(
            "in_use",
            Text.of("process {pid} has {last} open", pid=pid, last=last),
            "Stop the store first: systemctl stop its unit.",
        )
    content = last.read_bytes()
    found = survey(content)
    match found.rest:
        case Rest.NONE:
            _check(files, program, content)
            return None
        case Rest.DAMAGE if not discard_damage:
            message = Text.of(
                "{last} is damaged at byte {whole}: more than a power cut leaves at its end",
                last=last,
                whole=found.whole,
            )
            raise Refused(
                "damaged", message, Text.of("It is not cut off there, since that could lose jobs. {page}", page=_PAGE)
            )
        case Rest.TORN | Rest.DAMAGE:
            _check(files, program, content[: found.whole])
    report = RepairReport(
        at=now,
        file=last.name,
        cut_bytes=len(content) - found.whole,
        whole_bytes=found.whole,
        discarded=found.rest is Rest.DAMAGE,
    )
    path = _new_folder(directory, now)
    # The damaged file is kept before it is replaced: after a power cut in between, the repair begins again.
    os.link(last, path / last.name)
    write_atomically(path / _REPORT, msgspec.json.encode(report) + b"\n", 0o640)
    write_atomically(last, content[: found.whole], last.stat().st_mode & 0o777)
    return StoreRepair(report, path)


def _new_folder(directory: Path, now: int) -> Path:
    """Create the folder of a repair, for the owner of the store.

    Remove the oldest ones beyond a number, and those of repairs that a power cut ended: these have no report.
    """
    kept = directory / KEPT / str(now)
    for report in (path / _REPORT for path in (directory / KEPT).glob("*") if path.name.isdigit()):
        if not report.exists():
            shutil.rmtree(report.parent)
    kept.mkdir(parents=True, mode=0o750)
    if os.geteuid() == 0:
        owner = directory.stat()
        for path in (kept.parent, kept):
            os.chown(path, owner.st_uid, owner.st_gid)
    for repair in load_repairs(directory)[: -_MOST_KEPT + 1 or None]:
        shutil.rmtree(repair.kept)
    return kept


def _user_of(file: Path) -> int | None:
    """Return the id of a process that has a file open, as far as this user may see it."""
    for process in _processes():
        with suppress(OSError):
            if any(link.readlink() == file.resolve() for link in (process / "fd").iterdir()):
                return int(process.name)
    return None


def _processes() -> Iterator[Path]:
    yield from (path for path in Path("/proc").iterdir() if path.name.isdigit())


def _files(folder: Path) -> list[Path]:
    """Return the files of the store in the order of the manifest: only the end of the last one can be torn."""
    manifest = folder / _MANIFEST
    if not manifest.exists():
        raise _without_manifest(folder)
    files, is_increment = [], False
    for line in manifest.read_text(encoding="utf-8", errors="replace").splitlines():
        match line.split():
            case ["file", name, "seq", _, "type", ("b" | "i") as kind, *_]:
                files.append(folder / Path(name).name)
                is_increment = kind == "i"
            case ["file", _, "seq", _, "type", "h", *_] | []:
                continue  # a file that a rewrite has replaced
            case _:
                raise Refused("damaged", Text.of("{manifest} cannot be read", manifest=manifest), _PAGE)
    if not is_increment:
        raise Refused(
            "damaged",
            Text.of("{manifest} cannot be read: it ends without an append-only file", manifest=manifest),
            _PAGE,
        )
    return files


def _check(files: Sequence[Path], program: Path, content: bytes) -> None:
    """Check each file by the server's own tools, with this content of the last one. Raises Refused."""
    *others, last = files
    with tempfile.TemporaryDirectory(prefix="check-", dir=last.parent.parent) as name:
        copy = Path(name, last.name)
        copy.write_bytes(content)
        for file in (*others, copy):
            # The server is the tool of this name: Debian installs one program under several.
            tool = Path(name, "redis-check-rdb" if _is_snapshot(file) else "redis-check-aof")
            tool.unlink(missing_ok=True)
            tool.symlink_to(program)
            command = [str(tool), str(file)]
            ended = subprocess.run(command, capture_output=True, check=False, timeout=_CHECK_WITHIN_S)  # noqa: S603 - the server
            if ended.returncode:
                lines = (ended.stdout + ended.stderr).decode(errors="replace").strip().splitlines()
                message = Text.of(
                    "{parent} is damaged: {lines}",
                    parent=last.parent / file.name,
                    lines=lines[-1] if lines else Text.of("the check failed"),
                )
                raise Refused(
                    "damaged", message, Text.of("It is not repaired, since that could lose jobs. {page}", page=_PAGE)
                )


def _is_snapshot(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(max(map(len, _SNAPSHOTS))).startswith(_SNAPSHOTS)
