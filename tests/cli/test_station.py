"""`edge station` shows and sets the permitted resources with the validation that applies to a MES."""

import json
from pathlib import Path
from typing import Any

import pytest

from edge.app.features import settings_kinds
from edge.cli.station import KINDS, StationView, WorkMasterView, load_view
from edge.model.acceptance import ResourceKind
from edge.model.job_state import Cause
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station import settings
from edge.store import resources
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.station.plant import LINEAR, SCOPE, Plant, order
from tests.store.work_masters import work_master

MASTER = {"ID": "axle", "dataschema": RECIPE_DATASCHEMA, "data": LINEAR}


def test_every_kind_of_setting_can_be_set() -> None:
    assert sorted(KINDS) == sorted((*settings.KINDS, *settings_kinds()))


async def shown(edge: Edge) -> dict[str, Any]:
    answer = await edge("station", "show", "--json")
    assert answer.exit_code == 0
    (view,) = json.loads(answer.output)
    return dict(view)


async def test_new_station_shows_no_work_masters_and_no_equipment(edge: Edge) -> None:
    answer = await edge("station", "show")
    assert answer.exit_code == 0
    lines = [" ".join(line.split()) for line in answer.output.splitlines()]
    assert lines[:4] == [
        "station-1",
        "jobs 0 open, at most 1000 (by the settings)",
        "Work Masters none: edge station set workmaster FILE",
        "equipment none",
    ]


@pytest.mark.parametrize("kind", ResourceKind)
async def test_resources_are_set_and_deleted_by_id(edge: Edge, kind: ResourceKind) -> None:
    answer = await edge("station", "set", kind.value, "wrench", "camera")
    assert (answer.exit_code, answer.output) == (0, f"station-1: {kind.value} set\n")
    assert (await shown(edge))["resources"][kind.value] == ["camera", "wrench"]
    await edge("station", "set", kind.value, "wrench", "--delete")
    assert (await shown(edge))["resources"][kind.value] == ["camera"]


async def test_recipe_with_an_id_becomes_a_work_master(edge: Edge, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "axle.json"
    file.write_text(json.dumps(LINEAR))
    assert (await edge("station", "set", "workmaster", file, "--id", "axle")).exit_code == 0
    assert (await shown(edge))["work_masters"] == [{"id": "axle", "description": "", "steps": 2, "actions": 2}]
    master = await work_master(store, "axle")
    assert master
    assert master.dataschema == RECIPE_DATASCHEMA
    await edge("station", "set", "workmaster", "axle", "--delete")
    assert (await shown(edge))["work_masters"] == []


@pytest.mark.parametrize("payload", [MASTER, [MASTER, MASTER | {"ID": "other"}]])
async def test_one_work_master_or_a_list_is_accepted(edge: Edge, payload: object) -> None:
    answer = await edge("station", "set", "workmaster", "-", given=json.dumps(payload))
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "axle" in [master["id"] for master in (await shown(edge))["work_masters"]]


async def test_faulty_recipe_is_refused_with_one_line_per_fault(edge: Edge, store: Store) -> None:
    steps = [{"name": "one", "initial": True}, {"name": "two", "initial": True}]
    faulty = {"steps": steps, "transitions": [{"source": "one", "target": "three", "condition": "and"}]}
    answer = await edge("station", "set", "workmaster", "-", given=json.dumps(MASTER | {"data": faulty}))
    assert answer.exit_code == 1
    *faults, advice = answer.stderr.splitlines()
    assert all(fault.startswith("edge: axle: ") for fault in faults)
    assert len(faults) >= 3
    assert "edge check recipe" in advice
    assert await work_master(store, "axle") is None


async def test_suspicious_work_master_is_stored_with_a_warning(edge: Edge) -> None:
    answer = await edge("station", "set", "workmaster", "-", given=json.dumps({"ID": "paper"}))
    assert answer.exit_code == 0
    assert "warning: paper: no job can run it: its dataschema is not" in answer.stderr


async def test_limit_of_jobs_is_set_and_reset_to_the_settings(edge: Edge) -> None:
    assert (await edge("station", "set", "jobacceptance", "3")).exit_code == 0
    view = await shown(edge)
    assert (view["max_job_orders"], view["limit_set"]) == (3, True)
    assert (await edge("station", "set", "jobacceptance", "--delete")).exit_code == 0
    view = await shown(edge)
    assert (view["max_job_orders"], view["limit_set"]) == (1000, False)
    given = json.dumps({"max_downloadable_job_orders": 5})
    assert (await edge("station", "set", "jobacceptance", "-", given=given)).exit_code == 0
    assert (await shown(edge))["max_job_orders"] == 5


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("equipment",), "name at least one equipment"),
        (("workmaster", "axle"), "a Work Master is set from a file"),
        (("jobacceptance",), "one number"),
        (("jobacceptance", "many"), "needs a number, not 'many'"),
        (("workmaster", "axle", "--id", "axle"), "--id needs exactly one file"),
        (("workmaster", "none.json"), "none.json: cannot be read"),
        (("equipment", "wrench", "--scope", "elsewhere"), "the settings name no scope 'elsewhere'"),
    ],
)
async def test_invalid_arguments_of_station_end_with_status_2(
    edge: Edge, arguments: tuple[str, ...], reported: str
) -> None:
    answer = await edge("station", "set", *arguments)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert reported in answer.stderr


async def test_recipe_without_a_work_master_id_is_refused(edge: Edge) -> None:
    answer = await edge("station", "set", "workmaster", "-", given='{"steps": [{"name": "Only", "initial": true}]}')
    assert answer.exit_code == 2
    assert answer.stderr == "edge: the file is a recipe alone: name its Work Master with --id\n"


async def test_payload_with_the_wrong_structure_is_refused_like_that_of_a_mes(edge: Edge, store: Store) -> None:
    answer = await edge("station", "set", "equipment", "-", given='{"Id": "wrench"}')
    assert answer.exit_code == 1
    assert "the payload is not of the type Equipment" in answer.stderr
    allowed = await resources.load_allowed(store, SCOPE)
    assert not any(allowed.resources.values())


async def test_view_of_a_scope_equals_its_store_content(plant: Plant) -> None:
    keys = plant.store.keys
    await plant.teach("paper", {}, dataschema="urn:paper")
    await plant.teach("broken", {"steps": []})
    await plant.store.commit(resources.allow(keys, ResourceKind.EQUIPMENT, SCOPE, ["wrench", "camera"]))
    await plant.store.commit(resources.set_max_job_orders(keys, SCOPE, 4))
    await plant.order(Cause.STORE, order("J1"))
    assert await load_view(plant.store, SCOPE, 1000) == StationView(
        scope=SCOPE,
        open_job_orders=1,
        max_job_orders=4,
        limit_set=True,
        work_masters=(
            WorkMasterView("broken", "", None, None),
            WorkMasterView("linear", "", len(LINEAR["steps"]), 2),  # type: ignore[arg-type]
            WorkMasterView("paper", "", None, None),
        ),
        resources={kind.value: ["camera", "wrench"] if kind is ResourceKind.EQUIPMENT else [] for kind in ResourceKind},
    )
