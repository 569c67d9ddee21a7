"""Tests of files of columns: other programs read the same values, and a torn or damaged member is not read."""

import gzip
import io
from datetime import UTC, datetime
from typing import Any

import nanoarrow as na
import pytest

from edge.foundation.column_file import (
    encode_batch,
    encode_member,
    flag_column,
    instant_column,
    members,
    number_column,
    read_content,
    text_column,
)


@pytest.mark.parametrize(
    ("kind", "column", "values"),
    [
        (na.float64(), number_column, [1.5, None, -2.0]),
        (na.bool_(), flag_column, [True, None, False, True, True, True, True, True, True]),
        (na.string(), lambda values: text_column(values, nullable=True), ["a", None, "ü"]),
        (na.string(), lambda values: text_column(values, nullable=True), []),
    ],
)
def test_column_is_read_back(kind: Any, column: Any, values: list[Any]) -> None:
    schema = na.struct({"v": kind}, nullable=False)
    batch = na.c_array_from_buffers(schema, len(values), [None], children=[column(values)])
    stream = na.ArrayStream.from_readable(io.BytesIO(encode_batch(batch, with_schema=True)))
    assert [row["v"] for row in stream.read_all().to_pylist()] == values


def test_instants_are_timestamps_in_utc() -> None:
    found = na.Array(instant_column([1000])).to_pylist()
    assert found == [datetime.fromtimestamp(1, UTC)]


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
