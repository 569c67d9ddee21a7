"""Tests of recipes: a script of `edge simulate`, and how the job ends with it.

They are station settings of their own: a gateway keeps them, station files hold them, a MES may send them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from edge.app.features import simulation
from edge.features.recipes import keys as recipes_keys
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text, join_texts
from edge.station.settings import ListedSetting
from edge.store.client import Store
from edge.store.resources import SettingTexts

_Id = Annotated[str, Meta(min_length=1, max_length=255)]


class RecipeTest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A test of the recipe of a Work Master; without a `script` all equipment answers ok.

    `end` is the worst end of its jobs, `verdict` that of each job; empty it is not compared. The job goes through
    `steps` in this order, other steps may come between them.

    Example: {"id": "axle: loose bolt", "work_master": "WM-AXLE-FIT-001", "end": "completed", "verdict": "not_ok",
     "script": {"equipment": [{"type_id": "com.example.tighten.v1", "result": "failed"}]}, "steps": ["Rework"]}
    """

    id: _Id
    work_master: _Id
    description: Annotated[str, Meta(max_length=1000)] = ""
    script: dict[str, Any] = {}
    end: Literal["completed", "failed", "aborted", "stopped", "running"] = "completed"
    verdict: Annotated[str, Meta(max_length=100)] = ""
    steps: tuple[str, ...] = ()


class RecipeTestResult(Struct, frozen=True, kw_only=True):
    """The result of a test: `reasons` why it is not passed, none when it is."""

    id: str
    work_master: str
    reasons: tuple[str, ...]
    end: str = ""
    verdict: str = ""
    seconds: float | None = None

    @property
    def is_passed(self) -> bool:
        """Whether the job went as the test expects."""
        return not self.reasons


def parse_tests(data: object) -> tuple[tuple[RecipeTest, ...], tuple[str, ...]]:
    """Return the tests of a list (decoded JSON), and all faults."""
    tests, faults = [], []
    for number, item in enumerate(data if isinstance(data, list) else [data]):
        try:
            test = msgspec.convert(item, RecipeTest)
        except msgspec.ValidationError as error:
            faults.append(f"recipe test {_named(item, number)}: {error}")
            continue
        if test.script and (fault := _script_fault(test.script)):
            faults.append(f"recipe test {test.id!r}: {fault}")
        tests.append(test)
    names = [test.id for test in tests]
    faults += [f"recipe test {name!r}: the name is used twice" for name in sorted({*names}) if names.count(name) > 1]
    return tuple(tests), tuple(faults)


def _named(item: object, number: int) -> str:
    return repr(item["id"]) if isinstance(item, dict) and isinstance(item.get("id"), str) else str(number)


def _script_fault(script: Mapping[str, Any]) -> str:
    if (simulate := simulation()) is None:
        return ""
    try:
        simulate(_ANY_RECIPE, script)
    except EdgeError as error:
        return error.message
    return ""


_ANY_RECIPE: Final = {"steps": [{"name": "Start", "initial": True}]}


MOST_CHANGES: Final = 20_000
"""The changes of steps after which a simulation is ended: a recipe may have loops without an end."""


def endless(trace: Mapping[str, Any]) -> Text | None:
    """Return why a simulation was ended before its time; None for one that was not."""
    if trace["final"] != "running" or len(trace["steps"]) < MOST_CHANGES:
        return None
    return Text.of(
        "the simulation was ended after {changes} changes of steps, at {seconds:g} s: a loop waits too short a time",
        changes=MOST_CHANGES,
        seconds=trace["steps"][-1]["t"],
    )


def run_test(test: RecipeTest, recipe: object, language: str) -> RecipeTestResult:
    """Return how a recipe (decoded JSON) goes with a test. Raises Refused without the feature that simulates."""
    if (simulate := simulation()) is None:
        raise Refused("no_simulator", "this program cannot simulate recipes", "Install it with the simulator.")
    try:
        trace = simulate(recipe, {**test.script, "most_changes": MOST_CHANGES})
    except EdgeError as error:
        return RecipeTestResult(id=test.id, work_master=test.work_master, reasons=(error.message,))
    verdicts: Mapping[str, str] = trace["verdict_by_job"]
    return RecipeTestResult(
        id=test.id,
        work_master=test.work_master,
        reasons=tuple(reason.in_language(language) for reason in _reasons(test, trace, verdicts)),
        end=trace["final"],
        verdict=", ".join(dict.fromkeys(verdicts.values())),
        seconds=trace["end"],
    )


def _reasons(test: RecipeTest, trace: Mapping[str, Any], verdicts: Mapping[str, str]) -> Iterable[Text]:
    if trace["final"] != test.end:
        yield Text.of(
            "the job ends as {end}, expected {expected}{error}",
            end=trace["final"],
            expected=test.end,
            error=f": {trace['error']}" if trace["error"] else "",
        )
        if (cut := endless(trace)) is not None:
            yield cut
        waiting = [f"{step['step']}: {text}" for step in trace["waiting"] for text in step["waits_for"]]
        if waiting:
            yield Text.of("it waits in {steps}", steps=join_texts("; ", waiting[:5]))
    for job, verdict in verdicts.items():
        if test.verdict and verdict != test.verdict:
            yield Text.of(
                "the verdict of {job} is {verdict!r}, expected {expected!r}",
                job=job,
                verdict=verdict,
                expected=test.verdict,
            )
    begun = iter([step["step"] for step in trace["steps"] if step["active"]])
    missing = [step for step in test.steps if step not in begun]
    if missing:
        yield Text.of("the job does not go through {steps} in this order", steps=", ".join(missing))


RECIPE_TESTS: Final = SettingTexts(recipes_keys.recipe_tests, "id:")
RECIPE_TEST_SETTING: Final = ListedSetting(
    noun="recipe test",
    title="test of a recipe",
    name_member="id",
    stored=RECIPE_TESTS,
    most=1000,
    parse=parse_tests,
    advice="The schema is schemas/recipe-tests.schema.json; `edge recipes test` runs it.",
)


async def load_tests(store: Store, work_master_id: str = "") -> Sequence[RecipeTest]:
    """Return the tests of a Work Master, without one of all; one that cannot be read any more is left out."""
    texts = (await RECIPE_TESTS.load(store)).texts.values()
    tests, _ = parse_tests([msgspec.json.decode(text) for text in texts])
    return [test for test in tests if work_master_id in {"", test.work_master}]


def recipe_tests_schema() -> dict[str, Any]:
    """Return the JSON Schema of a list of tests."""
    schema = msgspec.json.schema(tuple[RecipeTest, ...])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "recipe-tests", **schema}
