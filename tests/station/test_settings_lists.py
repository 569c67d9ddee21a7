"""Settings that are lists of items: each kind says what one is called, where it is kept and what checks it."""

import pytest

from edge.foundation.errors import Refused
from edge.station.settings import ListedSetting, SettingsMethod, StationSettings
from edge.store.client import Store
from edge.store.keys import Keys
from edge.store.resources import SettingTexts
from tests.station.plant import SCOPE


def parse(items: object) -> tuple[tuple[object, ...], tuple[str, ...]]:
    assert isinstance(items, list)
    return tuple(items), tuple(f"{item!r} is not an object" for item in items if not isinstance(item, dict))


LAMP = ListedSetting(
    noun="lamp",
    title="lamp",
    name_member="name",
    stored=SettingTexts(Keys.telemetry_rules, "lamp:"),
    most=2,
    parse=parse,
    advice="Read the manual.",
)


@pytest.fixture
def settings(store: Store) -> StationSettings:
    return StationSettings(store, {"lamp": f"{__name__}:LAMP"})


async def test_items_are_put_read_and_deleted(settings: StationSettings) -> None:
    await settings.apply(SCOPE, "lamp", SettingsMethod.PUT, [{"name": "red"}, {"name": "green"}])
    await settings.apply(SCOPE, "lamp", SettingsMethod.PUT, {"name": "red", "pin": 4})
    await settings.apply(SCOPE, "lamp", SettingsMethod.DELETE, "green")
    assert await settings.read(SCOPE, "lamp", None) == [{"name": "red", "pin": 4}]


async def test_all_faults_of_items_are_reported_with_the_advice(settings: StationSettings) -> None:
    items = [{"name": "a"}, {"name": "b"}, {"name": "c"}, 7]
    with pytest.raises(Refused, match="7 is not an object; there would be more than 2 lamps") as caught:
        await settings.apply(SCOPE, "lamp", SettingsMethod.PUT, items)
    assert (caught.value.kind, caught.value.advice) == ("lamp", "Read the manual.")
    assert await settings.read(SCOPE, "lamp", None) == []
