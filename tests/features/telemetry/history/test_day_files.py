"""Tests of history files: days, parts, power cut, full disk, and retention."""

import gzip
import io
import os
import resource
from pathlib import Path

import nanoarrow as na
import pytest
from structlog.testing import capture_logs

from edge.features.telemetry.history.arrow_chunk import encode_schema
from edge.features.telemetry.history.day_files import (
    list_files,
    recover,
    remove_oldest,
)
from edge.features.telemetry.history.reader import read_samples
from edge.foundation.column_file import (
    encode_batch,
    encode_member,
    instant_column,
    number_column,
    text_column,
)
from edge.ports.sample_lines import Sample
from tests.features.telemetry.history.written import append_samples

DAY = 86_400_000
NOON = 20_000 * DAY + DAY // 2
MUCH = 1 << 30


def samples(start: int, count: int) -> list[Sample]:
    return [Sample(start + number, "t", number + 0.5) for number in range(count)]


def names(directory: Path) -> list[str]:
    return [file.path.name for file in list_files(directory)]


def values(directory: Path) -> list[float]:
    return [sample.value for sample in read_samples(directory, ["*"])]


def test_file_of_a_day_is_one_gzipped_arrow_stream(tmp_path: Path) -> None:
    append_samples(tmp_path, samples(NOON, 3), MUCH)
    append_samples(tmp_path, samples(NOON + 10, 2), MUCH)
    (file,) = list_files(tmp_path)
    assert file.path.name == "2024-10-04.arrows.gz"
    stream = io.BytesIO(gzip.decompress(file.path.read_bytes()))
    assert len(na.ArrayStream.from_readable(stream).read_all()) == 5


def test_samples_of_two_days_are_in_two_files(tmp_path: Path) -> None:
    append_samples(tmp_path, samples(NOON + DAY // 2 - 2, 4), MUCH)
    assert names(tmp_path) == ["2024-10-04.arrows.gz", "2024-10-05.arrows.gz"]
    assert values(tmp_path) == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize("cut", [1, 7, 30, 50, 200])
def test_power_cut_loses_at_most_the_last_chunk(tmp_path: Path, cut: int) -> None:
    append_samples(tmp_path, samples(NOON, 100), MUCH)
    append_samples(tmp_path, samples(NOON + 200, 100), MUCH)
    (file,) = list_files(tmp_path)
    file.path.write_bytes(file.path.read_bytes()[:-cut])
    assert len(values(tmp_path)) == 100
    with capture_logs() as logs:
        recover(tmp_path)
    assert [entry["event"] for entry in logs] == ["history file repaired"]
    append_samples(tmp_path, samples(NOON + 400, 10), MUCH)
    assert len(values(tmp_path)) == 110
    recover(tmp_path)
    assert len(values(tmp_path)) == 110


def test_zeros_after_the_last_chunk_are_removed(tmp_path: Path) -> None:
    append_samples(tmp_path, samples(NOON, 10), MUCH)
    (file,) = list_files(tmp_path)
    size = file.path.stat().st_size
    with file.path.open("ab") as opened:
        opened.write(bytes(5_000))
    recover(tmp_path)
    assert file.path.stat().st_size == size


def test_heavily_damaged_file_is_renamed(tmp_path: Path) -> None:
    append_samples(tmp_path, samples(NOON, 10), MUCH)
    (file,) = list_files(tmp_path)
    with file.path.open("ab") as opened:
        opened.write(os.urandom(5 << 20))
    recover(tmp_path)
    assert names(tmp_path) == []
    assert file.path.with_name(f"{file.path.name}.damaged").exists()
    append_samples(tmp_path, samples(NOON + 20, 4), MUCH)
    assert len(values(tmp_path)) == 4


def test_file_without_content_after_a_full_disk_begins_with_the_schema(tmp_path: Path) -> None:
    (tmp_path / "2024-10-04.arrows.gz").touch()
    append_samples(tmp_path, samples(NOON, 3), MUCH)
    (file,) = list_files(tmp_path)
    stream = io.BytesIO(gzip.decompress(file.path.read_bytes()))
    assert len(na.ArrayStream.from_readable(stream).read_all()) == 3


def test_failed_write_leaves_the_file_unchanged(tmp_path: Path) -> None:
    append_samples(tmp_path, samples(NOON, 10), MUCH)
    (file,) = list_files(tmp_path)
    size = file.path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            append_samples(tmp_path, samples(NOON + 20, 10), MUCH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert file.path.stat().st_size == size
    append_samples(tmp_path, samples(NOON + 40, 5), MUCH)
    assert len(values(tmp_path)) == 15


def test_full_disk_at_the_first_chunk_of_a_day_leaves_a_readable_file(tmp_path: Path) -> None:
    head = len(encode_member(encode_schema(), 0, 0, 0))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (head + 60, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            append_samples(tmp_path, samples(NOON, 10), MUCH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert values(tmp_path) == []
    append_samples(tmp_path, samples(NOON, 5), MUCH)
    assert len(values(tmp_path)) == 5


def test_oldest_days_are_removed_first(tmp_path: Path) -> None:
    for day in range(5):
        append_samples(tmp_path, samples(NOON + day * DAY, 10), MUCH)
    total = remove_oldest(tmp_path, NOON + 4 * DAY, 3, MUCH)
    assert names(tmp_path) == [f"2024-10-{day:02}.arrows.gz" for day in (6, 7, 8)]
    assert total == sum(file.path.stat().st_size for file in list_files(tmp_path))


def test_bytes_are_bounded_within_one_day(tmp_path: Path) -> None:
    most = 40_000
    for number in range(40):
        append_samples(tmp_path, samples(NOON + number * 1_000, 900), most)
        assert remove_oldest(tmp_path, NOON + number * 1_000, 30, most) <= most
    assert len(names(tmp_path)) > 4
    found = values(tmp_path)
    assert found[-900:] == [number + 0.5 for number in range(900)]


def test_missing_directory_has_no_files(tmp_path: Path) -> None:
    assert list_files(tmp_path / "none") == []
    recover(tmp_path / "none")


def test_file_of_an_earlier_release_is_read_but_not_extended(tmp_path: Path) -> None:
    columns = {
        "at": na.timestamp("ms", "UTC", nullable=False),
        "tag": na.string(nullable=False),
        "value": na.float64(),
        "text": na.string(),
        "type": na.uint8(nullable=False),
        "quality": na.uint8(nullable=False),
        "process": na.string(),
    }
    children = (
        instant_column([NOON]),
        text_column(["t"], nullable=False),
        number_column([7.5]),
        text_column([None], nullable=True),
        na.c_array([3], na.uint8(nullable=False)),
        na.c_array([0], na.uint8(nullable=False)),
        text_column(["P1"], nullable=True),
    )
    batch = na.c_array_from_buffers(na.struct(columns, nullable=False), 1, [None], children=children)
    chunk, stream = encode_batch(batch, with_schema=False), encode_batch(batch, with_schema=True)
    old = tmp_path / "2024-10-04.arrows.gz"
    old.write_bytes(encode_member(stream.removesuffix(chunk), 0, 0, 0) + encode_member(chunk, NOON, NOON, 1))
    assert list(read_samples(tmp_path, ["t"])) == [Sample(NOON, "t", 7.5, process="P1")]
    newer = Sample(NOON + 1, "t", 8.5, process="P1", job="J1", action="A1", carrier="C1")
    for _ in range(2):
        append_samples(tmp_path, [newer], MUCH)
    assert names(tmp_path) == ["2024-10-04.arrows.gz", "2024-10-04.2.arrows.gz"]
    assert list(read_samples(tmp_path, ["t"])) == [Sample(NOON, "t", 7.5, process="P1"), newer, newer]
