"""Writes and reads archives: readable by the owner only, validated completely when read."""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.files import write_atomically
from edge.foundation.text import Text

MANIFEST = "manifest.json"
FORMAT = 1
"""Incremented by a change that older versions cannot read."""

MAX_BYTES = 512 << 20
"""The largest unpacked size on any machine."""
_PEAK = 6
"""A restore takes at most so many times the unpacked size in memory: 3 to 5 times were measured."""

_LARGEST_MANIFEST = 4 << 20
_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f]{1,200}(/(?!\.)[^/\\\x00-\x1f]{1,200}){0,3}")
_ADVICE = "Use another backup: this file is damaged or is not a backup."


class Member(msgspec.Struct, frozen=True):
    """One file of an archive: hash, original path, mode and owner."""

    sha256: str
    path: str = ""
    mode: int = 0o600
    owner: str = ""
    group: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an archive; `made_at` is an instant in milliseconds since the epoch."""

    format: int = FORMAT
    version: str
    made_at: int
    gateway: str
    members: dict[str, Member]


class _ManifestHeader(msgspec.Struct, frozen=True):
    format: int
    version: str


def sha256(content: bytes) -> str:
    """Return the hash of a member."""
    return hashlib.sha256(content).hexdigest()


def write_archive(file: Path, contents: Mapping[str, bytes], now: int) -> int:
    """Write a tar.gz of these members atomically, readable by its owner only; return its size in bytes.

    Raises Unavailable when the file cannot be written.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content in contents.items():
            described = tarfile.TarInfo(name)
            described.size, described.mode, described.mtime = len(content), 0o600, now // 1000
            tar.addfile(described, io.BytesIO(content))
    try:
        write_atomically(file, packed.getvalue(), 0o600)
    except OSError as error:
        raise Unavailable(
            Text.of("{file} cannot be written: {reason}", file=file, reason=error.strerror),
            "Name a file in a writable folder.",
        ) from error
    return len(packed.getvalue())


def memory_limit(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the largest unpacked size, in bytes, that the free memory of this machine allows a restore."""
    try:
        facts = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        return min(MAX_BYTES, int(facts["MemAvailable"].split()[0]) * 1024 // _PEAK)
    except (OSError, ValueError, KeyError):
        return MAX_BYTES


def read_archive(file: Path, max_bytes: int = MAX_BYTES) -> tuple[Manifest, dict[str, bytes]]:
    """Read an archive with its manifest; nothing is unpacked onto the disk.

    Raises Unavailable when the file cannot be read, Refused(`archive`) when it is not what we have written, or unpacks
    to more than `max_bytes`.
    """
    contents = read_members(file, max_bytes)
    manifest = _manifest(file, contents.pop(MANIFEST, b""))
    if manifest.members.keys() != contents.keys():
        raise _refused(file, Text.of("its members differ from its manifest"))
    for name, content in contents.items():
        if sha256(content) != manifest.members[name].sha256:
            raise _refused(file, Text.of("{name} does not match its manifest", name=name))
    return manifest, contents


def read_manifest(file: Path) -> Manifest:
    """Read the manifest only, the first member of an archive. Raises as `read_archive` does."""
    try:
        with tarfile.open(file, mode="r|gz") as tar:
            first = tar.next()
            found = tar.extractfile(first) if first and first.isreg() and first.name == MANIFEST else None
            return _manifest(file, found.read(_LARGEST_MANIFEST) if found else b"")
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, ValueError) as error:
        raise _refused(file, Text.of("it is not an archive: {reason}", reason=error)) from error
    except OSError as error:
        raise _unreadable(file, error) from error


def _manifest(file: Path, content: bytes) -> Manifest:
    try:
        form = msgspec.json.decode(content, type=_ManifestHeader)
        if form.format > FORMAT:
            advice = Text.of("Restore it with microdcs-edge {version} or newer.", version=form.version)
            raise Refused(
                "archive",
                Text.of("{file} was written by a newer version, {version}", file=file, version=form.version),
                advice,
            )
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise _refused(file, Text.of("its manifest cannot be read: {reason}", reason=error)) from error


def read_members(file: Path, max_bytes: int = MAX_BYTES) -> dict[str, bytes]:
    """Read the members of an archive, as `read_archive` does, without checking the manifest."""
    contents: dict[str, bytes] = {}
    try:
        with gzip.open(file) as packed:
            unpacked = packed.read(max_bytes + 1)
        if len(unpacked) > max_bytes:
            message = Text.of(
                "{file} cannot be used: it unpacks to more than {max_bytes} MiB, the most that fits here",
                file=file,
                max_bytes=max_bytes >> 20,
            )
            raise Refused("archive", message, "Free memory, or restore it on a machine with more.")
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as tar:
            for tar_info in tar:
                # A sparse file could expand to terabytes of zeros.
                if (
                    not tar_info.isreg()
                    or tar_info.issparse()
                    or not _NAME.fullmatch(tar_info.name)
                    or tar_info.name in contents
                ):
                    raise _refused(
                        file, Text.of("it contains {name!r}, which is not part of a backup", name=tar_info.name)
                    )
                found = tar.extractfile(tar_info)
                contents[tar_info.name] = found.read() if found else b""
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, ValueError) as error:
        raise _refused(file, Text.of("it is not an archive: {reason}", reason=error)) from error
    except OSError as error:
        raise _unreadable(file, error) from error
    return contents


def _unreadable(file: Path, error: OSError) -> Unavailable:
    return Unavailable(
        Text.of("{file} cannot be read: {reason}", file=file, reason=error.strerror), "Name an existing backup."
    )


def _refused(file: Path, reason: Text) -> Refused:
    return Refused("archive", Text.of("{file} cannot be used: {reason}", file=file, reason=reason), _ADVICE)
