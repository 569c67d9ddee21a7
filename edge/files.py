"""Files that are there whole or not at all, whatever happens while they are written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: bytes, mode: int) -> None:
    """Write a file that a power cut leaves as it was or as it is to be. Raises OSError."""
    with replace_atomically(path, mode) as file:
        file.write(content)
        sync(file)


@contextmanager
def replace_atomically(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes the place of `path` at the end, unless that fails. Raises OSError.

    It has this mode whatever the umask; when root writes it, it belongs to whom its folder does. Without `sync` a power
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


def sync(file: BinaryIO) -> None:
    """See what was written on the disk; it may take as long as the disk takes. Raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def make_directory(path: Path, mode: int) -> None:
    """Make a directory, if it is not there; when root makes it, it belongs to whom the one above does.

    Raises OSError.
    """
    if not path.is_dir():
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            above = path.parent.stat()
            os.chown(path, above.st_uid, above.st_gid)
