"""One file that holds several: written for its owner alone, read with distrust."""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edge.errors import Refused, Unavailable
from edge.files import write_atomically

MANIFEST = "manifest.json"
FORMAT = 1
"""Raised by a change that an older version would misread."""

MOST_BYTES = 512 << 20
"""Unpacked. Nobody has to unpack what fills their memory."""

_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f]{1,200}(/(?!\.)[^/\\\x00-\x1f]{1,200}){0,3}")
_ADVICE = "Take another backup: this file was damaged, or is none."


class Member(msgspec.Struct, frozen=True):
    """One file of an archive: its hash, where it stood, and whose it was."""

    sha256: str
    path: str = ""
    mode: int = 0o600
    owner: str = ""
    group: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive holds; `made_at` is an instant in milliseconds since the epoch."""

    format: int = FORMAT
    version: str
    made_at: int
    gateway: str
    members: dict[str, Member]


class _ManifestHeader(msgspec.Struct, frozen=True):
    format: int
    version: str


def sha256(content: bytes) -> str:
    """Give the hash by which a member is known."""
    return hashlib.sha256(content).hexdigest()


def write_archive(file: Path, contents: Mapping[str, bytes], now: int) -> int:
    """Write a tar.gz of these members, whole or not at all, readable for its owner only; give its size in bytes.

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
        raise Unavailable(f"{file} cannot be written: {error.strerror}", "Name a file where you may write.") from error
    return len(packed.getvalue())


def read_archive(file: Path) -> tuple[Manifest, dict[str, bytes]]:
    """Read an archive with its manifest; nothing is unpacked onto the disk.

    Raises Unavailable when the file cannot be read, Refused(`archive`) when it is not what we have written.
    """
    contents = read_members(file)
    manifest = _manifest(file, contents.pop(MANIFEST, b""))
    if manifest.members.keys() != contents.keys():
        raise _refused(file, "its members are not those of its manifest")
    for name, content in contents.items():
        if sha256(content) != manifest.members[name].sha256:
            raise _refused(file, f"{name} is not what its manifest says")
    return manifest, contents


def _manifest(file: Path, content: bytes) -> Manifest:
    try:
        form = msgspec.json.decode(content, type=_ManifestHeader)
        if form.format > FORMAT:
            advice = f"Restore it with microdcs-edge {form.version} or newer."
            raise Refused("archive", f"{file} was written by a newer version, {form.version}", advice)
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise _refused(file, f"its manifest cannot be read: {error}") from error


def read_members(file: Path) -> dict[str, bytes]:
    """Read the members of an archive, as `read_archive` does, without looking at a manifest."""
    contents: dict[str, bytes] = {}
    try:
        with gzip.open(file) as packed:
            unpacked = packed.read(MOST_BYTES + 1)
        if len(unpacked) > MOST_BYTES:
            raise _refused(file, f"it holds more than {MOST_BYTES >> 20} MiB")
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as tar:
            for each in tar:
                # The holes of a sparse file would be read as zeros, terabytes of them.
                if not each.isreg() or each.issparse() or not _NAME.fullmatch(each.name) or each.name in contents:
                    raise _refused(file, f"it holds {each.name!r}, which no backup holds")
                found = tar.extractfile(each)
                contents[each.name] = found.read() if found else b""
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, ValueError) as error:
        raise _refused(file, f"it is no archive: {error}") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}", "Name a backup that is there.") from error
    return contents


def _refused(file: Path, reason: str) -> Refused:
    return Refused("archive", f"{file} cannot be used: {reason}", _ADVICE)
