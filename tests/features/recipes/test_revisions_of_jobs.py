"""Jobs bear the revision and the hash that they run, and every place that shows them agrees with the history."""

from functools import partial
from typing import Any

import msgspec
import pytest_asyncio

from edge.config import Settings
from edge.features.recipes.revisions import load_revisions, plan_revisions
from edge.model.isa95 import Parameter, WorkMaster
from edge.model.job_state import Cause
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.public_job import public_job
from edge.station.response import job_response
from edge.station.settings import SettingOrigin, SettingsMethod, SettingSource, StationSettings
from edge.store.client import Store
from edge.uaserver.charts import view
from tests.station.plant import LINEAR, PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order


@pytest_asyncio.fixture
async def plant(store: Store) -> Plant:
    """A station without recipes."""
    tool = FakeEquipment()
    return Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())


async def put(store: Store, recipe: dict[str, Any], name: str = "WM") -> None:
    """Store a Work Master as the MES does."""
    record = partial(plan_revisions, Settings(), SettingOrigin(SettingSource.MES))
    master = WorkMaster(id=name, data=recipe, dataschema=RECIPE_DATASCHEMA)
    payload = msgspec.json.decode(msgspec.json.encode([master]))
    await StationSettings(store, recorders=[record]).apply(SCOPE, "workmaster", SettingsMethod.PUT, payload)


async def start(plant: Plant, job_id: str, work_master: str = "WM") -> None:
    await plant.order(Cause.STORE_AND_START, order(job_id, work_master))
    await plant.drive()


def entry(data: tuple[Parameter, ...] | None) -> dict[str, object]:
    """Return the parts of the entry of a response that names the recipe."""
    (named,) = [item for item in data or () if item.id == "Recipe"]
    return {part.id: part.value for part in named.subparameters or ()}


async def test_job_shows_the_revision_that_it_runs_everywhere(plant: Plant) -> None:
    await put(plant.store, LINEAR)
    await put(plant.store, {**LINEAR, "title": "second"})
    await start(plant, "J1")
    await put(plant.store, {**LINEAR, "title": "third"})
    _, second, _ = await load_revisions(plant.store, SCOPE, "WM")
    loaded = await plant.runs.load("J1")
    assert loaded is not None
    job = await plant.job("J1")
    assert (job.recipe.revision, job.recipe.hash) == (2, second.hash)
    response = job_response(job, (loaded.net, loaded.stored.run))
    assert entry(response.job_response_data) == {"Revision": 2, "Hash": second.hash}
    assert (public_job(job).recipe_revision, public_job(job).recipe_hash) == (2, second.hash)
    assert view(loaded, 0).recipe_name == job.recipe


async def test_identical_work_master_keeps_the_name_of_its_revision(plant: Plant) -> None:
    await put(plant.store, LINEAR)
    await put(plant.store, LINEAR)
    await start(plant, "J1")
    assert (await plant.job("J1")).recipe.revision == 1


async def test_work_master_without_revisions_names_nothing(plant: Plant) -> None:
    await put(plant.store, LINEAR)
    # Another program, or a release without the feature, stores another recipe.
    await plant.teach("WM", {**LINEAR, "title": "other"})
    await start(plant, "J1")
    job = await plant.job("J1")
    assert not job.recipe.revision
    assert public_job(job).recipe_revision is None
    assert all(item.id != "Recipe" for item in job_response(job, None).job_response_data or ())
