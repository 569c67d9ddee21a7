"""Station settings of the MES are applied completely, or refused with every fault."""

import asyncio
from typing import Any

import pytest

from edge.foundation.errors import Refused
from edge.model.acceptance import ResourceKind
from edge.station.settings import KINDS, SettingsMethod, StationSettings
from edge.store import resources
from edge.store.client import Store
from tests.station.plant import LINEAR, SCOPE, linear
from tests.store.work_masters import work_master

RECIPE = "https://aschamberger.github.io/schemas/microdcs/sfc-recipe/v1.0.0/"


@pytest.fixture
def settings(store: Store) -> StationSettings:
    return StationSettings(store)


def master(master_id: str, data: object = LINEAR) -> dict[str, Any]:
    return {"ID": master_id, "data": data, "dataschema": RECIPE}


async def refusal(settings: StationSettings, kind: str, payload: object) -> Refused:
    with pytest.raises(Refused) as caught:
        await settings.apply(SCOPE, kind, SettingsMethod.PUT, payload)
    return caught.value


PAYLOADS: list[tuple[ResourceKind, dict[str, Any]]] = [
    (ResourceKind.EQUIPMENT, {"ID": "x"}),
    (ResourceKind.PERSONNEL, {"ID": "x"}),
    (ResourceKind.PHYSICAL_ASSET, {"ID": "x"}),
    (ResourceKind.MATERIAL_CLASS, {"MaterialClassID": "x"}),
    (ResourceKind.MATERIAL_DEFINITION, {"MaterialDefinitionID": "x"}),
]


def test_every_kind_of_settings_is_tested() -> None:
    assert {*(kind for kind, _ in PAYLOADS), "workmaster", "jobacceptance"} == set(KINDS)


@pytest.mark.parametrize(("kind", "payload"), PAYLOADS)
@pytest.mark.parametrize("listed", ["alone", "in a list"])
async def test_resource_is_allowed_and_removed(
    store: Store, settings: StationSettings, kind: ResourceKind, payload: dict[str, Any], listed: str
) -> None:
    sent = [payload] if listed == "in a list" else payload
    await settings.apply(SCOPE, kind, SettingsMethod.PUT, sent)
    assert (await resources.load_allowed(store, SCOPE)).resources[kind] == {"x"}
    assert (await resources.load_allowed(store, "station-2")).resources[kind] == frozenset()
    await settings.apply(SCOPE, kind, SettingsMethod.DELETE, sent)
    assert (await resources.load_allowed(store, SCOPE)).resources[kind] == frozenset()


async def test_ten_thousand_resources_are_accepted_in_one_event(store: Store, settings: StationSettings) -> None:
    await settings.apply(SCOPE, ResourceKind.EQUIPMENT, SettingsMethod.PUT, [{"ID": f"e{n}"} for n in range(10_000)])
    assert len((await resources.load_allowed(store, SCOPE)).resources[ResourceKind.EQUIPMENT]) == 10_000


@pytest.mark.parametrize("payload", [[], {}, {"ID": ""}, {"ID": 5}, None, "x", [{"ID": "a"}, 7]])
async def test_payload_without_a_resource_is_refused(settings: StationSettings, payload: object) -> None:
    assert (await refusal(settings, "equipment", payload)).kind == "invalid_payload"


async def test_a_work_master_is_stored_with_its_recipe_and_removed_again(
    store: Store, settings: StationSettings
) -> None:
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, [master("axle"), {"ID": "plain"}])
    assert (await resources.load_allowed(store, SCOPE)).work_masters == {"axle", "plain"}
    stored = await work_master(store, "axle")
    assert stored
    assert stored.data == LINEAR
    await settings.apply(SCOPE, "workmaster", SettingsMethod.DELETE, {"ID": "axle"})
    assert [item.id for item in await resources.load_work_masters(store, SCOPE)] == ["plain"]


async def test_work_master_sent_again_replaces_the_first(store: Store, settings: StationSettings) -> None:
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, master("axle"))
    changed = {"steps": [{"name": "only", "initial": True}]}
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, master("axle", changed))
    stored = await work_master(store, "axle")
    assert stored
    assert stored.data == changed


async def test_faulty_recipe_is_refused_with_every_fault(store: Store, settings: StationSettings) -> None:
    broken = master("broken", {"steps": [{"name": "one"}], "colour": "red"})
    error = await refusal(settings, "workmaster", [master("sound"), broken, {"ID": "list:x"}])
    assert error.kind == "recipe"
    assert "colour" in error.message
    assert "initial" in error.message
    assert "list:" in error.message
    assert (await resources.load_allowed(store, SCOPE)).work_masters == frozenset()


@pytest.mark.parametrize("data", [None, 5, [], {}, linear()])
async def test_invalid_recipe_is_refused(settings: StationSettings, data: object) -> None:
    assert (await refusal(settings, "workmaster", master("x", data))).kind in {"recipe", "invalid_payload"}


async def test_work_master_removed_from_one_scope_stays_in_another(store: Store, settings: StationSettings) -> None:
    for scope in (SCOPE, "station-2"):
        await settings.apply(scope, "workmaster", SettingsMethod.PUT, master("axle"))
    await settings.apply(
        SCOPE, "workmaster", SettingsMethod.DELETE, [{"ID": "axle"}, {"ID": "unknown"}, {"ID": "list:x"}]
    )
    assert await resources.load_work_masters(store, SCOPE) == []
    assert [item.id for item in await resources.load_work_masters(store, "station-2")] == ["axle"]
    await settings.apply("station-2", "workmaster", SettingsMethod.DELETE, {"ID": "axle"})
    assert await work_master(store, "axle") is None


async def test_concurrent_put_and_delete_keep_list_and_documents_equal(store: Store, settings: StationSettings) -> None:
    whats = [SettingsMethod.PUT, SettingsMethod.DELETE] * 20
    await asyncio.gather(
        *(settings.apply(f"station-{n % 3}", "workmaster", what, master("axle")) for n, what in enumerate(whats))
    )
    listed = [number for number in range(3) if (await resources.load_allowed(store, f"station-{number}")).work_masters]
    assert (await work_master(store, "axle") is not None) == bool(listed)


async def test_too_large_work_master_is_refused(settings: StationSettings) -> None:
    large = master("axle") | {"Description": {"Text": "x" * 100_000}}
    assert "a text longer than" in (await refusal(settings, "workmaster", large)).message


async def test_job_limit_is_set_and_removed(store: Store, settings: StationSettings) -> None:
    await settings.apply(SCOPE, "jobacceptance", SettingsMethod.PUT, {"max_downloadable_job_orders": 7})
    assert (await resources.load_allowed(store, SCOPE)).max_job_orders == 7
    await settings.apply(SCOPE, "jobacceptance", SettingsMethod.DELETE, None)
    assert (await resources.load_allowed(store, SCOPE)).max_job_orders is None


@pytest.mark.parametrize("limit", [-1, 65536, "7", None, 1.5, 10**30])
async def test_invalid_job_limit_is_refused(settings: StationSettings, limit: object) -> None:
    error = await refusal(settings, "jobacceptance", {"max_downloadable_job_orders": limit})
    assert error.kind == "invalid_payload"


@pytest.mark.parametrize("payload", [[], [{"max_downloadable_job_orders": 1}, {"max_downloadable_job_orders": 2}]])
async def test_payload_without_exactly_one_job_limit_is_refused(settings: StationSettings, payload: object) -> None:
    assert (await refusal(settings, "jobacceptance", payload)).kind == "invalid_payload"


async def test_listeners_are_called_after_the_commit(store: Store, settings: StationSettings) -> None:
    seen = []

    async def look(scope: str) -> None:
        seen.append((scope, [item.id for item in await resources.load_work_masters(store, scope)]))

    settings.listeners.append(look)
    await settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, master("axle"))
    assert seen == [(SCOPE, ["axle"])]
