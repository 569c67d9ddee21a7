"""Pages of history continue at the end of the previous page, in both directions."""

import random
from pathlib import Path

import pytest

from edge.features.telemetry.history.day_files import list_files
from edge.features.telemetry.history.reader import read_page
from edge.foundation.errors import Refused
from edge.ports.sample_lines import Sample
from tests.features.telemetry.history.written import append_samples

START = 1_790_000_000_000
DAY_MS = 86_400_000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A history of two tags over three days, in several chunks."""
    for day in range(3):
        for chunk in range(2):
            at = START + day * DAY_MS + chunk * 100
            samples = [Sample(at + number, tag, number + day * 10) for number in range(7) for tag in ("a", "b")]
            append_samples(tmp_path, samples, 1 << 30)
    return tmp_path


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pages_hold_each_sample_once_in_order(directory: Path, size: int, is_backward: bool) -> None:  # noqa: FBT001 - a parameter
    samples: list[Sample] = []
    cursor = ""
    while True:
        page = read_page(directory, "a", START + 2, START + 9 * DAY_MS, size, cursor, is_backward=is_backward)
        samples += page.samples
        cursor = page.cursor
        if not cursor:
            break
    instants = [sample.at for sample in samples]
    assert instants == sorted(instants, reverse=is_backward)
    assert (len(samples), len(set(instants)), {sample.tag for sample in samples}) == (40, 40, {"a"})


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_late_samples_are_in_order_in_pages(tmp_path: Path, size: int, is_backward: bool) -> None:  # noqa: FBT001 - a parameter
    """They were read where they are written: in a later chunk of their day, or after all files."""
    chance = random.Random(size)
    instants = [START + day * DAY_MS + chance.randrange(200) for day in (0, 1) for _ in range(200)]
    chance.shuffle(instants)
    samples = [Sample(at, "a", number) for number, at in enumerate(instants)]
    for begin in range(0, 350, 35):
        # Two files for each day.
        append_samples(tmp_path, samples[begin : begin + 35], 8 * 2_000)
    found: list[Sample] = []
    cursor = ""
    while True:
        page = read_page(
            tmp_path, "a", START, START + 9 * DAY_MS, size, cursor, is_backward=is_backward, unwritten=samples[350:]
        )
        assert len(page.samples) <= size
        found += page.samples
        cursor = page.cursor
        if not cursor:
            break
    assert len(list_files(tmp_path)) > 2
    assert found == sorted(samples, key=lambda sample: (sample.at, sample.value), reverse=is_backward)


def test_page_continues_where_unwritten_samples_are_written_meanwhile(tmp_path: Path) -> None:
    samples = [Sample(START + number // 4, "a", number) for number in range(20)]
    append_samples(tmp_path, samples[::2], 1 << 30)
    unwritten = samples[1::2]
    first = read_page(tmp_path, "a", START, START + 9, 7, unwritten=unwritten)
    append_samples(tmp_path, unwritten, 1 << 30)
    rest = read_page(tmp_path, "a", START, START + 9, 30, first.cursor)
    found = [sample.value for sample in (*first.samples, *rest.samples)]
    assert sorted(found) == list(range(20))


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize("skipped", [1, 40])
def test_page_of_texts_is_bounded_by_bytes(tmp_path: Path, skipped: int, is_backward: bool) -> None:  # noqa: FBT001 - a parameter
    """Ten thousand texts of 4 KB were read at once; samples of one instant that a page before has read do not count."""
    samples = [Sample(START + number // skipped, "a", f"{number:04}" + "x" * 1000) for number in range(200)]
    for begin in range(0, 200, 40):
        append_samples(tmp_path, samples[begin : begin + 40 : 2], 1 << 30)
        append_samples(tmp_path, samples[begin + 1 : begin + 40 : 2], 1 << 30)
    found: list[Sample] = []
    cursor = ""
    while True:
        page = read_page(tmp_path, "a", START, START + 999, 50, cursor, is_backward=is_backward, room=10_000)
        assert 0 < len(page.samples) <= 9 or not page.cursor
        found += page.samples
        cursor = page.cursor
        if not cursor:
            break
    assert sorted(sample.value for sample in found) == [sample.value for sample in samples]
    assert [sample.at for sample in found] == sorted((sample.at for sample in samples), reverse=is_backward)


def test_text_larger_than_a_page_is_a_page_of_its_own(tmp_path: Path) -> None:
    samples = [Sample(START + number, "a", "x" * 1000) for number in range(3)]
    append_samples(tmp_path, samples, 1 << 30)
    found: list[Sample] = []
    cursor = ""
    for _ in samples:
        page = read_page(tmp_path, "a", START, START + 9, 50, cursor, room=100)
        found += page.samples
        cursor = page.cursor
    assert found == samples


def test_invalid_cursor_is_refused(directory: Path) -> None:
    for cursor in ("x", "a:1", "1:b", "1:2:3", "-1:0"):
        with pytest.raises(Refused):
            read_page(directory, "a", 0, START * 2, 10, cursor)


def test_time_range_without_samples_is_an_empty_page(tmp_path: Path) -> None:
    assert read_page(tmp_path, "a", 0, START, 10).samples == ()
