"""Tests of the history writer: few writes, no loss at the stop, bounded buffer while the disk fails."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from edge.features.telemetry.history.day_files import list_files
from edge.features.telemetry.history.reader import read_samples
from edge.features.telemetry.history.writer import HistoryLimits, HistoryWriter
from edge.foundation.column_file import members
from edge.foundation.task_group import background_task
from edge.ports.sample_lines import Sample

DAY = 86_400_000
START = 20_000 * DAY


def samples(start: int, count: int) -> list[Sample]:
    return [Sample(START + number, "t", number) for number in range(start, start + count)]


def values(directory: Path) -> list[int]:
    return [sample.value for sample in read_samples(directory, ["t"])]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(0.01)


async def test_remaining_samples_are_written_at_the_end(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3))
    async with background_task(writer.run(), "history"):
        await asyncio.sleep(0)
        writer.append(samples(0, 25))
    assert values(tmp_path) == list(range(25))
    assert (writer.written, writer.dropped) == (25, 0)


async def test_full_chunk_is_written_at_once_and_a_partial_one_at_interval(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3, interval_s=0.2, chunk=10))
    async with background_task(writer.run(), "history"):
        writer.append(samples(0, 35))
        await until(lambda: writer.written == 35)
        assert values(tmp_path) == list(range(35))
        assert writer.bytes > 0


async def test_long_texts_are_written_in_chunks_of_a_mebibyte(tmp_path: Path) -> None:
    """Ten thousand of them were one chunk of many megabytes: a reader held the interpreter while it decoded it."""
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3))
    texts = [f"{number} {'x' * 100_000}" for number in range(25)]
    async with background_task(writer.run(), "history"):
        await asyncio.sleep(0)
        writer.append([Sample(START + number, "t", text) for number, text in enumerate(texts)])
    (file,) = list_files(tmp_path)
    with file.path.open("rb") as opened:
        assert [member.rows for member in members(opened)] == [0, 10, 10, 5]
    assert [sample.value for sample in read_samples(tmp_path, ["t"])] == texts
    assert writer.written == 25


async def test_buffer_drops_the_oldest_samples_while_the_disk_is_unavailable(tmp_path: Path) -> None:
    directory = tmp_path / "file"
    directory.write_text("no directory")
    writer = HistoryWriter(directory, HistoryLimits(days=3, interval_s=0.01, chunk=10, buffer=50))
    async with background_task(writer.run(), "history"):
        writer.append(samples(0, 30))
        await until(lambda: len(writer._buffer) == 30)  # noqa: SLF001
        writer.append(samples(30, 40))
        await until(lambda: len(writer._buffer) == 50)  # noqa: SLF001
        assert writer.dropped == 20
        directory.unlink()
        await until(lambda: writer.written == 50)
    assert values(directory) == list(range(20, 70))


async def test_disk_that_refuses_is_not_tried_again_at_each_sample(tmp_path: Path) -> None:
    """Each try encodes a whole chunk, which would slow the jobs."""
    directory = tmp_path / "file"
    directory.write_text("no directory")
    writer = HistoryWriter(directory, HistoryLimits(days=3, chunk=10))
    async with background_task(writer.run(), "history"):
        for number in range(30):
            writer.append(samples(number * 10, 10))
            await asyncio.to_thread(os.sched_yield)
        assert writer.revision == 2
        directory.unlink()
    assert values(directory) == list(range(300))


async def test_day_that_is_written_is_not_written_again_with_the_next(tmp_path: Path) -> None:
    tomorrow = tmp_path / "2024-10-05.arrows.gz"
    tomorrow.mkdir()  # a file that cannot be opened
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3, interval_s=0.01, chunk=10))
    async with background_task(writer.run(), "history"):
        writer.append(samples(DAY - 5, 10))
        await until(lambda: writer.revision >= 6)
        tomorrow.rmdir()
        await until(lambda: writer.written >= 10)
    assert values(tmp_path) == list(range(DAY - 5, DAY + 5))
    assert (writer.written, writer.dropped) == (10, 0)


async def test_chunk_is_not_repeated_when_an_old_file_cannot_be_removed(tmp_path: Path) -> None:
    old = tmp_path / "2001-01-01.arrows.gz"
    old.mkdir()
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3, interval_s=0.01, chunk=10))
    async with background_task(writer.run(), "history"):
        writer.append(samples(0, 10))
        await until(lambda: writer.revision > 0 and not writer.buffered("t", 0, START + DAY))
        old.rmdir()
        writer.append(samples(10, 10))
        await until(lambda: writer.written == 20)
    assert values(tmp_path) == list(range(20))


async def test_chunk_that_fails_during_the_stop_is_written_with_the_rest(tmp_path: Path) -> None:
    today = tmp_path / "2024-10-04.arrows.gz"
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3, chunk=10))
    async with background_task(writer.run(), "history"):
        await asyncio.sleep(0)
        os.mkfifo(today)  # its reader waits, and fails when it seeks
        writer.append(samples(0, 10))
        await until(lambda: writer.revision == 1)
        answering = asyncio.create_task(asyncio.to_thread(fail, today))
    await answering
    assert values(tmp_path) == list(range(10))


def fail(pipe: Path) -> None:
    descriptor = os.open(pipe, os.O_WRONLY)
    pipe.unlink()
    os.close(descriptor)


async def test_cancelled_write_is_not_repeated(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path, HistoryLimits(days=3, chunk=10))
    for _ in range(5):
        async with background_task(writer.run(), "history"):
            writer.append(samples(writer.written, 10))
            await asyncio.sleep(0)
    assert values(tmp_path) == list(range(50))
