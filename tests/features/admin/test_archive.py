"""A foreign or damaged archive is refused before any of its content is used."""

import gzip
import io
import tarfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.admin.archive import (
    FORMAT,
    MANIFEST,
    MAX_BYTES,
    Manifest,
    Member,
    memory_limit,
    read_archive,
    read_members,
    sha256,
    write_archive,
)
from edge.foundation.errors import Refused, Unavailable

CONTENT = {"settings/edge.toml": b"[gateway]\n", "store.jsonl": b""}


def manifest_of(contents: dict[str, bytes], **changes: object) -> bytes:
    members = {name: Member(sha256(content)) for name, content in contents.items()}
    manifest = Manifest(version="1.2.3", made_at=1, gateway="edge", members=members)
    return msgspec.json.encode(msgspec.structs.replace(manifest, **changes))


def tar_of(file: Path, *members: tarfile.TarInfo | tuple[str, bytes]) -> Path:
    """Write a tar.gz as anybody can."""
    with tarfile.open(file, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return file


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def refusal_of(file: Path) -> str:
    with pytest.raises(Refused) as caught:
        read_archive(file)
    return caught.value.message


def test_archive_is_read_as_written_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    size = write_archive(file, {MANIFEST: manifest_of(CONTENT), **CONTENT}, 1_700_000_000_000)
    assert (file.stat().st_size, file.stat().st_mode & 0o777) == (size, 0o600)
    manifest, contents = read_archive(file)
    assert (manifest.gateway, contents) == ("edge", CONTENT)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x",
        "../x",
        "settings/../../x",
        "settings/..",
        "a\\..\\b",
        ".hidden",
        "a//b",
        "a\nb",
        "a/b/c/d/e",
        "",
    ],
)
def test_path_traversal_in_a_member_name_is_refused(tmp_path: Path, name: str) -> None:
    contents = {**CONTENT, name: b"x"}
    file = tar_of(tmp_path / "b.tar.gz", (MANIFEST, manifest_of(contents)), *contents.items())
    assert "which is not part of a backup" in refusal_of(file)


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_member_that_is_not_a_regular_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    assert "which is not part of a backup" in refusal_of(
        tar_of(tmp_path / "b.tar.gz", link("settings/edge.toml", kind))
    )


def test_duplicate_member_name_is_refused(tmp_path: Path) -> None:
    assert "which is not part of a backup" in refusal_of(tar_of(tmp_path / "b.tar.gz", ("a", b"1"), ("a", b"2")))


@pytest.mark.parametrize(
    ("manifest", "reported"),
    [
        (b"", "its manifest cannot be read"),
        (b"[]", "its manifest cannot be read"),
        (manifest_of({}), "members differ from its manifest"),
        (manifest_of(CONTENT | {"more": b""}), "members differ from its manifest"),
        (manifest_of(CONTENT | {"store.jsonl": b"other"}), "store.jsonl does not match its manifest"),
        (manifest_of(CONTENT, format=FORMAT + 1), "was written by a newer version, 1.2.3"),
    ],
)
def test_manifest_that_does_not_match_the_archive_is_refused(tmp_path: Path, manifest: bytes, reported: str) -> None:
    assert reported in refusal_of(tar_of(tmp_path / "b.tar.gz", (MANIFEST, manifest), *CONTENT.items()))


def test_too_large_archive_is_refused(tmp_path: Path) -> None:
    file = tar_of(tmp_path / "b.tar.gz", ("a", bytes(3 << 20)))
    with pytest.raises(Refused, match="unpacks to more than 1 MiB"):
        read_members(file, max_bytes=1 << 20)


@pytest.mark.parametrize(
    ("meminfo", "limit"),
    [
        ("MemTotal: 1000000 kB\nMemAvailable:  614400 kB\n", 100 << 20),
        ("MemAvailable: 64000000 kB\n", MAX_BYTES),
        ("MemTotal: 1000000 kB\n", MAX_BYTES),
        ("", MAX_BYTES),
    ],
)
def test_restore_is_bounded_by_the_free_memory_of_the_machine(tmp_path: Path, meminfo: str, limit: int) -> None:
    file = tmp_path / "meminfo"
    file.write_text(meminfo)
    assert memory_limit(file) == limit
    assert memory_limit(tmp_path / "absent") == MAX_BYTES


def test_missing_archive_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file"):
        read_archive(tmp_path / "none.tar.gz")


def test_unwritable_place_of_the_archive_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be written"):
        write_archive(tmp_path / "none" / "b.tar.gz", {}, 0)


WHOLE = gzip.compress(b"a" * 2000)


@given(
    st.one_of(
        st.binary(max_size=3000),
        st.binary(max_size=3000).map(gzip.compress),
        st.integers(0, 40).map(lambda n: WHOLE[:n]),
    )
)
def test_file_that_is_not_an_archive_is_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.tar.gz"
    file.write_bytes(content)
    assert refusal_of(file)
