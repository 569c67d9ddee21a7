"""Samples as a record batch of the Arrow IPC stream format, in the order of their tags and instants."""

import io
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import nanoarrow as na
from msgspec import Struct

from edge.foundation.column_file import encode_batch, instant_column, number_column, text_column
from edge.ports.sample_lines import Quality, Sample

_QUALITIES: Final = (Quality.GOOD, Quality.UNCERTAIN, Quality.BAD)
"""The code of a quality is its place here."""
_NULL: Final = 0
_BOOL: Final = 1
_INTEGER: Final = 2
_FLOAT: Final = 3
_TEXT: Final = 4
_EXACT: Final = 1 << 53
"""Integers up to here are exact as float64; the text of a larger one is stored too."""
SAMPLE_BYTES: Final = 64
"""What a sample takes in addition to its text."""
CONTEXT: Final = ("process", "job", "action", "carrier", "gateway")
"""To what a sample belongs: the last columns; files of an earlier release have the first of them only."""
_SCHEMA: Final = na.struct(
    {
        "at": na.timestamp("ms", "UTC", nullable=False),
        "tag": na.string(nullable=False),
        "value": na.float64(),
        "text": na.string(),
        "type": na.uint8(nullable=False),
        "quality": na.uint8(nullable=False),
        "process": na.string(),
        "job": na.string(),
        "action": na.string(),
        "carrier": na.string(),
        "gateway": na.string(),
    },
    nullable=False,
)


def encode_schema() -> bytes:
    """Return the schema, which stands once at the beginning of a stream."""
    return _serialize((), with_schema=True).removesuffix(_serialize((), with_schema=False))


def encode_chunk(samples: Iterable[Sample]) -> bytes:
    """Return samples as a record batch; it follows the schema or another batch."""
    return _serialize(sorted(samples, key=lambda sample: (sample.tag, sample.at)), with_schema=False)


def _serialize(ordered: Sequence[Sample], *, with_schema: bool) -> bytes:
    typed = [_typed(sample.value) for sample in ordered]
    columns = (
        instant_column([sample.at for sample in ordered]),
        text_column([sample.tag for sample in ordered], nullable=False),
        number_column([item.number for item in typed]),
        text_column([item.text for item in typed], nullable=True),
        _codes([item.code for item in typed]),
        _codes([_QUALITIES.index(sample.quality) for sample in ordered]),
        *(text_column([getattr(sample, name) for sample in ordered], nullable=True) for name in CONTEXT),
    )
    batch = na.c_array_from_buffers(_SCHEMA, len(ordered), [None], children=columns)
    return encode_batch(batch, with_schema=with_schema)


class _Typed(Struct, frozen=True):
    """A value by its type: as a number, as a text, or neither."""

    code: int
    number: float | None = None
    text: str | None = None


def _typed(value: Any) -> _Typed:
    match value:
        case bool():
            return _Typed(_BOOL, float(value))
        case int():
            return _Typed(_INTEGER, float(value), None if -_EXACT <= value <= _EXACT else str(value))
        case float():
            return _Typed(_FLOAT, value)
        case str():
            return _Typed(_TEXT, text=value)
        case _:
            return _Typed(_NULL)


def _value(code: int, number: float, text: str | None) -> Any:
    match code:
        case 1:
            return number != 0
        case 2:
            return int(text) if text is not None else int(number)
        case 3:
            return number
        case 4:
            return text or ""
        case _:
            return None


def _codes(values: Sequence[int]) -> Any:
    return na.c_array_from_buffers(na.uint8(nullable=False), len(values), [None, array("B", values)])


class SampleChunk:
    """A decoded record batch; samples are made for the rows that are asked for only."""

    def __init__(self, batch: Any) -> None:
        self._length = len(batch)
        at, tag, value, text, code, quality, *context = (na.Array(child) for child in batch.iter_children())
        self._at = _view(at, 1)
        self._tags = _Texts(tag)
        self._values = _view(value, 1)
        self._texts = _Texts(text)
        self._codes = _view(code, 1)
        self._qualities = _view(quality, 1)
        self._context = dict(zip(CONTEXT, map(_Texts, context), strict=False))

    def __len__(self) -> int:
        return self._length

    def tags(self) -> Iterator[str]:
        """Yield the tags, each once."""
        row = 0
        while row < self._length:
            tag = self._tags[row]
            yield tag
            row = self._rows_of(tag).stop

    def rows(self, tag: str, start: int, end: int) -> range:
        """Return the rows of a tag from `start` to before `end`, in order of time."""
        rows = self._rows_of(tag)
        first = bisect_left(self._at, start, rows.start, rows.stop)
        return range(first, bisect_left(self._at, end, first, rows.stop))

    def at(self, row: int) -> int:
        """Return the instant of a row."""
        instant: int = self._at[row]
        return instant

    def size(self, row: int) -> int:
        """Return about how many bytes the sample of a row takes in memory."""
        return SAMPLE_BYTES + self._texts.size(row)

    def sample(self, row: int) -> Sample:
        """Return the sample of a row."""
        value = _value(self._codes[row], self._values[row], self._texts.get(row))
        context: dict[str, Any] = {name: texts.get(row) for name, texts in self._context.items()}
        return Sample(self._at[row], self._tags[row], value, _QUALITIES[self._qualities[row]], **context)

    def _rows_of(self, tag: str) -> range:
        rows = range(self._length)
        return range(
            bisect_left(rows, tag, key=self._tags.__getitem__), bisect_right(rows, tag, key=self._tags.__getitem__)
        )


class _Texts:
    """A column of texts; a text is decoded when it is read."""

    def __init__(self, column: Any) -> None:
        validity, offsets, data = (memoryview(buffer) for buffer in column.buffers)
        self._validity = bytes(validity) if column.buffers[0].size_bytes else b""
        self._offsets = offsets
        self._data = data.cast("B") if data.nbytes else memoryview(b"")

    def __getitem__(self, row: int) -> str:
        return str(self._data[self._offsets[row] : self._offsets[row + 1]], "utf-8", "replace")

    def size(self, row: int) -> int:
        """Return the bytes of a text, 0 where there is none."""
        return int(self._offsets[row + 1]) - int(self._offsets[row])

    def get(self, row: int) -> str | None:
        """Return a text; None where there is none."""
        if self._validity and not self._validity[row >> 3] >> (row & 7) & 1:
            return None
        return self[row]


def _view(column: Any, buffer: int) -> Any:
    return memoryview(column.buffers[buffer])


def decode_chunk(data: bytes, schema: bytes) -> SampleChunk:
    """Return a record batch of `encode_chunk` behind the schema of its file. Raises ValueError for anything else."""
    try:
        batches = list(na.ArrayStream.from_readable(io.BytesIO(schema + data)))
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"no record batch: {error}") from None
    if len(batches) != 1:
        raise ValueError(f"{len(batches)} record batches instead of one")
    return SampleChunk(batches[0])
