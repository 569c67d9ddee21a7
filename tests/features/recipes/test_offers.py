"""What the editor offers for an action: types and parameters of the equipment, and of stored recipes."""

import msgspec

from edge.config import GatewaySettings, Settings
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.readers.settings import ReaderSettings
from edge.features.recipes.desk import Desk
from edge.features.recipes.offers import TypeOffer, offers_of
from edge.features.recipes.release import release_recipe
from edge.features.recipes.settings import RecipesSettings
from edge.features.recipes.workbench import ask_here
from edge.model.equipment_health import EquipmentHealth, EquipmentReport
from edge.station.settings import SettingSource
from edge.store import equipment_memory
from edge.store.client import Store
from tests.features.recipes.desks import ANNA, SCOPE
from tests.sfc.recipes import action, chain

TIGHTEN = "tighten.v1"
SOUTHBOUND = {
    "tool": OpenProtocolSettings(kind="openprotocol", type_ids=(TIGHTEN,), url="tcp://127.0.0.1:4545"),
    "scanner": ReaderSettings(kind="reader", type_ids=("code.v1",), url="tcp://127.0.0.1:2001"),
}


def desk_with_equipment(store: Store) -> Desk:
    gateway = GatewaySettings(scopes=(SCOPE,))
    settings = Settings(gateway=gateway, southbound=SOUTHBOUND, sections={"recipes": RecipesSettings()})
    return Desk(store, settings, ask_here)


async def report(store: Store, gateway: str, *programs: str) -> None:
    """Store what a gateway has read from its tool."""
    health = EquipmentHealth(name="tool", kind="openprotocol", programs=programs)
    await store.execute("SADD", store.keys.instances(SCOPE), gateway)
    await store.commit(equipment_memory.save_report(store.keys, gateway, EquipmentReport(at=1, equipment=(health,))))


async def offered(desk: Desk, language: str = "en") -> dict[str, TypeOffer]:
    return {offer.type_id: offer for offer in await offers_of(desk, SCOPE, language)}


async def test_new_station_offers_types_and_parameters_of_its_equipment(store: Store) -> None:
    offers = await offered(desk_with_equipment(store), "de")
    assert (offers[TIGHTEN].equipment, offers[TIGHTEN].interaction) == ("tool", "push_command")
    known = {parameter.name: parameter.meaning for parameter in offers[TIGHTEN].known}
    assert known["parameter_set"] == "Parametersatz, von 1 bis 999"
    assert (offers["code.v1"].equipment, offers["code.v1"].interaction, offers["code.v1"].known) == (
        "scanner",
        "pull_event",
        (),
    )


async def test_programs_of_all_gateways_and_values_of_recipes_are_offered_once(store: Store) -> None:
    desk = desk_with_equipment(store)
    await report(store, "edge-a", "parameter set 3 (front axle)", "job 7")
    await report(store, "edge-b", "parameter set 3 (front axle)", "parameter set 5")
    tighten = action("a", "A") | {"type_id": TIGHTEN, "parameters": {"parameter_set": 3, "cell": "7"}}
    verify = action("b", "B") | {"type_id": TIGHTEN, "parameters": {"parameter_set": 9}}
    await release_recipe(desk, SCOPE, "WM", chain("A B C", tighten, verify), "first", ANNA, SettingSource.PAGE)
    known = {parameter.name: parameter for parameter in (await offered(desk))[TIGHTEN].known}
    assert [(item.value, item.name) for item in known["parameter_set"].values] == [(3, "front axle"), (5, ""), (9, "")]
    assert [item.value for item in known["job"].values] == [7]
    assert [(item.value, item.name) for item in known["cell"].values] == [("7", "")]


async def test_offers_are_plain_values_for_the_page(store: Store) -> None:
    offers = msgspec.to_builtins(await offers_of(desk_with_equipment(store), SCOPE, "en"))
    assert {"type_id", "equipment", "interaction", "known", "parameters", "timeout_seconds"} == set(offers[0])
