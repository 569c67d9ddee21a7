"""Rows become a gzipped Arrow stream that remains readable after a power cut."""

import gzip
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nanoarrow as na
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.ports.columns import append_columns

LARGE = 1 << 20


def read(path: Path) -> list[dict[str, Any]]:
    """Read a file as other programs do: gzip, then Arrow."""
    stream = na.ArrayStream.from_readable(io.BytesIO(gzip.decompress(path.read_bytes())))
    found: list[dict[str, Any]] = stream.read_all().to_pylist()
    return found


def test_rows_are_read_back_with_their_types(tmp_path: Path) -> None:
    file = tmp_path / "a.arrows.gz"
    append_columns(file, 1000, [{"n": 1, "ok": True, "text": "a", "list": [1]}], LARGE)
    rows: list[dict[str, Any]] = [
        {"list": None, "text": None, "ok": None, "n": None},
        {"n": 2.5, "ok": False, "text": 5, "list": "x"},
    ]
    size = append_columns(file, 2000, rows, LARGE)
    at = [datetime.fromtimestamp(second, UTC) for second in (1, 2, 2)]
    assert read(file) == [
        {"time": at[0], "n": 1.0, "ok": True, "text": "a", "list": "[1]"},
        {"time": at[1], "n": None, "ok": None, "text": None, "list": None},
        {"time": at[2], "n": 2.5, "ok": False, "text": "5", "list": "x"},
    ]
    assert size == file.stat().st_size


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"a": "two"}, "column a of a.arrows.gz holds a number, the value is text"),
        ({"a": True}, "column a of a.arrows.gz holds a number, the value is true or false"),
        ({"b": 1}, "a.arrows.gz has the columns a, the value has b"),
    ],
)
def test_rows_with_other_columns_or_types_are_refused(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    file = tmp_path / "a.arrows.gz"
    append_columns(file, 1000, [{"a": None}, {"a": 1}], LARGE)
    before = file.read_bytes()
    with pytest.raises(NodeError, match=reason):
        append_columns(file, 1000, [{"a": 1}, row], LARGE)
    assert file.read_bytes() == before


def test_full_file_is_rotated(tmp_path: Path) -> None:
    file = tmp_path / "a.arrows.gz"
    for number in range(60):
        append_columns(file, number, [{"a": number}], 5000)
    previous = read(file.with_name("a.arrows.gz.previous"))
    assert [row["a"] for row in (*previous, *read(file))][-1] == 59.0
    assert all(path.stat().st_size < 6000 for path in tmp_path.iterdir())


@given(st.data())
def test_incomplete_chunk_after_a_power_cut_is_truncated(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("cut") / "a.arrows.gz"
    first = append_columns(file, 1, [{"a": 1}], LARGE)
    whole = append_columns(file, 2, [{"a": 2}], LARGE)
    length = data.draw(st.integers(first, whole))
    with file.open("r+b") as opened:
        opened.truncate(length)
    append_columns(file, 3, [{"a": 3}], LARGE)
    assert [row["a"] for row in read(file)] == ([1.0, 2.0, 3.0] if length == whole else [1.0, 3.0])


def test_file_truncated_in_its_schema_is_started_again(tmp_path: Path) -> None:
    file = tmp_path / "a.arrows.gz"
    append_columns(file, 1, [{"a": 1}], LARGE)
    with file.open("r+b") as opened:
        opened.truncate(30)
    append_columns(file, 2, [{"b": "x"}], LARGE)
    assert [row["b"] for row in read(file)] == ["x"]


def test_numbers_beyond_a_double_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="too large"):
        append_columns(tmp_path / "a.arrows.gz", 1, [{"a": 10**400}], LARGE)
