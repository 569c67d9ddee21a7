"""Revisions and drafts of recipes over HTTP: by roles, with faults and conflicts, recorded in the audit trail."""

# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest_asyncio

from edge.access.login import Users
from edge.features.recipes.release import release_recipe
from edge.foundation.text import Text
from edge.model.job_state import Cause, JobState
from edge.station.settings import SettingSource
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser, services_of, serving
from tests.features.recipes.desks import ANNA, SCOPE, SOUND, STUCK, TEXT, desk_on
from tests.station.plant import TIGHTEN, Plant, order

RECIPE = f"/api/v1/recipes/{SCOPE}/WM"
DRAFTS = "/api/v1/recipe-drafts"
TIGHT = TEXT.replace("a.v1", TIGHTEN)


@pytest_asyncio.fixture
async def engineer(plant: Plant, users: Users) -> AsyncIterator[Browser]:
    """An engineer at a station whose recipe WM has one revision."""
    desk = desk_on(plant.store)
    await release_recipe(desk, SCOPE, "WM", SOUND, "first", ANNA, SettingSource.PAGE)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        yield await browser.logged_in("max")


async def begin(engineer: Browser, **members: object) -> Any:
    """Begin a draft; return its answer."""
    reply = await engineer.post(DRAFTS, {"scope": SCOPE, "work_master": "WM", **members})
    assert reply.status == 200, reply.text
    return reply.json


async def test_draft_is_changed_checked_compared_and_released(engineer: Browser) -> None:
    draft = (await begin(engineer))["draft"]
    at = f"{DRAFTS}/{draft['id']}"
    change = {"change": "insert_after", "element": "A", "name": "Verify"}
    changed = (await engineer.post(f"{at}/change", {"version": draft["current"], "change": change})).json
    assert ">Verify</text>" in changed["chart"]
    assert [item["change"] for item in changed["draft"]["versions"]] == ["create", "insert_after"]
    version = changed["draft"]["current"]
    assert (await engineer.get(f"{at}/check")).json["problems"] == []
    assert "step Verify added" in (await engineer.get(f"{at}/difference")).json["words"]
    assert ">Verify</text>" in (await engineer.get(f"{at}/chart.svg?version={version}")).text
    undone = (await engineer.post(f"{at}/undo", {"version": version})).json
    assert ">Verify</text>" not in undone["chart"]
    redone = (await engineer.post(f"{at}/redo", {"version": undone["draft"]["current"]})).json
    released = await engineer.post(f"{at}/release", {"version": redone["draft"]["current"], "reason": "verify it"})
    assert (released.status, released.json["revision"]["number"]) == (200, 2)
    assert (await engineer.get(at)).status == 404
    assert (await engineer.get(f"{RECIPE}/difference?old=1&new=2")).json["words"]
    back = (await engineer.post(f"{RECIPE}/rollback", {"revision": 1, "reason": "faults"})).json
    assert (back["revision"]["number"], back["revision"]["author"]) == (3, "max")
    listed = (await engineer.get("/api/v1/recipe-revisions")).json["recipes"]
    assert next(item for item in listed if item["work_master"] == "WM")["revision"]["reason"] == "back to 1: faults"


async def test_conflict_is_answered_with_the_difference(engineer: Browser) -> None:
    at = f"{DRAFTS}/{(await begin(engineer))['draft']['id']}"
    change = {"change": "insert_after", "element": "A", "name": "Verify"}
    assert (await engineer.post(f"{at}/change", {"version": 1, "change": change})).status == 200
    refused = await engineer.post(f"{at}/text", {"version": 1, "text": TEXT})
    assert (refused.status, refused.json["kind"]) == (409, "draft_changed")
    assert "step Verify added" in refused.json["reason"]
    since = await engineer.get(f"{at}/difference?version=1")
    assert "step Verify added" in since.json["words"]


async def test_faulty_draft_is_kept_and_not_released(engineer: Browser) -> None:
    seen = await begin(engineer, text='{"steps":\n [}')
    assert (seen["recipe"], seen["problems"][0]["line"]) == (None, 2)
    at = f"{DRAFTS}/{seen['draft']['id']}"
    assert (await engineer.get(f"{at}/chart.svg")).status == 404
    stuck = (await engineer.post(f"{at}/text", {"version": 1, "text": STUCK})).json["draft"]["current"]
    refused = await engineer.post(f"{at}/release", {"version": stuck, "reason": "try"})
    assert (refused.status, refused.json["kind"]) == (422, "recipe")
    findings = (await engineer.get(f"{at}/check")).json["findings"]
    assert findings[0]["kind"] == "dead-end"
    gone = await engineer.post(f"{at}/discard", {"version": stuck})
    assert gone.status == 200
    assert (await engineer.get(DRAFTS)).json["drafts"] == []


async def test_recipe_of_200_kilobytes_is_kept(engineer: Browser) -> None:
    long = TEXT.replace('"B"', '"B", "description": "' + "\\n" * 400 + '"', 1)
    assert (await begin(engineer, text=long + " " * 200_000))["problems"] == []


async def test_operators_and_observers_read_revisions_and_no_drafts(engineer: Browser) -> None:
    draft = (await begin(engineer))["draft"]
    for name in ("eve", "alice"):
        reader = await engineer.logged_in(name)
        assert (await reader.get(f"{RECIPE}/revisions")).json["revisions"][0]["number"] == 1
        assert (await reader.get(f"{RECIPE}/revisions/1")).json["recipe"] == SOUND
        assert ">A</text>" in (await reader.get(f"{RECIPE}/revisions/released/chart.svg")).text
        assert (await reader.get(DRAFTS)).status == 403
        assert (await reader.post(f"{DRAFTS}/{draft['id']}/undo", {"version": 1})).status == 403
        assert (await reader.post(f"{RECIPE}/rollback", {"revision": 1, "reason": "x"})).status == 403


async def test_unknown_names_and_numbers_are_refused(engineer: Browser) -> None:
    assert (await engineer.get(f"{RECIPE}/revisions/9")).status == 404
    assert (await engineer.get(f"{RECIPE}/revisions/x")).json["kind"] == "invalid_query"
    assert (await engineer.get(f"{DRAFTS}/unknown")).json["kind"] == "unknown_draft"
    assert (await engineer.get("/api/v1/recipes/elsewhere/WM/revisions")).json["kind"] == "unknown_scope"
    at = f"{DRAFTS}/{(await begin(engineer))['draft']['id']}"
    wrong = await engineer.post(f"{at}/change", {"version": 1, "change": {"change": "explode"}})
    assert (wrong.status, wrong.json["kind"]) == (422, "invalid_payload")
    impossible = {"change": "remove_step", "name": "X"}
    assert (await engineer.post(f"{at}/change", {"version": 1, "change": impossible})).json["kind"] == "impossible_edit"


async def test_release_demands_that_the_tests_of_the_recipe_pass(engineer: Browser) -> None:
    test = {"id": "broken tool", "work_master": "WM", "script": {"default": {"result": "failed"}}, "end": "completed"}
    assert (await engineer.post("/api/v1/recipe-tests", {**test, "steps": 1})).json["kind"] == "invalid_payload"
    stored = await engineer.post("/api/v1/recipe-tests", test)
    assert [item["id"] for item in stored.json["tests"]] == ["broken tool"]
    at = f"{DRAFTS}/{(await begin(engineer))['draft']['id']}"
    (result,) = (await engineer.get(f"{at}/tests")).json["results"]
    assert "the job ends as failed, expected completed" in result["reasons"][0]
    refused = await engineer.post(f"{at}/release", {"version": 1, "reason": "try"})
    assert (refused.status, refused.json["kind"]) == (409, "tests_failed")
    assert (await engineer.get("/api/v1/recipe-tests?work_master=OTHER")).json["tests"] == []
    assert (await engineer.post("/api/v1/recipe-tests/delete", {"id": "broken tool"})).json["tests"] == []
    assert (await engineer.post(f"{at}/release", {"version": 1, "reason": "try"})).status == 200


async def test_draft_is_replayed_and_its_conditions_have_values(engineer: Browser) -> None:
    at = f"{DRAFTS}/{(await begin(engineer))['draft']['id']}"
    replay = (await engineer.get(f"{at}/replay")).json
    assert (replay["total"], replay["next"], replay["jobs"]) == (0, None, [])
    body = {"condition": "actions.a.done", "step": "A"}
    assert "values" in (await engineer.post(f"{at}/condition", body)).json
    names = (await engineer.get(f"{at}/names")).json["names"]
    assert {"name": "actions.a.done", "kind": "action", "seen": []} in names


async def test_pages_of_job_and_recipe_show_revision_and_findings(plant: Plant, users: Users) -> None:
    desk = desk_on(plant.store, findings=lambda _: [Text.of("no exit is true when it is <b>")])
    await release_recipe(desk, SCOPE, "WM", msgspec.json.decode(TIGHT), "first", ANNA, SettingSource.PAGE)
    await plant.order(Cause.STORE_AND_START, order("R1", "WM"))
    await plant.until_state("R1", JobState.RUNNING)
    async with serving(services_of(plant, users, ports={"recipes": desk})) as browser:
        reader = await browser.logged_in("eve")
        for address in ("/job?id=R1", f"/recipe?scope={SCOPE}&id=WM"):
            page = (await reader.get(address)).text
            assert "revision 1 (" in page
            assert "no exit is true when it is &lt;b&gt;" in page
        assert (await reader.get("/api/v1/jobs/R1")).json["job"]["recipe_revision"] == 1


async def test_changes_releases_and_refusals_are_in_the_audit_trail(plant: Plant, users: Users) -> None:
    services = services_of(plant, users, ports={"recipes": desk_on(plant.store)})
    async with serving(services) as browser:
        engineer = await browser.logged_in("max")
        at = f"{DRAFTS}/{(await begin(engineer, text=TEXT))['draft']['id']}"
        await engineer.post(f"{at}/release", {"version": 9, "reason": "try"})
        await engineer.post(f"{at}/release", {"version": 1, "reason": "first"})
    waiting = services.audit.trail._waiting  # noqa: SLF001 - what waits for the store
    records = [(item.record.user, item.record.action, item.record.comment, item.record.status) for item in waiting][1:]
    assert [(user, action, comment) for user, action, comment, _ in records] == [
        ("max", "recipes draft", "version 1"),
        ("max", "recipes release", "try"),
        ("max", "recipes release", "first"),
    ]
    assert ["has changed the draft" in status for *_, status in records] == [False, True, False]
