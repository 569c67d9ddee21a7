"""Tests of gzip members: other programs read them, and a truncated or damaged member is detected."""

import gzip
import io

import pytest

from edge.features.telemetry.history.gzip_member import encode_member, members, read_content


def file_of(*contents: bytes) -> io.BytesIO:
    return io.BytesIO(b"".join(encode_member(content, at, at + 1, 7) for at, content in enumerate(contents)))


def test_gzip_reads_the_members_as_one_content() -> None:
    assert gzip.decompress(file_of(b"first ", b"", b"second").getvalue()) == b"first second"


def test_members_are_found_without_decompression() -> None:
    file = file_of(b"x" * 1_000, b"yy")
    first, second = members(file)
    assert (first.offset, first.first, first.last, first.rows) == (0, 0, 1, 7)
    assert (second.offset, second.first) == (first.length, 1)
    assert [read_content(file, gzip_member) for gzip_member in (first, second)] == [b"x" * 1_000, b"yy"]
    assert second.offset == first.length


@pytest.mark.parametrize("cut", range(1, 60))
def test_torn_member_is_not_found(cut: int) -> None:
    whole = file_of(b"first", b"second")
    torn = io.BytesIO(whole.getvalue()[:-cut])
    assert [read_content(torn, member) for member in members(torn)] in ([b"first"], [])


def test_zeros_or_other_bytes_after_a_member_end_the_search() -> None:
    for tail in (bytes(100), b"\x1f\x8b\x08\x00" + bytes(60), b"text" * 30):
        file = io.BytesIO(file_of(b"first").getvalue() + tail)
        assert len(list(members(file))) == 1


def test_changed_byte_is_reported_as_damage() -> None:
    data = bytearray(file_of(b"content " * 50).getvalue())
    data[-12] ^= 1
    file = io.BytesIO(bytes(data))
    (member,) = members(file)
    with pytest.raises(ValueError, match="the member at byte 0 is damaged"):
        read_content(file, member)
