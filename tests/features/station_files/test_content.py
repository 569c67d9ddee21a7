"""The path of a file determines its objects; all its faults are reported, and none is ignored."""

import asyncio
import json
import os
from pathlib import Path, PurePosixPath

import pytest

from edge.features.station_files.content import FileContent, has_files, read_content, read_folder, signature
from edge.foundation.errors import SettingsError
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.features.station_files.site import (
    FLOW,
    LISTS,
    MASTER,
    NUMBER_OF_OBJECTS,
    RULE,
    TAG,
    make_site,
    new_documents,
    read_site,
    write,
)
from tests.station.plant import LINEAR


def read(name: str, content: object) -> FileContent:
    text = content if isinstance(content, str) else json.dumps(content)
    documents = new_documents()
    asyncio.run(documents.of("flow").prepare())
    return read_content(PurePosixPath(name), text.encode(), documents)


def names(found: FileContent) -> list[str]:
    assert found.faults == []
    return [str(station_object) for station_object in found.objects]


@pytest.mark.parametrize(
    ("file", "content", "objects"),
    [
        ("scopes/s/station.json", {"max_downloadable_job_orders": 0}, ["jobacceptance s"]),
        (
            "scopes/s/station.json",
            LISTS,
            ["equipment s/wrench", "equipment s/camera", "materialclass s/bolt", "personnel s/anna"],
        ),
        ("scopes/s/workmasters/axle.json", MASTER, ["workmaster s/axle"]),
        ("scopes/s/workmasters/line/a.json", [MASTER, {**MASTER, "ID": "b"}], ["workmaster s/axle", "workmaster s/b"]),
        ("tags/oven.json", [TAG], ["tag oven.temp"]),
        ("tags/oven/temp.json", TAG, ["tag oven.temp"]),
        ("rules/hot.json", RULE, ["rule hot"]),
        ("rules/deep/er/hot.json", [RULE], ["rule hot"]),
        ("flows/count.json", FLOW, ["flow count"]),
    ],
)
def test_objects_of_a_file_depend_on_its_place(file: str, content: object, objects: list[str]) -> None:
    assert names(read(file, content)) == objects


def test_recipe_without_a_work_master_gets_the_id_of_its_file_name() -> None:
    ((subject, described),) = read("scopes/s/workmasters/rear axle.json", LINEAR).objects.items()
    assert (subject.id, described.content["dataschema"]) == ("rear axle", RECIPE_DATASCHEMA)


def test_flow_is_started_unless_it_is_in_the_folder_stopped() -> None:
    ((_, started),) = read("flows/a.json", FLOW).objects.items()
    ((_, stopped),) = read("flows/stopped/a.json", FLOW).objects.items()
    assert (started.folder, stopped.folder) == ("", "stopped")


@pytest.mark.parametrize(
    ("file", "content", "faults"),
    [
        ("rules/a.json", "{bad", ["not JSON: "]),
        ("rules/a.json", "[" * 100_000, ["not JSON: "]),
        ("rules/a.json", None, ["rules[0]: must be an object"]),
        ("rules/a.json", {"id": "x", "kind": "nope"}, ["rule 'x': unknown kind 'nope'"]),
        ("rules/a.json", [RULE, RULE], ["rule 'hot': 2 rules have this id"]),
        ("rules/a.json", {**RULE, "message": {"en": "x" * 20_000}}, ["rule 'hot'"]),
        ("tags/a.json", [TAG, TAG], ["tag 'oven.temp': 2 definitions have this name"]),
        ("tags/a.json", {**TAG, "unit": "degrees"}, ["tag 'oven.temp': Expected"]),
        ("scopes/s/station.json", [], ["expected an object"]),
        (
            "scopes/s/station.json",
            {"max_downloadable_job_orders": -1, "equipment": ["a", ""], "colour": 1, "personnel": None},
            ["member 'max_downloadable_job_orders'", "member 'equipment'", "unknown member 'colour'", "'personnel'"],
        ),
        ("scopes/s/station.json", {"equipment": ["a", "a"]}, ["equipment s/a: the file has it twice"]),
        ("scopes/a b/station.json", {}, ["the scope 'a b': expected a name"]),
        ("scopes/s/workmasters/a.json", 5, ["a Work Master must be an object"]),
        ("scopes/s/workmasters/a.json", {"ID": 5}, ["Work Master 5: "]),
        ("scopes/s/workmasters/a.json", {**MASTER, "data": {"steps": []}}, ["axle: "]),
        ("scopes/s/workmasters/a.json", [MASTER, MASTER], ["workmaster s/axle: the file has it twice"]),
        ("tag/a.json", {}, ["no station file has this place; expected scopes/SCOPE/station.json"]),
        ("scopes/s/other.json", {}, ["no station file has this place"]),
        ("a.json", {}, ["no station file has this place"]),
    ],
)
def test_every_fault_of_a_file_is_reported(file: str, content: object, faults: list[str]) -> None:
    found = read(file, content).faults
    assert len(found) >= len(faults)
    for expected in faults:
        assert any(expected in text for text in found), found


def faults_of(folder: Path) -> tuple[str, ...]:
    return read_folder(folder, new_documents()).faults


async def test_folder_is_read_without_hidden_and_other_files(tmp_path: Path) -> None:
    write(make_site(tmp_path), ".git/a.json", "{bad")
    write(tmp_path, "rules/.b.json", "{bad")
    write(tmp_path, "rules/hot.json.bak", "{bad")
    assert len((await read_site(tmp_path)).checked()) == NUMBER_OF_OBJECTS
    assert has_files(tmp_path)


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_absent_or_empty_folder_has_no_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    assert not has_files(tmp_path / name)
    assert faults_of(tmp_path / name) == ()


def test_all_faults_of_all_files_are_reported_with_their_paths(tmp_path: Path) -> None:
    write(tmp_path, "rules/a.json", "{bad")
    write(tmp_path, "rules/b.json", RULE)
    write(tmp_path, "rules/c.json", RULE)
    (tmp_path / "rules" / "link.json").symlink_to(tmp_path / "nothing")
    (tmp_path / "flows").symlink_to(tmp_path / "rules")
    os.mkfifo(tmp_path / "rules" / "pipe.json")
    station_files = read_folder(tmp_path, new_documents())
    assert [fault.split(": ")[0] for fault in station_files.faults] == [
        "flows",
        "rules/a.json",
        "rules/c.json",
        "rules/link.json",
        "rules/pipe.json",
    ]
    assert "rules/c.json: rule hot: rules/b.json has it, too" in station_files.faults
    assert "rules/pipe.json: cannot be read: it is not a regular file" in station_files.faults
    with pytest.raises(SettingsError) as caught:
        station_files.checked()
    assert caught.value.problems[1].startswith(f"{tmp_path}: rules/a.json: not JSON")


def test_rules_beyond_the_limit_of_the_store_are_a_fault(tmp_path: Path) -> None:
    write(tmp_path, "rules/many.json", [{**RULE, "id": str(number)} for number in range(1001)])
    assert faults_of(tmp_path) == ("rules: there are 1001 rules; a store takes at most 1000",)


def test_folder_signature_changes_with_the_files(tmp_path: Path) -> None:
    seen = {signature(make_site(tmp_path))}
    assert signature(tmp_path) in seen
    seen.add(signature(write(tmp_path, "scopes/s/workmasters/b.json", MASTER).parents[3]))
    (tmp_path / "rules" / "hot.json").unlink()
    seen.add(signature(tmp_path))
    assert len(seen) == 3
