"""`edge station diff`, `apply` and `export` use the station files; `edge check station` needs no store."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from edge.cli import main
from edge.store import audit
from edge.store.client import Store
from tests.cli.calling import Edge, Offline
from tests.features.station_files.site import MASTER, NUMBER_OF_OBJECTS, SCOPE, make_site, write


@pytest.fixture
def site(tmp_path: Path, settings_file: Path) -> Path:
    folder = make_site(tmp_path / "station.d")
    settings_file.write_text(f'{settings_file.read_text()}[station]\nfiles = "{folder}"\n')
    return folder


async def test_station_files_have_no_difference_after_apply(edge: Edge, site: Path, store: Store) -> None:
    before = await edge("station", "diff", "--json")
    found = json.loads(before.output)
    assert (before.exit_code, found["initialized"], len(found["differences"])) == (3, "absent", NUMBER_OF_OBJECTS)
    applied = await edge("station", "apply")
    assert applied.exit_code == 0, applied.output
    assert applied.output.endswith(f"{NUMBER_OF_OBJECTS} objects changed\n")
    after = await edge("station", "diff", "--json")
    assert (after.exit_code, json.loads(after.output)) == (
        0,
        {"folder": str(site), "initialized": "filled", "differences": []},
    )
    records: list[dict[str, Any]] = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 100)]
    assert len(records) == NUMBER_OF_OBJECTS
    (record,) = (entry for entry in records if entry["action"] == "station put workmaster")
    assert (record["subject"], record["comment"]) == (f"{SCOPE}/axle", f"scopes/{SCOPE}/workmasters/axle.json")
    assert (await edge("station", "apply", "--json")).output == "[]\n"


async def test_difference_is_shown_with_its_content(edge: Edge, site: Path) -> None:
    await edge("station", "apply")
    write(site, f"scopes/{SCOPE}/workmasters/axle.json", {**MASTER, "Description": {"Text": "other"}})
    await edge("station", "set", "equipment", "saw")
    result = await edge("station", "diff", "--content")
    assert result.exit_code == 3
    lines = result.output.splitlines()
    assert lines[:2] == [
        "extra    equipment station-1/saw",
        "changed  workmaster station-1/axle  scopes/station-1/workmasters/axle.json",
    ]
    assert {'-    "Text": "axle"', '+    "Text": "other"'} <= set(lines)
    assert lines[-1] == f"{site}: 1 changed, 1 not in the files"
    found = json.loads((await edge("station", "diff", "--content", "--json")).output)["differences"]
    assert found[1]["in_files"]["Description"] == {"Text": "other"}
    deleted = await edge("station", "apply", "--delete", "--json")
    assert [load["change"] for load in json.loads(deleted.output)] == ["extra", "changed"]


async def test_faulty_file_prevents_the_apply_of_all_files(edge: Edge, site: Path, store: Store) -> None:
    write(site, "rules/bad.json", "{bad")
    for command in ("diff", "apply"):
        answer = await edge("station", command)
        assert answer.exit_code == 2
        assert "rules/bad.json: not JSON" in answer.output
    assert not await store.execute("EXISTS", store.keys.initialized(), store.keys.workmaster_list(SCOPE))


async def test_exported_files_have_no_difference_from_the_store(edge: Edge, site: Path, tmp_path: Path) -> None:
    await edge("station", "apply")
    assert (await edge("station", "export", tmp_path / "new")).output.endswith("new: 6 files written\n")
    assert (await edge("station", "diff", tmp_path / "new")).exit_code == 0
    again = await edge("station", "export", site)
    assert (again.exit_code, "is not empty" in again.output) == (1, True)


async def test_folder_without_files_is_refused_with_advice(edge: Edge, tmp_path: Path) -> None:
    answer = await edge("station", "diff", tmp_path)
    assert (answer.exit_code, "there are no station files" in answer.output) == (2, True)


async def test_unknown_scope_in_the_files_is_reported_as_a_warning(edge: Edge, site: Path) -> None:
    write(site, "scopes/statoin-1/station.json", {"equipment": ["saw"]})
    assert "warning: no gateway of this store has the scope 'statoin-1'" in (await edge("station", "diff")).output


def test_station_files_are_checked_without_a_store(tmp_path: Path) -> None:
    folder = make_site(tmp_path)
    assert CliRunner().invoke(main, ["check", "station", str(folder)]).exit_code == 0
    write(folder, "flows/bad.json", {"id": "q"})
    answer = CliRunner().invoke(main, ["check", "station", str(folder), "--json"])
    assert answer.exit_code == 2
    assert any(problem.startswith("flows/bad.json: ") for problem in json.loads(answer.output)["faults"])


@pytest.mark.parametrize(
    ("command", "reason"),
    [("diff", "there are no station files"), ("apply", "there are no station files"), ("export", "is not empty")],
)
def test_folder_is_checked_before_the_store_is_opened(
    offline: Offline, tmp_path: Path, command: str, reason: str
) -> None:
    (tmp_path / "notes.txt").touch()
    assert reason in offline("station", command, tmp_path).output


def test_faults_of_files_are_named_where_no_store_answers(offline: Offline, tmp_path: Path) -> None:
    folder = make_site(tmp_path / "station.d")
    write(folder, f"scopes/{SCOPE}/workmasters/axle.json", "{")
    assert "axle.json" in offline("station", "apply", folder).output
