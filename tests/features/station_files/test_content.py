"""The path of a file determines its objects; all its faults are reported, and none is ignored."""

import json
from pathlib import PurePosixPath

import pytest

from edge.features.station_files.content import FileContent, read_content
from edge.model.recipe import RECIPE_DATASCHEMA
from tests.features.station_files.site import FLOW, LISTS, MASTER, RULE, TAG
from tests.station.plant import LINEAR


def read(name: str, content: object) -> FileContent:
    text = content if isinstance(content, str) else json.dumps(content)
    return read_content(PurePosixPath(name), text.encode(), lambda _: ())


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
    assert (started.runs, stopped.runs) == (True, False)


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
