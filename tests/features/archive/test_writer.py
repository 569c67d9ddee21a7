"""Each ended job comes into the archive once, whatever happens before it is there."""

import asyncio
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from msgspec.structs import replace

from edge.features.archive.database import ArchiveFault, ArchiveFile
from edge.features.archive.search import Search, load_archived
from edge.features.archive.writer import BATCH, ArchiveWriter
from edge.foundation import threads
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause
from edge.sfc.run import Outcome
from edge.station.stored_job import RecordedRun, replay_recorded
from edge.store import archive_backlog, jobs
from tests.conftest import WaitUntil
from tests.features.archive.archived import end_jobs, ids_in, jobs_in, open_writer
from tests.station.plant import NOW, SCOPE, Plant, order


async def test_ended_job_is_archived_with_response_run_and_history(plant: Plant, archive_file: ArchiveFile) -> None:
    await end_jobs(plant, ["J1"])
    await (await open_writer(plant, archive_file)).flush()
    job = await plant.job("J1")
    assert job.archived == job.revision
    detail = load_archived(archive_file.file, job.correlation_id)
    assert detail.line.outcome == "completed"
    assert detail.line.parameters == {"vin": "VIN-J1"}
    assert set(detail.line.step_ms) == {"one", "two"}
    assert detail.stored.run
    assert detail.stored.run.outcome is Outcome.COMPLETED
    assert detail.stored.response
    assert detail.stored.response.job_order_id == "J1"
    assert isinstance(detail.recorded, RecordedRun)
    assert getattr(replay_recorded(detail.recorded), "is_same", False)


async def test_job_that_has_not_ended_is_not_archived(plant: Plant, archive_file: ArchiveFile) -> None:
    await plant.order(Cause.STORE, order("J1"))
    await end_jobs(plant, ["J2"])
    await (await open_writer(plant, archive_file)).flush()
    assert ids_in(archive_file.file) == ["J2"]


async def test_job_aborted_before_its_start_is_archived(plant: Plant, archive_file: ArchiveFile) -> None:
    await plant.order(Cause.STORE, order("J1"))
    await plant.ask(Cause.ABORT, "J1")
    await (await open_writer(plant, archive_file)).flush()
    (job,) = jobs_in(archive_file.file)
    assert (job.job_order_id, job.outcome, job.started_at) == ("J1", "aborted", None)


async def test_second_flush_writes_nothing(plant: Plant, archive_file: ArchiveFile) -> None:
    await end_jobs(plant, ["J1"])
    writer = await open_writer(plant, archive_file)
    await writer.flush()
    before = archive_file.file.with_name("results.sqlite-wal").stat().st_size
    await plant.order(Cause.STORE, order("J2"))
    await writer.flush()
    assert archive_file.file.with_name("results.sqlite-wal").stat().st_size == before
    assert writer.archived == 1


async def test_job_that_changes_after_its_end_replaces_the_archived_one(
    plant: Plant, archive_file: ArchiveFile
) -> None:
    await end_jobs(plant, ["J1"])
    writer = await open_writer(plant, archive_file)
    await writer.flush()
    job = await plant.job("J1")
    await plant.store.commit(jobs.save(plant.store.keys, job, _later(job), [(Cause.RESULT_UPDATE, job.status)], NOW))
    await writer.flush()
    (archived,) = jobs_in(archive_file.file)
    assert archived.job_order_id == "J1"
    assert load_archived(archive_file.file, archived.id).stored.job.revision == job.revision + 1
    assert ids_in(archive_file.file, Search(text="vin-j1")) == ["J1"]


def _later(job: jobs.Job) -> jobs.Job:
    return replace(job, revision=job.revision + 1, error="late")


async def test_job_cleared_before_it_is_archived_waits_in_the_backlog(plant: Plant, archive_file: ArchiveFile) -> None:
    writer = await open_writer(plant, archive_file)
    await end_jobs(plant, ["J1"])
    await plant.ask(Cause.CLEAR, "J1")
    assert await archive_backlog.count_backlog(plant.store, SCOPE) == 1
    await writer.flush()
    assert ids_in(archive_file.file) == ["J1"]
    assert await archive_backlog.count_backlog(plant.store, SCOPE) == 0


async def test_archived_job_that_is_cleared_leaves_no_documents(plant: Plant, archive_file: ArchiveFile) -> None:
    writer = await open_writer(plant, archive_file)
    await end_jobs(plant, ["J1"])
    await writer.flush()
    await plant.ask(Cause.CLEAR, "J1")
    assert await archive_backlog.count_backlog(plant.store, SCOPE) == 0


async def test_store_without_archive_keeps_no_documents(plant: Plant) -> None:
    await end_jobs(plant, ["J1"])
    await plant.ask(Cause.CLEAR, "J1")
    assert await archive_backlog.count_backlog(plant.store, SCOPE) == 0


async def test_two_jobs_of_one_id_are_both_archived(plant: Plant, archive_file: ArchiveFile) -> None:
    writer = await open_writer(plant, archive_file)
    for _ in range(2):
        await end_jobs(plant, ["J1"])
        await plant.ask(Cause.CLEAR, "J1")
    await writer.flush()
    assert ids_in(archive_file.file) == ["J1", "J1"]


async def test_job_beyond_the_bound_of_the_backlog_is_counted(
    plant: Plant, archive_file: ArchiveFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_backlog, "MOST_REMOVED", 1)
    writer = await open_writer(plant, archive_file)
    await end_jobs(plant, ["J1", "J2"])
    for job_id in ("J1", "J2"):
        await plant.ask(Cause.CLEAR, job_id)
    await writer.flush()
    assert ids_in(archive_file.file) == ["J1"]
    assert writer.lost == 1


async def test_job_that_is_lost_while_the_archive_fails_is_counted_then(
    plant: Plant, archive_file: ArchiveFile, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    """The count, and so the alarm, came only once the archive could be written again."""
    monkeypatch.setattr(archive_backlog, "MOST_REMOVED", 1)
    writer = await open_writer(plant, archive_file)
    archive_file.file.parent.write_text("a file in the place of the directory")
    await end_jobs(plant, ["J1", "J2"])
    for job_id in ("J1", "J2"):
        await plant.ask(Cause.CLEAR, job_id)
    async with background_task(writer.run(), "archive"):
        await wait_until(lambda: writer.fault)
        await wait_until(lambda: (writer.waiting, writer.lost) == (1, 1))


async def test_backlog_is_gone_once_the_archive_is_switched_off(plant: Plant, archive_file: ArchiveFile) -> None:
    await open_writer(plant, archive_file)
    await end_jobs(plant, ["J1"])
    await plant.ask(Cause.CLEAR, "J1")
    await plant.store.commit(await archive_backlog.plan_withdrawal(plant.store, SCOPE, "another"))
    assert await archive_backlog.count_backlog(plant.store, SCOPE) == 1
    await plant.store.commit(await archive_backlog.plan_withdrawal(plant.store, SCOPE, "edge"))
    assert await archive_backlog.count_backlog(plant.store, SCOPE) == 0


async def test_jobs_wait_in_the_store_while_the_file_cannot_be_written(plant: Plant, archive_file: ArchiveFile) -> None:
    await end_jobs(plant, ["J1"])
    writer = await open_writer(plant, archive_file)
    archive_file.file.parent.write_text("a file in the place of the directory")
    with pytest.raises(ArchiveFault, match="cannot be used"):
        await writer.flush()
    assert (await plant.job("J1")).archived == 0
    archive_file.file.parent.unlink()
    await writer.flush()
    assert ids_in(archive_file.file) == ["J1"]


async def test_damaged_file_is_set_aside_and_a_new_one_begun(
    plant: Plant, archive_file: ArchiveFile, wait_until: WaitUntil
) -> None:
    await end_jobs(plant, ["J1"])
    archive_file.file.parent.mkdir()
    archive_file.file.write_bytes(b"this is no database" * 1000)
    await plant.store.commit(archive_backlog.announce(plant.store.keys, SCOPE, "edge"))
    writer = ArchiveWriter(plant.store, SCOPE, archive_file, lambda: NOW, 0.01, retry_s=0.01)
    async with background_task(writer.run(), "archive"):
        await wait_until(lambda: writer.archived == 1 and not writer.fault)
    assert [path.name for path in archive_file.file.parent.glob("results-damaged-*")] == [
        f"results-damaged-{NOW}.sqlite"
    ]
    assert ids_in(archive_file.file) == ["J1"]


async def test_new_file_gets_the_jobs_that_a_lost_one_had(plant: Plant, archive_file: ArchiveFile) -> None:
    await end_jobs(plant, ["J1"])
    await (await open_writer(plant, archive_file)).flush()
    archive_file.close()
    archive_file.file.unlink()
    await (await open_writer(plant, archive_file)).flush()
    assert ids_in(archive_file.file) == ["J1"]


async def test_unreadable_job_does_not_hold_up_the_others(plant: Plant, archive_file: ArchiveFile) -> None:
    await end_jobs(plant, ["J1", "J2"])
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "order", "{")
    await (await open_writer(plant, archive_file)).flush()
    assert ids_in(archive_file.file) == ["J2"]


async def test_more_jobs_than_one_transaction_holds_are_all_archived(plant: Plant, archive_file: ArchiveFile) -> None:
    job_ids = [f"J{number:03}" for number in range(BATCH + 20)]
    for start in range(0, len(job_ids), 60):
        await end_jobs(plant, job_ids[start : start + 60])
    writer = await open_writer(plant, archive_file)
    while await writer.flush():
        pass
    assert ids_in(archive_file.file) == job_ids
    assert isinstance(writer, ArchiveWriter)


async def test_hanging_disk_does_not_hold_up_the_stop(
    plant: Plant, archive_file: ArchiveFile, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "STOP_WAIT_S", 0.2)
    writer = await open_writer(plant, archive_file)
    await end_jobs(plant, ["J1"])
    await writer.flush()
    await end_jobs(plant, ["J2"])
    with closing(sqlite3.connect(archive_file.file)) as other:
        other.execute("BEGIN IMMEDIATE")
        archiving = asyncio.create_task(writer.run())
        await wait_until(lambda: any(thread.name == "archive" for thread in threading.enumerate()))
        archiving.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await archiving
        await writer.close()
        assert time.monotonic() - begun < 5  # the thread waits for ten
        other.rollback()
    await wait_until(lambda: all(thread.name != "archive" for thread in threading.enumerate()))
