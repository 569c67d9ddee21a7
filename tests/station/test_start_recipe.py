"""The recipe of an order is found with its parameters, or the reason why it cannot run."""

from typing import Any

from edge.model.isa95 import JobOrder, Parameter, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.runs import compiled
from edge.station.start import FoundRecipe, NoRecipe, RecipeLookup
from edge.store import resources
from edge.store.client import Store
from edge.store.commit import Committed, Stale

SCOPE = "station-1"
RECIPE: dict[str, Any] = {"steps": [{"name": "only", "initial": True}]}


def parameters(**values: object) -> tuple[Parameter, ...]:
    return tuple(Parameter(id=name, value=value) for name, value in values.items())


async def keep(store: Store, scope: str, **further: Any) -> None:
    fields: dict[str, Any] = {"data": RECIPE, "dataschema": RECIPE_DATASCHEMA} | further
    await store.commit(resources.save_work_master(store.keys, scope, WorkMaster(id="axle", **fields)))


async def test_order_parameters_override_those_of_the_work_master(store: Store) -> None:
    await keep(store, SCOPE, parameters=parameters(a="master", b="master", c="master"))
    order = JobOrder(
        job_order_id="J1",
        work_master_id=(WorkMaster(id="axle", parameters=parameters(b="named", c="named")),),
        job_order_parameters=parameters(c="order"),
    )
    found = await RecipeLookup(store, compiled).find(SCOPE, order)
    assert isinstance(found, FoundRecipe)
    assert found.parameters == {"a": "master", "b": "named", "c": "order"}


async def test_a_schema_without_its_trailing_slash_is_known(store: Store) -> None:
    await keep(store, SCOPE, dataschema=RECIPE_DATASCHEMA.removesuffix("/"))
    order = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="axle"),))
    assert isinstance(await RecipeLookup(store, compiled).find(SCOPE, order), FoundRecipe)


async def test_recipe_of_another_scope_is_kept_separate(store: Store) -> None:
    await keep(store, SCOPE)
    other = {"steps": [{"name": "other", "initial": True}]}
    await keep(store, "station-2", data=other)
    order = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="axle"),))
    lookup = RecipeLookup(store, compiled)
    for scope, step in ((SCOPE, "only"), ("station-2", "other")):
        found = await lookup.find(scope, order)
        assert isinstance(found, FoundRecipe)
        assert found.net.initial == step


async def test_recipe_without_equipment_for_its_commands_is_refused(store: Store) -> None:
    await keep(store, SCOPE)
    order = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="axle"),))
    found = await RecipeLookup(store, compiled, lambda _: ["tighten.v1"]).find(SCOPE, order)
    assert isinstance(found, NoRecipe)
    assert str(found.reason) == "no equipment takes commands of type tighten.v1"


async def test_cached_recipe_is_used_until_it_is_invalidated(store: Store) -> None:
    await keep(store, SCOPE)
    order = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="axle"),))
    lookup = RecipeLookup(store, compiled)
    first = await lookup.find(SCOPE, order)
    assert isinstance(first, FoundRecipe)
    await keep(store, SCOPE, data={"steps": [{"name": "other", "initial": True}]})
    assert await lookup.find(SCOPE, order) == first
    stale = await store.commit(first.guard)
    assert stale == Stale(store.keys.workmaster("axle"))
    lookup.forget(stale.key)
    found = await lookup.find(SCOPE, order)
    assert isinstance(found, FoundRecipe)
    assert found.net.initial == "other"
    assert await store.commit(found.guard) == Committed()


async def test_guard_fails_for_a_work_master_that_was_removed_and_stored_again(store: Store) -> None:
    await keep(store, SCOPE)
    order = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="axle"),))
    first = await RecipeLookup(store, compiled).find(SCOPE, order)
    assert isinstance(first, FoundRecipe)
    await store.commit(await resources.plan_removal(store, SCOPE, ["axle"]))
    await keep(store, SCOPE, data={"steps": [{"name": "other", "initial": True}]})
    assert isinstance(await store.commit(first.guard), Stale)
