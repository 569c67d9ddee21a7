"""Columns and record batches of the Arrow IPC stream format."""

import io
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import nanoarrow as na
from nanoarrow.ipc import StreamWriter


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
    for number, each in enumerate(values):
        bits[number >> 3] |= each << (number & 7)
    return bytes(bits)


def number_column(values: Sequence[float | None]) -> Any:
    """Return numbers as float64; None is a missing value."""
    present = _bitmap_of_present([each is not None for each in values])
    data = array("d", [0.0 if each is None else each for each in values])
    return na.c_array_from_buffers(na.float64(), len(values), [present, data], null_count=0 if present is None else -1)


def text_column(values: Sequence[str | None], *, nullable: bool) -> Any:
    """Return texts as string; None is a missing value."""
    present = _bitmap_of_present([each is not None for each in values])
    parts = [b"" if each is None else each.encode(errors="replace") for each in values]
    offsets = array("i", accumulate(map(len, parts), initial=0))
    kind = na.string(nullable=nullable)
    buffers = [present, offsets, b"".join(parts)]
    return na.c_array_from_buffers(kind, len(values), buffers, null_count=0 if present is None else -1)


def flag_column(values: Sequence[bool | None]) -> Any:
    """Return truth values as bool; None is a missing value."""
    present = _bitmap_of_present([each is not None for each in values])
    data = _bitmap([bool(each) for each in values])
    return na.c_array_from_buffers(na.bool_(), len(values), [present, data], null_count=0 if present is None else -1)


def instant_column(milliseconds: Sequence[int]) -> Any:
    """Return instants in milliseconds since the epoch as timestamps in UTC."""
    kind = na.timestamp("ms", "UTC", nullable=False)
    return na.c_array_from_buffers(kind, len(milliseconds), [None, array("q", milliseconds)])
