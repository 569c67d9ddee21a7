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

from tests.outside.conftest import Plant
from tests.outside.servers import Gateway, wait_for
from tests.outside.test_full_disk import on_own_disk

pytestmark = pytest.mark.slow

KILLS = 8


def archiving(gateway: Gateway, directory: Path) -> None:
    """Switch the archive on."""
    text = f'\n[archive]\ndirectory = "{directory}"\ninterval = 0.3\n'
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


def count(file: Path) -> int:
    """Return the number of jobs that a sound archive has."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(connection.execute("SELECT count(*) FROM job").fetchone()[0])
