"""Tests of reading history: ranges, patterns, damage, and bounded memory."""

import random
import tracemalloc
from pathlib import Path

from structlog.testing import capture_logs

from edge.features.telemetry.history.day_files import list_files
from edge.features.telemetry.history.reader import read_samples
from edge.ports.sample_lines import Sample
from tests.features.telemetry.history.written import append_samples

DAY = 86_400_000
START = 20_000 * DAY
MUCH = 1 << 30


def fill(directory: Path, days: int = 3, chunks: int = 4, count: int = 25) -> list[Sample]:
    """Write samples of two tags, one a minute each; return those of the tag `a`."""
    found = []
    at = START
    for day in range(days):
        at = START + day * DAY
        for _ in range(chunks):
            samples = [Sample(at + number * 60_000, tag, number) for number in range(count) for tag in ("a", "b")]
            append_samples(directory, samples, MUCH)
            found += [sample for sample in samples if sample.tag == "a"]
            at += count * 60_000
    return found


def test_samples_of_a_tag_are_read_once_in_order(tmp_path: Path) -> None:
    expected = fill(tmp_path)
    assert list(read_samples(tmp_path, ["a"])) == expected


def test_range_includes_its_start_and_excludes_its_end(tmp_path: Path) -> None:
    expected = fill(tmp_path)
    start, end = expected[10].at, expected[250].at
    assert list(read_samples(tmp_path, ["a"], start, end)) == expected[10:250]


def test_read_continues_after_removal_of_the_oldest_file(tmp_path: Path) -> None:
    expected = fill(tmp_path)
    list_files(tmp_path)[0].path.unlink()
    assert list(read_samples(tmp_path, ["a"])) == expected[100:]


def test_pattern_reads_several_tags_in_order_of_time(tmp_path: Path) -> None:
    fill(tmp_path, days=1, chunks=1, count=3)
    assert [(sample.tag, sample.value) for sample in read_samples(tmp_path, ["*"])] == [
        (tag, number) for number in range(3) for tag in ("a", "b")
    ]
    assert list(read_samples(tmp_path, ["c*"])) == []


def test_damaged_chunk_is_logged_and_skipped(tmp_path: Path) -> None:
    expected = fill(tmp_path, days=1, chunks=3)
    (file,) = list_files(tmp_path)
    data = bytearray(file.path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.path.write_bytes(bytes(data))
    with capture_logs() as logs:
        samples = list(read_samples(tmp_path, ["a"], 0, START + DAY))
    assert [entry["event"] for entry in logs] == ["history chunk cannot be read"]
    assert samples == expected[:25] + expected[50:]


def test_read_of_a_tag_uses_the_memory_of_one_chunk(tmp_path: Path) -> None:
    for number in range(8):
        at = START + number * 100_000
        append_samples(tmp_path, [Sample(at + index, f"t{index % 50}", index * 0.1) for index in range(5_000)], MUCH)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_samples(tmp_path, ["t7"]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 800
    assert peak < 4 << 20


def test_read_of_overlapping_chunks_uses_the_memory_of_one_chunk(tmp_path: Path) -> None:
    """Each chunk has a sample from the begin of the day, as a device with a wrong clock sends."""
    for number in range(20):
        at = START + number * 100_000
        late = Sample(START + number, "t7", -1.0)
        append_samples(tmp_path, [late, *(Sample(at + n, f"t{n % 50}", n * 0.1) for n in range(5_000))], MUCH)
    tracemalloc.start()
    try:
        instants = [sample.at for sample in read_samples(tmp_path, ["t7"])]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(instants), instants) == (20 * 101, sorted(instants))
    assert peak < 6 << 20


def test_export_of_many_samples_is_in_order_of_time(tmp_path: Path) -> None:
    """More than are in memory at a time, late ones and ones of the same instant among them."""
    instants = [START + number // 3 for number in range(50_000)]
    random.Random(1).shuffle(instants)
    for begin in range(0, 50_000, 5_000):
        append_samples(tmp_path, [Sample(at, f"t{at % 3}", at) for at in instants[begin : begin + 5_000]], MUCH)
    assert [sample.at for sample in read_samples(tmp_path, ["*"])] == sorted(instants)
