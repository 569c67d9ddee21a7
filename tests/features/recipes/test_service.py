"""What a gateway does with recipes that have faults: the answer to the MES, and the number for the alarm."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from msgspec import Struct

from edge.app.recipe_process import RecipeProcess
from edge.features.recipes import keys as recipes_keys
from edge.features.recipes.changes import RenameElement
from edge.features.recipes.examination import ExaminedRecipe
from edge.features.recipes.examiner import examine
from edge.features.recipes.revisions import recipe_hash
from edge.features.recipes.service import RecipeWatch, ask_apart, examine_work_masters
from edge.features.recipes.trial import Trial, TrialDecisions
from edge.features.recipes.workbench import ask_here
from edge.features.recipes.workbench_requests import (
    CheckText,
    DraftCheck,
    DraftView,
    DrawComparison,
    DrawnChart,
    EditText,
    RecipeTestReport,
    Request,
    RunTests,
    TryText,
)
from edge.foundation.errors import Refused, Unavailable
from edge.model.isa95 import WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.settings import EventOrigin, SettingsMethod, StationSettings
from edge.store import resources
from edge.store.client import Store
from edge.store.commit import join, spread
from tests.features.recipes.desks import TEXT
from tests.features.recipes.recipes import Json
from tests.features.recipes.test_examiner import SOUND, STUCK
from tests.station.plant import SCOPE


def master(name: str, data: Json) -> WorkMaster:
    return WorkMaster(id=name, dataschema=RECIPE_DATASCHEMA, data=data)


def payload(name: str, data: Json) -> Json:
    return {"ID": name, "dataschema": RECIPE_DATASCHEMA, "data": data}


async def examined(recipes: Sequence[Any]) -> list[ExaminedRecipe]:
    return [examine(item) for item in recipes]


async def unavailable(_recipes: Sequence[Any]) -> list[ExaminedRecipe]:
    raise Unavailable("gone", "wait")


@pytest.fixture
def settings(store: Store) -> StationSettings:
    settings = StationSettings(store)
    settings.examiners.append(partial(examine_work_masters, refuses=False, examine=examined))
    return settings


async def test_work_master_of_the_mes_is_taken_with_its_findings(store: Store, settings: StationSettings) -> None:
    origin = EventOrigin("/mes", "1")
    warnings = await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", STUCK), origin)
    assert warnings[0].startswith("fit: fault: step A: ")
    assert [item.id for item in await resources.load_work_masters(store, SCOPE)] == ["fit"]
    again = await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", STUCK), origin)
    assert again == warnings


async def test_work_master_without_faults_has_no_findings(settings: StationSettings) -> None:
    assert await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", SOUND)) == ()


async def test_faulty_work_master_is_refused_where_the_settings_refuse_it(store: Store) -> None:
    settings = StationSettings(store)
    settings.examiners.append(partial(examine_work_masters, refuses=True, examine=examined))
    with pytest.raises(Refused) as caught:
        await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", STUCK))
    assert "fit: fault: step A: " in str(caught.value)
    assert await resources.load_work_masters(store, SCOPE) == []


async def test_work_master_is_taken_while_nothing_can_examine_it() -> None:
    assert await examine_work_masters([master("fit", STUCK)], refuses=True, examine=unavailable) == ()


async def test_other_content_of_a_work_master_is_not_examined() -> None:
    other = WorkMaster(id="doc", dataschema="https://example.com/drawing", data={"steps": 3})
    assert await examine_work_masters([other], refuses=True, examine=unavailable) == ()


async def test_stored_recipes_with_faults_are_counted_until_they_are_corrected(store: Store) -> None:
    counts: list[int] = []
    asked: list[int] = []

    async def counted(recipes: Sequence[Any]) -> list[ExaminedRecipe]:
        asked.append(len(recipes))
        return await examined(recipes)

    watch, settings = RecipeWatch(store, [SCOPE], counts.append, counted), StationSettings(store)
    settings.listeners.append(watch.look)
    await watch.look("")
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, [payload("fit", STUCK), payload("weld", SOUND)])
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", SOUND | {"interventions": ["retry"]}))
    assert counts == [0, 1, 0]
    assert asked == [2, 1]
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", STUCK))
    await settings.apply(SCOPE, "workmaster", SettingsMethod.DELETE, [{"ID": "fit"}])
    assert counts[-2:] == [1, 0]


async def test_findings_of_a_stored_recipe_are_found_by_its_hash(store: Store, settings: StationSettings) -> None:
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, payload("fit", STUCK))
    watch = RecipeWatch(store, (SCOPE,), lambda _: None, examined)
    await watch.look("")
    (message,) = watch.findings(recipe_hash(master("fit", STUCK)))
    assert str(message).startswith("step A: no exit can become true")
    assert "Schritt A" in message.in_language("de")
    assert watch.findings("0" * 12) == ()


async def test_gateway_asks_the_workbench_in_another_process() -> None:
    process = RecipeProcess("edge.features.recipes.workbench", within_s=60)
    ask = ask_apart(process, process)
    try:
        assert await ask(CheckText(TEXT), DraftCheck) == await ask_here(CheckText(TEXT), DraftCheck)
        with pytest.raises(Refused, match="'B' is used already"):
            await ask(EditText(TEXT, RenameElement("A", "B")), DraftView)
    finally:
        await process.close()


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (TryText(TEXT, TrialDecisions()), Trial),
        (RunTests(TEXT, ()), RecipeTestReport),
        (DrawComparison(TEXT, TEXT), DrawnChart),
    ],
    ids=lambda item: type(item).__name__,
)
async def test_edits_do_not_wait_for_what_may_take_long(request_: Request, answer: type[Struct]) -> None:
    edits, long = RecipeProcess("tests.no.such"), RecipeProcess("edge.features.recipes.workbench", within_s=60)
    try:
        assert await ask_apart(edits, long)(request_, answer) == await ask_here(request_, answer)
        assert edits.pid is None
    finally:
        await long.close()


@pytest.mark.slow
async def test_start_reads_none_of_100_000_revisions(store: Store) -> None:
    names = [f"WM-{number}" for number in range(100)]
    await store.commit(join(resources.save_work_master(store.keys, SCOPE, master(name, SOUND)) for name in names))

    async def sent_by_a_start() -> int:
        before = await sent(store)
        await RecipeWatch(store, (SCOPE,), lambda _: None, examined).look("")
        return await sent(store) - before

    without = await sent_by_a_start()
    revision = "x" * 200
    for name in names:
        fields = [part for number in range(1000) for part in (number, revision)]
        await store.commit(spread("HSET", (recipes_keys.recipe_revisions(store.keys, SCOPE, name),), fields))
    assert await sent_by_a_start() <= without + 2000


async def sent(store: Store) -> int:
    """Return the bytes that the store has sent so far."""
    return int((await store.execute("INFO", "stats"))["total_net_output_bytes"])
