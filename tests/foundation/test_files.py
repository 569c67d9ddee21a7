"""A file is complete or absent, with the right owner and mode."""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.foundation.files import append_whole, make_directory, replace_atomically, sync, write_atomically


@pytest.fixture
def narrow_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("present", [None, b"old"])
def test_file_is_written_completely(tmp_path: Path, present: bytes | None) -> None:
    path = tmp_path / "file"
    if present is not None:
        path.write_bytes(present)
    write_atomically(path, b"new", 0o640)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_file_is_unchanged_until_the_new_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replace_atomically(path, 0o644) as file:
        file.write(b"new")
        sync(file)
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def write_until_the_disk_is_full(path: Path) -> None:
    with replace_atomically(path, 0o644) as file:
        file.write(b"ne")
        raise OSError("disk full")


def test_failed_write_leaves_the_old_file_and_no_partial_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"):
        write_until_the_disk_is_full(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_partial_file_of_a_power_cut_does_not_prevent_a_write(tmp_path: Path) -> None:
    (tmp_path / ".file.partial").write_bytes(b"ne")
    write_atomically(tmp_path / "file", b"new", 0o644)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_write_does_not_follow_a_symbolic_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".file.partial").symlink_to(victim)
    write_atomically(tmp_path / "file", b"new", 0o644)
    assert victim.read_bytes() == b"precious"


@pytest.mark.usefixtures("narrow_umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_file_permissions_do_not_depend_on_the_umask(tmp_path: Path, mode: int) -> None:
    write_atomically(tmp_path / "file", b"new", mode)
    assert mode_of(tmp_path / "file") == mode


@pytest.mark.usefixtures("narrow_umask")
def test_directory_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    make_directory(tmp_path / "pki", 0o750)
    assert mode_of(tmp_path / "pki") == 0o750


def test_existing_directory_is_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "new" / "pki"
    make_directory(path, 0o700)
    (path / "file").touch()
    make_directory(path, 0o755)
    assert mode_of(path) == 0o700
    assert (path / "file").exists()


def test_a_file_where_a_directory_belongs_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_directory(tmp_path / "file", 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give something away")
def test_files_made_by_root_belong_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    os.chown(tmp_path, 4840, 4841)
    make_directory(tmp_path / "made", 0o755)
    write_atomically(tmp_path / "made" / "file", b"", 0o644)
    for path in (tmp_path / "made", tmp_path / "made" / "file"):
        assert (path.stat().st_uid, path.stat().st_gid) == (4840, 4841)


def test_content_is_appended_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert [append_whole(path, b"one", 0o640), append_whole(path, b"two", 0o640)] == [3, 6]
    assert path.read_bytes() == b"onetwo"


def test_append_to_a_full_disk_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    child = os.fork()
    if child == 0:
        # A limit of the process stands for a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5))
        try:
            append_whole(path, b"twothree", 0o640)
        except OSError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.read_bytes() == b"one"
