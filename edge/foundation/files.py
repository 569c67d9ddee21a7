"""Writes files atomically: a file is complete or absent, whatever interrupts the write."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: bytes, mode: int) -> None:
    """Write a file atomically: after a power cut it has the old or the new content. Raises OSError."""
    with replace_atomically(path, mode) as file:
        file.write(content)
        sync(file)


@contextmanager
def replace_atomically(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` at the end of the block, unless the block fails. Raises OSError.

    Its mode does not depend on the umask; written by root, it gets the owner of its folder. Without `sync` a power
    cut soon after may leave it empty.
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if os.geteuid() == 0:
                folder = path.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
            if mode & ~os.fstat(descriptor).st_mode:  # the umask has taken some of it
                os.fchmod(descriptor, mode)
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def append_whole(path: Path, content: bytes, mode: int) -> int:
    """Append to a file and flush it to the disk, all or nothing on a full disk; return its size. Raises OSError.

    After a power cut the file may end with a part of the content.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
    try:
        before = os.fstat(descriptor).st_size
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            # The disk may be full: a part would hide what is appended later.
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)
    return before + len(content)


def sync(file: BinaryIO) -> None:
    """Flush the file to the disk; this may take long on a slow disk. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def make_directory(path: Path, mode: int) -> None:
    """Create a directory unless it exists; created by root, it gets the owner of its parent.

    Its mode does not depend on the umask.

    Raises OSError.
    """
    if not path.is_dir():
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        if mode & ~path.stat().st_mode:  # the umask has taken some of it
            path.chmod(mode)
        if os.geteuid() == 0:
            above = path.parent.stat()
            os.chown(path, above.st_uid, above.st_gid)
