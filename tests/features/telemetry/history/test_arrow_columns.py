"""Columns are read back by a reader of Arrow."""

import io
from datetime import UTC, datetime
from typing import Any

import nanoarrow as na
import pytest

from edge.features.telemetry.history.arrow_columns import (
    encode_batch,
    flag_column,
    instant_column,
    number_column,
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
