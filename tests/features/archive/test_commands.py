"""`edge results` finds, shows, exports and copies the jobs of the archive."""

import json
from pathlib import Path

import pytest

from edge.features.archive.database import ArchiveFile
from tests.cli.calling import Edge
from tests.features.archive.archived import end_jobs, ids_in, open_writer
from tests.station.plant import Plant


@pytest.fixture
def _archiving(settings_file: Path, archive_file: ArchiveFile) -> None:
    with settings_file.open("a") as settings:
        settings.write(f'\n[archive]\ndirectory = "{archive_file.file.parent}"\n')


@pytest.fixture
async def archived(plant: Plant, archive_file: ArchiveFile, edge: Edge, _archiving: None) -> Edge:
    """How to call `edge` with an archive of three jobs."""
    await end_jobs(plant, ["J1", "J2", "J3"])
    await (await open_writer(plant, archive_file)).flush()
    return edge


async def test_jobs_are_found_by_vin_parameter_and_period(archived: Edge) -> None:
    for arguments in (("vin-j2",), ("--parameter", "vin=VIN-J2"), ("J2", "--outcome", "completed")):
        data = json.loads((await archived("results", "find", *arguments, "--json")).output)
        assert [job["job_order_id"] for job in data["jobs"]] == ["J2"]
    text = (await archived("results", "find")).output
    assert all(job_id in text for job_id in ("J1", "J2", "J3"))
    assert (await archived("results", "find", "--since", "2035-01-01")).output == "no jobs\n"
    assert "J1" in (await archived("results", "find", "--until", "2023-11-15")).output
    assert "no jobs" in (await archived("results", "find", "--until", "2023-11-10")).output


async def test_page_follows_the_one_before(archived: Edge) -> None:
    first = json.loads((await archived("results", "find", "--last", "2", "--json")).output)
    second = json.loads((await archived("results", "find", "--after", first["next"], "--json")).output)
    assert len({job["id"] for job in (*first["jobs"], *second["jobs"])}) == 3
    assert "more: --after" in (await archived("results", "find", "--last", "2")).output


async def test_job_is_shown_with_its_results(archived: Edge) -> None:
    data = json.loads((await archived("results", "show", "J2", "--json")).output)
    assert data["response"]["JobOrderID"] == data["order"]["JobOrderID"] == "J2"
    assert {result["action"] for result in data["results"]} == {"a", "b"}
    text = (await archived("results", "show", "J2")).output
    assert text.startswith("J2: ok, linear, ended ")
    assert "vin: VIN-J2" in text
    unknown = await archived("results", "show", "J9")
    assert (unknown.exit_code, "the archive has no job 'J9'" in unknown.output) == (1, True)


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.json", "jobs.jsonl"])
async def test_jobs_are_exported(archived: Edge, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    assert (await archived("results", "export", file, "--column", "vin")).exit_code == 0
    assert all(f"VIN-{job_id}" in file.read_text() for job_id in ("J1", "J2", "J3"))


async def test_export_to_standard_output_is_nothing_else(archived: Edge) -> None:
    lines = (await archived("results", "export", "-", "vin-j1")).output.splitlines()
    assert [json.loads(line)["job_order_id"] for line in lines] == ["J1"]


async def test_export_to_a_missing_folder_names_the_file(archived: Edge, tmp_path: Path) -> None:
    outcome = await archived("results", "export", tmp_path / "missing" / "jobs.csv")
    assert (outcome.exit_code, "cannot be written" in outcome.output) == (1, True)


async def test_archive_is_copied_while_it_is_open(archived: Edge, tmp_path: Path) -> None:
    assert (await archived("results", "copy", tmp_path / "copy.sqlite")).exit_code == 0
    assert ids_in(tmp_path / "copy.sqlite") == ["J1", "J2", "J3"]
    assert (await archived("results", "copy", tmp_path / "copy.sqlite")).exit_code == 2


async def test_command_without_an_archive_names_the_setting(edge: Edge) -> None:
    outcome = await edge("results", "find")
    assert (outcome.exit_code, "archive: has no directory" in outcome.output) == (2, True)


async def test_parameter_without_a_value_is_a_usage_error(archived: Edge) -> None:
    assert (await archived("results", "find", "--parameter", "vin")).exit_code == 2
