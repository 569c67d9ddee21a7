"""The archive from outside: jobs that are gone from the store are found by their VIN, whatever happened meanwhile."""

import contextlib
import json
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.features.archive.postgres import Postgres, own_postgres
from tests.outside.conftest import Plant
from tests.outside.servers import PREFIX, SCOPE, Gateway, wait_for
from tests.outside.test_full_disk import on_own_disk

pytestmark = pytest.mark.slow

KILLS = 8


def archiving(gateway: Gateway, directory: Path, url: str = "") -> None:
    """Switch the archive on, with a PostgreSQL of the plant where there is one."""
    text = f'\n[archive]\ndirectory = "{directory}"\nurl = "{url}"\ninterval = 0.3\n'
    gateway.settings.write_text(gateway.settings.read_text() + text)


def find(gateway: Gateway, *arguments: str) -> list[dict[str, Any]]:
    """Return the jobs that `edge results find` lists."""
    output = gateway.cli("results", "find", *arguments, "--last", "1000", "--json")
    return list(json.loads(output)["jobs"]) if output else []


def start_job(plant: Plant, job: str) -> None:
    """Start a job with a VIN."""
    order = {
        "JobOrderID": job,
        "WorkMasterID": [{"ID": "WM-1"}],
        "JobOrderParameters": [{"ID": "vin", "Value": f"WVW{job}"}],
    }
    assert plant.mes.call("StoreAndStart", {"JobOrder": order}).status == 1


def test_cleared_jobs_are_archived_once_after_kills_of_the_gateway(plant: Plant, tmp_path: Path) -> None:
    archiving(plant.gateway, tmp_path / "archive")
    plant.gateway.stop()
    plant.gateway.start()
    ended = []
    for number in range(KILLS):
        for job in (f"J{number}A", f"J{number}B"):
            start_job(plant, job)
            plant.mes.wait_for_state(job, "Ended")
            ended.append(job)
        assert plant.mes.call("Clear", {"JobOrderID": f"J{number}A"}).status == 1
        time.sleep(0.05 * number)  # the instant of the kill is to differ
        plant.gateway.kill()
        plant.gateway.start()
    wait_for(lambda: len(find(plant.gateway)) >= len(ended), "all jobs are archived")
    assert sorted(str(job["job_order_id"]) for job in find(plant.gateway)) == ended
    (archived,) = find(plant.gateway, "wvwj3a")
    assert (archived["outcome"], archived["parameters"]) == ("completed", {"vin": "WVWJ3A"})
    shown = json.loads(plant.gateway.cli("results", "show", "J3A", "--json"))
    assert shown["response"]["JobOrderID"] == "J3A"


def test_full_disk_of_the_archive_holds_up_no_job(plant: Plant, tmp_path: Path) -> None:
    directory, gateway = tmp_path / "archive", plant.gateway
    if subprocess.run(on_own_disk("1m", directory, "true"), capture_output=True, check=False).returncode:
        pytest.skip("this machine does not permit unshare --user --mount")
    archiving(gateway, directory)
    gateway.stop()
    gateway.within = on_own_disk("1m", directory)
    gateway.start()
    disk = Path(f"/proc/{gateway.pid}/root{directory}")
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass
    for number in range(12):
        start_job(plant, f"J{number}")
        plant.mes.wait_for_state(f"J{number}", "Ended")
    gateway.wait_for_status(lambda status: "results are not archived" in status, "it reports the disk")
    (disk / "filler").unlink()
    gateway.wait_for_status(lambda status: "not archived" not in status, "it works again")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in disk.glob("results.sqlite*"):
        shutil.copy(file, copy)
    assert count(copy / "results.sqlite") == 12


MOST_REMOVED = 10_000
"""The removed jobs that wait for the archive, according to docs/how-to/results.md."""


def alarm_of(plant: Plant, rule: str) -> dict[str, Any] | None:
    """Return an alarm that the MES has as raised; None without it."""
    events = [
        received.data for received in list(plant.mes.client.received) if received.topic == f"{PREFIX}/{SCOPE}/alarms"
    ]
    alarms = [event["alarm"] for event in events if event["alarm"]["rule"] == rule]
    return alarms[-1] if alarms and alarms[-1]["active"] else None


def listed(plant: Plant) -> set[str]:
    """Return the rules of the active alarms that `edge alarms list` has."""
    alarms = json.loads(plant.gateway.cli("alarms", "list", "--json"))
    return {alarm["rule"] for alarm in alarms if alarm["active"]}


def test_directory_that_cannot_be_written_is_an_alarm_of_the_mes(plant: Plant, tmp_path: Path) -> None:
    plant.mes.client.subscribe(f"{PREFIX}/{SCOPE}/alarms")
    directory, gateway = tmp_path / "archive", plant.gateway
    directory.write_text("a file in the place of the directory")
    archiving(gateway, directory)
    gateway.stop()
    gateway.start()
    start_job(plant, "J1")
    plant.mes.wait_for_state("J1", "Ended")
    plant.mes.client.wait(lambda: alarm_of(plant, "gateway.archive_fails"), "the MES has the alarm", 60)
    assert "gateway.archive_fails" in listed(plant)
    assert f"{directory} is not a directory" in gateway.cli("doctor")
    directory.unlink()
    plant.mes.client.wait(lambda: not alarm_of(plant, "gateway.archive_fails"), "the alarm is cleared", 60)
    assert [job["job_order_id"] for job in find(gateway)] == ["J1"]


def test_job_beyond_the_bound_is_an_alarm_while_the_archive_fails(plant: Plant, tmp_path: Path) -> None:
    plant.mes.client.subscribe(f"{PREFIX}/{SCOPE}/alarms")
    directory, gateway = tmp_path / "archive", plant.gateway
    directory.write_text("a file in the place of the directory")
    archiving(gateway, directory)
    gateway.stop()
    gateway.start()
    start_job(plant, "J1")
    plant.mes.wait_for_state("J1", "Ended")
    backlog = f"microdcs-edge:archive:backlog:{SCOPE}"
    fields = [word for number in range(MOST_REMOVED) for word in (f"before-{number}", "-")]
    assert plant.store.cli("hset", backlog, *fields) == str(MOST_REMOVED)
    assert plant.mes.call("Clear", {"JobOrderID": "J1"}).status == 1
    plant.mes.client.wait(lambda: alarm_of(plant, "gateway.jobs_lost_to_archive"), "the MES has the alarm", 60)
    assert {"gateway.archive_fails", "gateway.jobs_lost_to_archive"} <= listed(plant)
    assert "job lost to the archive" in gateway.log.read_text()
    assert plant.store.cli("hlen", backlog) == str(MOST_REMOVED)


def test_postgresql_of_the_plant_has_each_job_once_after_it_was_away(plant: Plant, tmp_path: Path) -> None:
    gateway = plant.gateway
    with own_postgres() as postgres:
        assert postgres, "run make setup: it installs PostgreSQL"
        archiving(gateway, tmp_path / "archive", url=postgres.url)
        gateway.stop()
        gateway.start()
        end_job(plant, "J1")
        wait_for(lambda: rows_of(postgres) == ["J1"], "the plant has the first job")
        postgres.kill()
        end_job(plant, "J2")
        gateway.wait_for_status(lambda status: "results wait for the plant" in status, "it reports the database")
        assert finding_of_the_plant(gateway)["level"] == "warning"
        postgres.start()
        wait_for(lambda: rows_of(postgres) == ["J1", "J2"], "the plant has both jobs")
        gateway.wait_for_status(lambda status: "wait for the plant" not in status, "it works again")
        found = finding_of_the_plant(gateway)
        assert (found["level"], found["found"]) == ("ok", "it answers; 0 jobs wait to be copied")
        (row,) = postgres.rows(
            "SELECT gateway, outcome FROM microdcs.job JOIN microdcs.term ON term.job = job.id WHERE value = 'wvwj2'"
        )
        assert row == ("edge", "completed")


def end_job(plant: Plant, job: str) -> None:
    """Run a job to its end."""
    start_job(plant, job)
    plant.mes.wait_for_state(job, "Ended")


def rows_of(postgres: Postgres) -> list[object]:
    """Return the JobOrderIDs of every row that the plant has; none before its tables are made."""
    if postgres.rows("SELECT to_regclass('microdcs.job')") == [(None,)]:
        return []
    return [row[0] for row in postgres.rows("SELECT job_order_id FROM microdcs.job ORDER BY ended_at")]


def finding_of_the_plant(gateway: Gateway) -> dict[str, Any]:
    """Return what `edge doctor` finds about the copy in the plant."""
    findings = json.loads(gateway.cli("doctor", "--json"))["findings"]
    return next(finding for finding in findings if finding["subject"] == "archive of the plant")


def count(file: Path) -> int:
    """Return the number of jobs that a sound archive has."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(connection.execute("SELECT count(*) FROM job").fetchone()[0])
