"""Traces as files: written once, referenced, limited, expired; a full disk loses only the trace."""

import json
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.features.traces.files import TraceFiles, TraceLimits, directory_of, read_chunk, read_file
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.ports.result_trace import NoResultFiles, TraceReference, lost_in, stored_in
from tests.conftest import WaitUntil

NOW = 1_800_000_000.0
LIMITS = TraceLimits(max_bytes=1 << 20, max_files=100, max_age_s=3600 * 24)


def result(first: float = 0.0, points: int = 2000) -> dict[str, Any]:
    curve = [first + n / 10 for n in range(points)]
    channels = [{"name": name, "values": curve} for name in ("Torque", "Angle")]
    return {"torque": {"value": 85.2}, "trace": {"channels": channels}}


def files_in(directory: Path) -> list[Path]:
    return sorted(file for file in directory.rglob("*") if file.is_file())


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (NOW - seconds, NOW - seconds))


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., TraceFiles]:
    def opener(limits: TraceLimits = LIMITS) -> TraceFiles:
        return TraceFiles(tmp_path, limits, lambda: NOW)

    return opener


async def test_trace_of_4000_points_is_stored_and_read_again(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    kept = await opened().keep("AXLE-1", result())
    (reference,) = stored_in(kept)
    assert isinstance(reference, TraceReference)
    assert (reference.points, reference.channels) == (4000, ("Torque", "Angle"))
    assert len(read_file(tmp_path, reference)) == reference.size
    assert read_chunk(tmp_path, reference.file, 10, 5) == (read_file(tmp_path, reference)[10:15], reference.size)
    assert kept["torque"] == {"value": 85.2}


async def test_same_trace_is_written_once(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    files = opened()
    one = await files.keep("J1", result())
    written = files_in(tmp_path)[0].stat().st_mtime_ns
    assert await files.keep("J1", result()) == one
    assert [path.stat().st_mtime_ns for path in files_in(tmp_path)] == [written]


async def test_traces_within_a_batch_are_stored(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    kept = await opened().keep("J1", {"results": {"1": result(), "2": result(first=1)}})
    assert len(stored_in(kept)) == len(files_in(tmp_path)) == 2


async def test_result_without_a_trace_is_unchanged(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    for data in ({"torque": 1}, "text", None, {"trace": "T1"}):
        assert await opened().keep("J1", data) == data
    assert files_in(tmp_path) == []


async def test_disk_error_loses_the_trace_but_not_the_result(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    files = TraceFiles(blocked, LIMITS, lambda: NOW)
    kept = await files.keep("J1", result())
    assert kept["torque"] == {"value": 85.2}
    assert kept["trace"]["error"]
    assert stored_in(kept) == []
    assert len(lost_in(kept)) == 1


async def test_too_many_points_are_not_stored(opened: Callable[..., TraceFiles]) -> None:
    kept = await opened().keep("J1", result(points=500_001))
    assert "at most" in kept["trace"]["error"]


async def test_oldest_files_are_deleted_beyond_the_limit(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    files = opened(TraceLimits(1 << 20, 4, LIMITS.max_age_s))
    for n in range(8):
        (reference,) = stored_in(await files.keep(f"J{n}", result(first=n)))
        aged(tmp_path / reference.file, 100 - n)
    names = {path.parent.name for path in files_in(tmp_path)}
    assert len(names) <= 4
    assert "J7" in names
    assert "J0" not in names


async def test_files_expire_with_their_directory(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    (old,) = stored_in(await opened().keep("J1", result()))
    aged(tmp_path / old.file, LIMITS.max_age_s + 1)
    await opened().keep("J2", result())
    assert {path.parent.name for path in files_in(tmp_path)} == {"J2"}
    assert not (tmp_path / "J1").exists()
    with pytest.raises(Refused, match="not stored any more"):
        read_file(tmp_path, old)


async def test_file_without_a_reference_is_an_orphan(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    files = opened()
    for job in ("kept", "lost", "young"):
        (reference,) = stored_in(await files.keep(job, result()))
        aged(tmp_path / reference.file, 60 if job == "young" else 7200)

    async def is_referenced(job_id: str, _digest: str) -> bool:
        return job_id == "kept"

    assert await files.remove_orphans(is_referenced) == 1
    assert {path.parent.name for path in files_in(tmp_path)} == {"kept", "young"}
    assert await files.remove_orphans(is_referenced) == 0


async def test_failed_sweep_is_logged_and_retried(
    tmp_path: Path, opened: Callable[..., TraceFiles], wait_until: WaitUntil
) -> None:
    """A disk that had become read-only ended the gateway."""
    stuck = tmp_path / "J1" / f"{'a' * 64}.json.gz"
    stuck.mkdir(parents=True)
    aged(stuck, 3600 * 48)

    async def is_referenced(_job_id: str, _digest: str) -> bool:
        return True

    with capture_logs() as logs:
        async with background_task(opened().run(is_referenced), "traces"):
            await wait_until(lambda: logs)
    assert [entry["event"] for entry in logs] == ["traces not swept"]


async def test_partial_file_of_an_aborted_write_is_removed(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    (tmp_path / "J1").mkdir()
    rest = tmp_path / "J1" / ".abc.json.gz.partial"
    rest.write_bytes(b"half")
    aged(rest, 7200)
    await opened().keep("J2", result())
    assert not rest.exists()


async def test_changed_content_is_refused(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    (reference,) = stored_in(await opened().keep("J1", result()))
    (tmp_path / reference.file).write_bytes(b"other")
    with pytest.raises(Refused, match="does not match its hash"):
        read_file(tmp_path, reference)


@pytest.mark.parametrize("file", ["../etc/passwd", "/etc/passwd", "J1/x", "", f"..%2F/{'a' * 64}.json.gz"])
def test_name_of_another_file_is_refused(tmp_path: Path, file: str) -> None:
    with pytest.raises(Refused):
        read_file(tmp_path, TraceReference(points=0, channels=(), file=file))


@pytest.mark.parametrize("job_id", ["..", "a/b", "", "x" * 500, "~a", "Achse 7 ü"])
def test_directory_of_a_job_stays_below_its_parent(job_id: str) -> None:
    name = directory_of(job_id)
    assert "/" not in name
    assert "." not in name
    assert 0 < len(name) <= 150
    assert directory_of(job_id + "1") != name


async def test_curves_are_dropped_without_a_directory() -> None:
    kept = await NoResultFiles().keep("J1", result())
    assert kept["trace"] == {"points": 4000, "channels": ["Torque", "Angle"], "error": "[traces] directory is empty"}


async def test_deeply_nested_results_are_kept_unchanged(opened: Callable[..., TraceFiles]) -> None:
    nested = json.loads('{"results": {"1": ' * 300 + '{"trace": {"channels": []}}' + "}}" * 300)
    kept = await opened().keep("J1", nested)
    assert kept is nested
    assert stored_in(kept) == []


PNG = b"\x89PNG\r\n\x1a\n"


async def parts_of(*parts: bytes | Exception) -> AsyncGenerator[bytes, None]:
    for part in parts:
        if isinstance(part, Exception):
            raise part
        yield part


async def test_device_file_is_stored_in_parts(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    files = opened()
    reference = await files.store_file("J/1", parts_of(PNG, b"1" * 300_000, b"2"))
    assert reference.media_type == "image/png"
    assert read_file(tmp_path, reference) == PNG + b"1" * 300_000 + b"2"
    assert read_chunk(tmp_path, reference.file, 300_000, 99) == (b"1" * 8 + b"2", reference.size)
    assert await files.store_file("J/1", parts_of(PNG, b"1" * 300_000, b"2")) == reference
    assert len(files_in(tmp_path)) == 1
    assert stored_in({"file": {"media_type": "image/png", "file": reference.file, "sha256": reference.sha256}})


@pytest.mark.parametrize(
    ("start", "suffix"),
    [(b"\xff\xd8\xff\xe0", "jpg"), (b"II*\0", "tif"), (b"%PDF-1.7", "pdf"), (b"BM1234", "bmp"), (b"<html>", "bin")],
)
async def test_file_kind_is_detected_from_its_content(
    opened: Callable[..., TraceFiles], start: bytes, suffix: str
) -> None:
    assert (await opened().store_file("J1", parts_of(start))).file.endswith(f".{suffix}")


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((PNG, b"1" * (1 << 20), b"1" * (1 << 20)), "more than 1048576 bytes"),
        ((PNG, Refused("device", "the transfer took too long")), "the transfer took too long"),
        ((), "the file is empty"),
    ],
    ids=["too large", "refused by its device", "empty"],
)
async def test_failed_file_storage_leaves_no_file(
    tmp_path: Path, opened: Callable[..., TraceFiles], parts: tuple[bytes | Exception, ...], error: str
) -> None:
    reference = await opened(msgspec.structs.replace(LIMITS, max_file_bytes=1 << 20)).store_file("J1", parts_of(*parts))
    assert error in reference.error
    assert lost_in({"file": {"error": reference.error}}) == [reference.error]
    assert files_in(tmp_path) == []


async def test_file_beyond_the_total_limit_removes_no_other(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    files = opened(LIMITS)  # of 1 MiB in all, and of 16 MiB a file
    assert (await files.store_file("J1", parts_of(PNG))).file
    assert "more than 1048576 bytes" in (await files.store_file("J1", parts_of(PNG, b"1" * (1 << 20)))).error
    assert len(files_in(tmp_path)) == 1


async def test_lost_connection_leaves_no_partial_file(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    with pytest.raises(Unavailable):
        await opened().store_file("J1", parts_of(PNG, Unavailable("the connection is lost")))
    assert files_in(tmp_path) == []


async def test_disk_error_of_a_file_is_reported_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    assert (await TraceFiles(tmp_path / "file", LIMITS, lambda: NOW).store_file("J1", parts_of(PNG))).error


async def test_partial_transfer_is_removed_after_an_hour(tmp_path: Path, opened: Callable[..., TraceFiles]) -> None:
    for name, age in (("..1.received.partial", 7200), (".2.received", 7200), ("..3.received.partial", 60)):
        (tmp_path / name).write_bytes(PNG)
        aged(tmp_path / name, age)
    await opened().store_file("J1", parts_of(PNG))
    assert [path.name for path in files_in(tmp_path) if path.name.startswith(".")] == ["..3.received.partial"]


async def test_gateway_without_a_directory_does_not_read_the_file() -> None:
    reference = await NoResultFiles().store_file("J1", parts_of(AssertionError("read")))
    assert reference.error == "[traces] directory is empty"
    assert lost_in({"file": {"error": reference.error}}) == []
