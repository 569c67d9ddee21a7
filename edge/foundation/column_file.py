"""Files of columns: record batches of an Arrow stream, each in a gzip member of its own, appended whole.

Every program that reads gzip and Arrow reads them. nanoarrow is an extra of the package.
"""

import io
import struct
import zlib
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, BinaryIO, Final

import nanoarrow as na
from msgspec import Struct
from nanoarrow.ipc import StreamWriter

MAX_CONTENT: Final = 64 << 20
"""Bytes of decompressed content; no member of ours comes near."""
_HEAD: Final = struct.Struct("<4sIBBH2sH")
_EXTRA: Final = struct.Struct("<IqqI")
_TAIL: Final = struct.Struct("<II")
_MAGIC: Final = b"\x1f\x8b\x08\x04"
_FIELD: Final = b"me"
_UNKNOWN_SYSTEM: Final = 255
_OVERHEAD: Final = _HEAD.size + _EXTRA.size
_LEVEL: Final = 6


def encode_batch(batch: Any, *, with_schema: bool) -> bytes:
    """Return a record batch, after its schema if asked; further batches may follow: there is no marker of an end."""
    out = io.BytesIO()
    writer = StreamWriter.from_writable(out)
    writer.write_stream(batch, write_schema=with_schema)
    writer.release()
    return out.getvalue()


def _bitmap_of_present(present: Sequence[bool]) -> bytes | None:
    """Return the bitmap of the values that are present; None when all are."""
    return None if all(present) else _bitmap(present)


def _bitmap(values: Sequence[bool]) -> bytes:
    bits = bytearray(-(-len(values) // 8))
    for number, value in enumerate(values):
        bits[number >> 3] |= value << (number & 7)
    return bytes(bits)


def number_column(values: Sequence[float | None]) -> Any:
    """Return numbers as float64; None is a missing value."""
    present = _bitmap_of_present([number is not None for number in values])
    data = array("d", [0.0 if number is None else number for number in values])
    return na.c_array_from_buffers(na.float64(), len(values), [present, data], null_count=0 if present is None else -1)


def text_column(values: Sequence[str | None], *, nullable: bool) -> Any:
    """Return texts as string; None is a missing value."""
    present = _bitmap_of_present([text is not None for text in values])
    parts = [b"" if text is None else text.encode(errors="replace") for text in values]
    offsets = array("i", accumulate(map(len, parts), initial=0))
    kind = na.string(nullable=nullable)
    buffers = [present, offsets, b"".join(parts)]
    return na.c_array_from_buffers(kind, len(values), buffers, null_count=0 if present is None else -1)


def flag_column(values: Sequence[bool | None]) -> Any:
    """Return truth values as bool; None is a missing value."""
    present = _bitmap_of_present([number is not None for number in values])
    data = _bitmap([bool(number) for number in values])
    return na.c_array_from_buffers(na.bool_(), len(values), [present, data], null_count=0 if present is None else -1)


def instant_column(milliseconds: Sequence[int]) -> Any:
    """Return instants in milliseconds since the epoch as timestamps in UTC."""
    kind = na.timestamp("ms", "UTC", nullable=False)
    return na.c_array_from_buffers(kind, len(milliseconds), [None, array("q", milliseconds)])


class GzipMember(Struct, frozen=True):
    """The place of a member in its file, the instants of its first and last sample, and the number of samples."""

    offset: int
    length: int
    first: int
    last: int
    rows: int


def encode_member(content: bytes, first: int, last: int, rows: int) -> bytes:
    """Return content as a member; every program that reads gzip reads it."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = compressor.compress(content) + compressor.flush()
    length = _OVERHEAD + len(body) + _TAIL.size
    head = _HEAD.pack(_MAGIC, 0, 0, _UNKNOWN_SYSTEM, _EXTRA.size + 4, _FIELD, _EXTRA.size)
    return (
        head
        + _EXTRA.pack(length, first, last, rows)
        + body
        + _TAIL.pack(zlib.crc32(content), len(content) & 0xFFFFFFFF)
    )


def members(file: BinaryIO) -> Iterator[GzipMember]:
    """Yield the members of a file; end at the first one that is not complete."""
    offset, size = 0, file.seek(0, 2)
    while member := _member_at(file, offset, size):
        yield member
        offset += member.length


def read_content(file: BinaryIO, member: GzipMember) -> bytes:
    """Return the content of a member. Raises ValueError when it is damaged."""
    file.seek(member.offset + _OVERHEAD)
    packed = file.read(member.length - _OVERHEAD)
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = decompressor.decompress(packed[: -_TAIL.size], MAX_CONTENT)
    except zlib.error as error:
        raise ValueError(f"the member at byte {member.offset} is damaged: {error}") from None
    if not decompressor.eof or _TAIL.unpack(packed[-_TAIL.size :]) != (zlib.crc32(content), len(content)):
        raise ValueError(f"the member at byte {member.offset} is damaged: wrong check sum")
    return content


def end_of_whole_members(file: BinaryIO) -> int:
    """Return the end of the last member that is whole; the content of those before it is not read."""
    newest = deque(members(file), maxlen=1)
    if not newest:
        return 0
    last = newest.pop()
    try:
        read_content(file, last)
    except ValueError:
        return last.offset
    return last.offset + last.length


def _member_at(file: BinaryIO, offset: int, size: int) -> GzipMember | None:
    file.seek(offset)
    head = file.read(_OVERHEAD)
    if len(head) < _OVERHEAD:
        return None
    magic, _, _, _, extra, field, inner = _HEAD.unpack_from(head)
    if (magic, field, extra, inner) != (_MAGIC, _FIELD, _EXTRA.size + 4, _EXTRA.size):
        return None
    length, first, last, rows = _EXTRA.unpack_from(head, _HEAD.size)
    if length < _OVERHEAD + _TAIL.size or offset + length > size:
        return None
    return GzipMember(offset, length, first, last, rows)
