"""Members of a gzip file that can be skipped: an extra field (RFC 1952) has their length and the instants in them."""

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from msgspec import Struct

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
    last = None
    for last in members(file):  # noqa: B007 - only the last one is used
        pass
    if last is None:
        return 0
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
