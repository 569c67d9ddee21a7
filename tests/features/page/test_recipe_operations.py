"""Recipes are listed, drawn, checked and simulated, and engineers order jobs from them."""

import pytest

from edge.features.page.recipe_check import check_recipe
from edge.features.page.services import WebServices
from edge.model.job_state import JobState
from tests.features.page.serving import ATTACK, Browser
from tests.station.plant import SUPERVISED, Plant

BROKEN = {**SUPERVISED, "transitions": [{"source": "one", "target": "none", "condition": "x >"}]}


async def test_work_masters_are_listed_and_drawn(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    found = (await eve.get("/api/v1/recipes")).json["recipes"]
    assert [(value["scope"], value["id"], value["has_recipe"]) for value in found] == [
        ("station-1", "linear", True),
        ("station-1", "supervised", True),
    ]
    assert (await eve.get("/api/v1/recipes/station-1/linear/chart.svg")).text.startswith("<svg")
    for path in ("station-1/none", "none/linear"):
        assert (await eve.get(f"/api/v1/recipes/{path}/chart.svg")).json["kind"] == "unknown_recipe"
    assert "linear" in (await eve.get("/recipes")).text


async def test_recipe_is_checked_with_all_faults(browser: Browser) -> None:
    alice, engineer = await browser.logged_in("alice"), await browser.logged_in("max")
    assert (await alice.post("/api/v1/recipes/check", {"recipe": SUPERVISED})).json["kind"] == "forbidden"
    found = (await engineer.post("/api/v1/recipes/check", {"recipe": SUPERVISED})).json
    assert (found["faults"], found["chart"][:4]) == ([], "<svg")
    broken = (await engineer.post("/api/v1/recipes/check", {"recipe": BROKEN})).json
    assert broken["faults"]
    # It is drawn although a transition leads to no step, with a mark at the step that the faults name.
    assert broken["chart"].count("✗ fault") == 1
    nonsense: object
    for nonsense in (None, [], "x", 1, {"steps": [{"name": ATTACK}]}):
        reply = await engineer.post("/api/v1/recipes/check", {"recipe": nonsense})
        assert reply.json["faults"], nonsense
        assert ATTACK not in reply.json["chart"]


async def test_request_that_changes_nothing_discards_no_shared_page(browser: Browser, services: WebServices) -> None:
    engineer, events = await browser.logged_in("max"), services.events
    reply = await engineer.post("/api/v1/recipe-drafts", {"scope": "station-1", "work_master": "linear"})
    draft = f"/api/v1/recipe-drafts/{reply.json['draft']['id']}"
    before = events.changes
    for path, body in (
        ("/api/v1/recipes/check", {"recipe": SUPERVISED}),
        ("/api/v1/recipes/simulate", {"recipe": SUPERVISED}),
        (f"{draft}/expression", {"condition": "true"}),
        (f"{draft}/condition", {"condition": "true"}),
        (f"{draft}/try", {}),
    ):
        assert ((await engineer.post(path, body)).status, events.changes) == (200, before), path
    assert (await engineer.post("/api/v1/jobs/J1/pause", {})).status == 200
    assert events.changes > before


@pytest.mark.parametrize(
    "faulty",
    [
        {"branches": [{"name": "A", "type": "selection", "branches": [["A"]]}]},
        {"branches": [{"name": "X", "type": "selection", "branches": [["X"]]}]},
        {"branches": [{"name": text, "type": "simultaneous", "branches": [[other]]} for text, other in ("XY", "YX")]},
        {"steps": [{"name": "A", "initial": True}, {"name": "A"}]},
        {"steps": [{"name": "A", "initial": True}, {"name": "B", "initial": True}]},
        {"steps": [{"name": "A"}]},
        {"transitions": [{"source": "A", "target": "Z", "condition": "x >"}]},
    ],
)
@pytest.mark.timeout(60)
def test_faulty_recipe_is_drawn_without_an_endless_loop(faulty: dict[str, object]) -> None:
    recipe_result = check_recipe({"steps": [{"name": "A", "initial": True}], **faulty}, ())
    assert recipe_result.faults
    assert recipe_result.chart.startswith("<svg")


async def test_recipe_with_many_faulty_steps_is_marked_in_part() -> None:
    """2,400 steps with 4,800 faults took eleven seconds of a core."""
    names = [f"s{number}" for number in range(150)]
    steps = [{"name": name, "initial": name == "s0"} for name in names]
    ends = [{"source": name, "target": "Z", "condition": "true"} for name in names]
    recipe_result = check_recipe({"steps": steps, "transitions": ends}, ())
    unmarked = check_recipe({"steps": steps, "transitions": ends}, names[-1:])
    assert len(recipe_result.faults) == 150
    assert recipe_result.chart != unmarked.chart, "step 149 is not marked as faulty"


async def test_recipe_without_steps_has_no_chart() -> None:
    recipe_result = check_recipe({"steps": []}, ())
    assert (len(recipe_result.faults), recipe_result.chart) == (1, "")


async def test_recipe_is_simulated_step_by_step(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    found = (await engineer.post("/api/v1/recipes/simulate", {"recipe": SUPERVISED})).json
    assert found["events"][0]["active"]
    assert not found["truncated"]
    assert (await engineer.post("/api/v1/recipes/simulate", {"recipe": BROKEN})).json["kind"] == "invalid_recipe"


async def test_engineer_orders_a_job_from_a_work_master(browser: Browser, plant: Plant) -> None:
    alice, engineer = await browser.logged_in("alice"), await browser.logged_in("max")
    order = {"scope": "station-1", "id": "N1", "work_master": "linear", "parameters": {"torque": 7.5}, "priority": 3}
    assert (await alice.post("/api/v1/jobs", order)).json["kind"] == "forbidden"
    assert (await engineer.post("/api/v1/jobs", order | {"start": False})).json["job"]["state"] == "NotAllowedToStart"
    job_order = (await plant.job("N1")).order
    assert job_order.priority == 3
    assert [(parameter.id, parameter.value) for parameter in job_order.job_order_parameters or ()] == [("torque", 7.5)]
    assert (await engineer.post("/api/v1/jobs", order)).status in {409, 422}
    endless = order | {"id": "N5", "start_time": "9999-12-31T23:59:59.9999999Z"}
    assert (await engineer.post("/api/v1/jobs", endless)).status == 200
    assert (
        await engineer.post("/api/v1/jobs", order | {"id": "N4", "start_time": "2026-02-30T00:00:00Z"})
    ).status == 422
    assert (await engineer.post("/api/v1/jobs", order | {"id": "N2", "work_master": "none"})).status == 422
    assert (await engineer.post("/api/v1/jobs", order | {"id": "N2", "scope": "x"})).json["kind"] == "unknown_scope"
    assert (await engineer.post("/api/v1/jobs", order | {"id": "N3"})).status == 200
    await plant.until_state("N3", JobState.RUNNING)


async def test_order_form_is_shown_to_engineers_only(browser: Browser) -> None:
    path = "/recipe?scope=station-1&id=linear"
    assert "data-order" in (await (await browser.logged_in("max")).get(path)).text
    assert "data-order" not in (await (await browser.logged_in("alice")).get(path)).text
    assert (await (await browser.logged_in("alice")).get("/recipe-check")).status == 403
