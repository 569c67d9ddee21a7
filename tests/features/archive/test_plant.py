"""A real PostgreSQL of the plant gets each job once, also when it, the network or the gateway is gone meanwhile."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from edge.features.archive.checks import examine_plant
from edge.features.archive.database import ArchiveFile
from edge.features.archive.plant import Forwarder, PlantUnavailable, forward
from edge.features.archive.record import term_of
from edge.features.archive.settings import ArchiveSettings
from edge.model.finding import Level, public_form
from tests.features.archive.archived import end_jobs, open_writer
from tests.features.archive.postgres import Postgres, own_postgres
from tests.features.archive.records import record, records
from tests.station.plant import Plant

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server of this module."""
    with own_postgres() as postgres:
        if postgres is None:
            pytest.skip("needs PostgreSQL: apt install postgresql")
        yield postgres


@pytest.fixture
def postgres(server: Postgres) -> Postgres:
    """The server without what another test wrote."""
    server.reset()
    return server


def forward_all(file: ArchiveFile, postgres: Postgres) -> int:
    """Forward until nothing is left; return how many jobs."""
    total = 0
    while count := forward(file.file, postgres.url, "", "edge-1"):
        total += count
    return total


def ids_in(postgres: Postgres) -> list[object]:
    """Return the JobOrderIDs that the plant has."""
    return [row[0] for row in postgres.rows("SELECT job_order_id FROM microdcs.job ORDER BY ended_at")]


async def test_plant_gets_what_the_gateway_archived(
    plant: Plant, archive_file: ArchiveFile, postgres: Postgres
) -> None:
    await end_jobs(plant, ["J1", "J2"])
    await (await open_writer(plant, archive_file)).flush()
    assert forward_all(archive_file, postgres) == 2
    rows = postgres.rows(
        "SELECT job_order_id, gateway, outcome, facts->'parameters'->>'vin' FROM microdcs.job "
        "JOIN microdcs.term ON term.job = job.id WHERE term.value = 'vin-j2'"
    )
    (documents,) = postgres.rows("SELECT documents->'response'->>'response' FROM microdcs.job LIMIT 1")[0]
    assert [row[:3] for row in rows] == [("J2", "edge-1", "completed")]
    assert json.loads(str(documents))["JobOrderID"] in {"J1", "J2"}
    assert forward_all(archive_file, postgres) == 0


def test_replaced_job_replaces_the_forwarded_one(archive_file: ArchiveFile, postgres: Postgres) -> None:
    archive_file.write(records(range(3)), {})
    assert forward_all(archive_file, postgres) == 3
    archive_file.write([replace(record(1, term_of("code", "late")), revision=2, remark="late result")], {})
    assert forward_all(archive_file, postgres) == 1
    assert ids_in(postgres) == ["J0", "J1", "J2"]
    assert postgres.rows("SELECT remark FROM microdcs.job WHERE job_order_id = 'J1'") == [("late result",)]
    assert postgres.rows("SELECT count(*) FROM microdcs.term WHERE value = 'late'") == [(1,)]


def test_new_file_of_a_gateway_is_forwarded_from_its_beginning(archive_file: ArchiveFile, postgres: Postgres) -> None:
    archive_file.write(records(range(3)), {})
    forward_all(archive_file, postgres)
    archive_file.close()
    archive_file.file.unlink()
    archive_file.write(records([7]), {})
    assert forward_all(archive_file, postgres) == 1
    assert len(ids_in(postgres)) == 4


async def test_doctor_names_what_waits_and_a_plant_that_is_away(archive_file: ArchiveFile, postgres: Postgres) -> None:
    archive_file.write(records(range(3)), {})
    settings = ArchiveSettings(directory=str(archive_file.file.parent), url=postgres.url)
    (before,) = [public_form(finding) async for finding in examine_plant(settings)]
    assert (before.level, before.found) == (Level.OK, "it answers; 3 jobs wait to be copied")
    forward_all(archive_file, postgres)
    (after,) = [public_form(finding) async for finding in examine_plant(settings)]
    assert after.found == "it answers; 0 jobs wait to be copied"
    away = replace(settings, url="postgresql://edge@127.0.0.1:1/results")
    (finding,) = [public_form(finding) async for finding in examine_plant(away)]
    assert (finding.level, "does not take results" in finding.found) == (Level.WARNING, True)


def test_text_with_a_nul_is_taken(archive_file: ArchiveFile, postgres: Postgres) -> None:
    archive_file.write([replace(record(1, term_of("code", "a\0b")), remark="a\0b")], {})
    assert forward_all(archive_file, postgres) == 1


async def test_jobs_wait_while_the_plant_is_away(archive_file: ArchiveFile, postgres: Postgres) -> None:
    archive_file.write(records(range(500)), {})
    forwarder = Forwarder(archive_file.file, postgres.url, "", "edge-1", 60)
    assert await forwarder.step() == 200
    postgres.kill()
    try:
        assert await forwarder.step() == 0
        assert "does not take results" in forwarder.fault
        with pytest.raises(PlantUnavailable):
            forward(archive_file.file, postgres.url, "", "edge-1")
    finally:
        postgres.start()
    while await forwarder.step():
        pass
    assert forwarder.fault == ""
    assert len(set(ids_in(postgres))) == len(ids_in(postgres)) == 500


_PROGRAM = """
import sys
from pathlib import Path
from edge.features.archive.plant import forward
print("ready", flush=True)
while forward(Path(sys.argv[1]), sys.argv[2], "", "edge-1"):
    pass
"""


def test_killed_gateway_forwards_each_job_once(archive_file: ArchiveFile, postgres: Postgres) -> None:
    archive_file.write(records(range(3000)), {})
    chance = random.Random(1)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, archive_file.file, postgres.url], stdout=subprocess.PIPE, env=os.environ
        )
        assert process.stdout
        process.stdout.readline()
        time.sleep(chance.uniform(0.01, 0.2))  # the instant of the kill is to differ
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait(60)
        process.stdout.close()
    forward_all(archive_file, postgres)
    assert [f"J{number}" for number in range(3000)] == ids_in(postgres)
    assert postgres.rows("SELECT count(*) FROM microdcs.recipe") == [(1,)]
