"""Tests of recipes: a script, the end, the verdict and the steps that a job goes through."""

from typing import Any

import pytest

from edge.features.recipes.recipe_tests import (
    RecipeTest,
    load_tests,
    parse_tests,
    recipe_tests_schema,
    run_test,
)
from edge.foundation.errors import Refused
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.client import Store
from tests.sfc.recipes import action, recipe, transition

RETRY = recipe(
    "A B C",
    [transition("A", "C", "actions.a.done"), transition("A", "B", "actions.a.failed"), transition("B", "C", "always")],
    [action("a", "A")],
)
FAILS: dict[str, Any] = {"equipment": [{"type_id": "a.v1", "result": "failed"}]}


def expecting(**members: Any) -> RecipeTest:
    return RecipeTest(id="t", work_master="WM", **members)


@pytest.mark.parametrize(
    ("test", "reasons"),
    [
        (expecting(verdict="ok", steps=("A", "C")), ()),
        (expecting(script=FAILS, verdict="not_ok", steps=("B",)), ()),
        (expecting(end="failed"), ("the job ends as completed, expected failed",)),
        (expecting(script=FAILS, verdict="ok"), ("the verdict of J1 is 'not_ok', expected 'ok'",)),
        (expecting(steps=("C", "A")), ("the job does not go through A in this order",)),
    ],
)
def test_result_is_compared_with_what_is_expected(test: RecipeTest, reasons: tuple[str, ...]) -> None:
    assert run_test(test, RETRY, "en").reasons == reasons


def test_job_that_does_not_end_is_reported_with_what_it_waits_for() -> None:
    endless = {**RETRY, "actions": [action("a", "A", timeout_seconds=0)]}
    first, second = run_test(expecting(script={"default": {"result": "none"}}), endless, "en").reasons
    assert first == "the job ends as running, expected completed"
    assert second.startswith("it waits in A: ")


LOOP = recipe("A B", [transition("A", "B", "steps.A.T > 0.01"), transition("B", "A", "always")], [])


def test_simulation_of_a_loop_without_end_is_stopped_with_a_reason() -> None:
    """It took more than a minute, and the process that runs tests was killed."""
    reasons = run_test(expecting(), LOOP, "en").reasons
    assert reasons[1].startswith("the simulation was ended after 20000 changes of steps, at 55")


def test_faulty_recipe_fails_its_tests_with_the_fault() -> None:
    (reason,) = run_test(expecting(), {"steps": []}, "en").reasons
    assert reason.startswith("the job ends as rejected_at_load, expected completed: ")


def test_faults_of_tests_are_named() -> None:
    _, faults = parse_tests(
        [
            {"id": "a", "work_master": "WM", "script": {"timeline": [{"at": 1}]}},
            {"id": "b", "workmaster": "WM"},
            {"id": "c", "work_master": "WM", "end": "good"},
            {"id": "c", "work_master": "WM"},
            {"id": "c", "work_master": "WM"},
            7,
        ]
    )
    assert [fault.partition(": ")[0] for fault in faults] == [
        "recipe test 'a'",
        "recipe test 'b'",
        "recipe test 'c'",
        "recipe test 5",
        "recipe test 'c'",
    ]


async def test_tests_are_station_settings(store: Store) -> None:
    settings = StationSettings(store, {"recipetest": "edge.features.recipes.recipe_tests:RECIPE_TEST_SETTING"})
    sent = [{"id": "t", "work_master": "WM"}, {"id": "u", "work_master": "OTHER", "end": "failed"}]
    await settings.apply("", "recipetest", SettingsMethod.PUT, sent)
    assert await load_tests(store, "WM") == [expecting()]
    assert len(await load_tests(store)) == 2
    with pytest.raises(Refused, match="unknown field"):
        await settings.apply("", "recipetest", SettingsMethod.PUT, [{"id": "t", "work_master": "WM", "x": 1}])
    await settings.apply("", "recipetest", SettingsMethod.DELETE, [{"id": "t"}])
    assert await load_tests(store, "WM") == []


def test_schema_names_the_members_of_a_test() -> None:
    assert "work_master" in recipe_tests_schema()["$defs"]["RecipeTest"]["properties"]
