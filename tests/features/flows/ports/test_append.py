"""Values are appended to a CSV file of bounded size."""

import os
from pathlib import Path
from typing import Any

import pytest

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import AppendToFile
from edge.features.flows.ports.append import FileAppender

NOON = 12 * 3_600_000


async def append(folder: Path, *values: Any, largest: int = 1000, file: str = "a.csv") -> dict[str, Any]:
    appender = FileAppender(folder, lambda: NOON, largest)
    return [await appender.append(AppendToFile(file, value), "t") for value in values][-1]


async def test_object_members_become_columns(tmp_path: Path) -> None:
    output = await append(tmp_path / "new", {"mean": 3.2, "list": [1, 2]}, {"list": None, "mean": "a,b"})
    text = (tmp_path / "new" / "a.csv").read_text()
    assert text == 'time,mean,list\n1970-01-01T12:00:00.000+00:00,3.2,"[1,2]"\n1970-01-01T12:00:00.000+00:00,"a,b",\n'
    assert output == {"file": "a.csv", "bytes": len(text)}


async def test_plain_values_become_one_column(tmp_path: Path) -> None:
    await append(tmp_path, 1, "two")
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "time,value"


async def test_list_of_objects_becomes_one_row_per_object(tmp_path: Path) -> None:
    await append(tmp_path, [{"a": 1}, {"a": 2}], [{"a": 4}])
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in lines] == ["a", "1", "2", "4"]


async def test_rows_with_other_columns_leave_the_file_unchanged(tmp_path: Path) -> None:
    await append(tmp_path, {"a": 1})
    before = (tmp_path / "a.csv").read_bytes()
    with pytest.raises(NodeError, match="the value has time, b"):
        await append(tmp_path, [{"a": 1}, {"b": 1}])
    assert (tmp_path / "a.csv").read_bytes() == before


async def test_member_with_the_name_of_the_instant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="has the name time"):
        await append(tmp_path, {"time": 1})


async def test_file_suffix_selects_the_column_format(tmp_path: Path) -> None:
    found = await append(tmp_path, {"a": 1}, {"a": 2.5}, file="a.arrows.gz")
    assert found == {"file": "a.arrows.gz", "bytes": (tmp_path / "a.arrows.gz").stat().st_size}


async def test_value_with_different_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="has the columns time, a, the value has time, b"):
        await append(tmp_path, {"a": 1}, {"b": 1})


async def test_full_file_is_rotated(tmp_path: Path) -> None:
    await append(tmp_path, *range(50), largest=200)
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.csv.previous"]  # noqa: PTH208
    assert all((tmp_path / name).stat().st_size < 300 for name in ("a.csv", "a.csv.previous"))
    assert (tmp_path / "a.csv").read_text().startswith("time,value\n")


async def test_file_that_cannot_be_written_fails_the_node(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(NodeError, match=r"a\.csv: Is a directory"):
        await append(tmp_path, 1)
    (tmp_path / "a.arrows.gz").mkdir()
    with pytest.raises(NodeError, match=r"a\.arrows\.gz: Is a directory"):
        await append(tmp_path, 1, file="a.arrows.gz")
