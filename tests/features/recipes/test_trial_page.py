"""Drafts and revisions are tried over HTTP: questions, active steps, tests and replays; by engineers."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.recipes.desk import Desk
from edge.features.recipes.release import release_recipe
from edge.station.settings import SettingSource
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of, serving
from tests.features.recipes.desks import ANNA, SCOPE, SOUND, desk_on
from tests.station.plant import Plant

REVISION = f"/api/v1/recipes/{SCOPE}/WM/revisions/1"
NAMES = quote('["A"]')


@pytest_asyncio.fixture
async def desk(plant: Plant) -> Desk:
    desk = desk_on(plant.store)
    await release_recipe(desk, SCOPE, "WM", SOUND, "first", ANNA, SettingSource.PAGE)
    return desk


@pytest_asyncio.fixture
async def engineer(plant: Plant, users: Users, desk: Desk) -> AsyncIterator[Browser]:
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        yield await browser.logged_in("max")


@pytest.fixture
def reply() -> dict[str, object]:
    """The answer to the command of the recipe."""
    return {"kind": "command", "type_id": "a.v1", "nth": 1, "result": "ok", "after": 2, "data": {"torque": 85}}


async def test_draft_and_revision_are_tried_alike(engineer: Browser, desk: Desk, reply: dict[str, object]) -> None:
    draft = await desk.create(SCOPE, "WM", ANNA)
    for at in (f"/api/v1/recipe-drafts/{draft.id}", REVISION):
        (question,) = (await engineer.post(f"{at}/try", {"replies": []})).json["questions"]
        assert (question["action"], question["timeout_seconds"]) == ("a", 10)
        over = (await engineer.post(f"{at}/try", {"replies": [reply]})).json
        assert (over["end"], over["seconds"], over["questions"]) == ("completed", 2, [])
        assert over["script"] == {
            "equipment": [{"type_id": "a.v1", "nth": 1, "result": "ok", "after": 2, "data": {"torque": 85}}]
        }
        active = await engineer.get(f"{at}/active.svg?steps={NAMES}")
        assert 'class="initial active"' in active.text
        assert (await engineer.get(f"{at}/tests")).json["results"] == []
        assert (await engineer.get(f"{at}/replay")).json["total"] == 0


async def test_trial_is_saved_as_a_test_that_passes(engineer: Browser, reply: dict[str, object]) -> None:
    over = (await engineer.post(f"{REVISION}/try", {"replies": [reply]})).json
    test = {"id": "by hand", "work_master": "WM", "script": over["script"], "end": over["end"], "steps": over["steps"]}
    assert (await engineer.post("/api/v1/recipe-tests", test)).status == 200
    (result,) = (await engineer.get(f"{REVISION}/tests")).json["results"]
    assert (result["id"], result["reasons"]) == ("by hand", [])
    page = (await engineer.get(f"/recipe-try?scope={SCOPE}&id=WM")).text
    assert 'data-test="by hand"' in page
    assert f'data-address="{REVISION}"' in page


async def test_wrong_decisions_and_names_are_refused(engineer: Browser, reply: dict[str, object]) -> None:
    for wrong in ({"result": "explode"}, {"after": -1}, {"nth": 0}, {"more": 1}):
        refused = await engineer.post(f"{REVISION}/try", {"replies": [{**reply, **wrong}]})
        assert refused.json["kind"] == "invalid_payload", wrong
    assert (await engineer.post(f"{REVISION}/try", {"replies": [reply] * 501})).json["kind"] == "invalid_payload"
    assert (await engineer.get(f"{REVISION}/active.svg?steps=A")).json["kind"] == "invalid_query"
    assert (await engineer.get("/recipe-try?draft=x")).status == 404


async def test_only_engineers_try(engineer: Browser, reply: dict[str, object]) -> None:
    for name in ("eve", "alice"):
        reader = await engineer.logged_in(name)
        assert (await reader.get(f"/recipe-try?scope={SCOPE}&id=WM")).status == 403
        assert (await reader.post(f"{REVISION}/try", {"replies": [reply]})).status == 403
        assert (await reader.get(f"{REVISION}/replay")).status == 403
