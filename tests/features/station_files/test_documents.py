"""Documents of features are read and written by kind; a kind that neither files nor store have is not imported."""

from pathlib import Path

from edge.app.features import settings_kinds
from edge.features.station_files.apply import find_differences
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.client import Store
from tests.features.imports import imported_with
from tests.features.station_files.site import SCOPE, TAG, new_documents, read_site, write


async def test_kinds_that_a_store_has_never_had_are_not_opened(store: Store) -> None:
    assert await new_documents().stored(store) == {}
    await StationSettings(store, settings_kinds()).apply(SCOPE, "tag", SettingsMethod.PUT, TAG)
    assert list(await new_documents().stored(store)) == ["tag"]


def test_station_files_import_no_feature_whose_documents_they_hold() -> None:
    modules = "edge.features.station_files.service, edge.features.station_files.operations"
    assert imported_with(modules, "flows") == imported_with(modules, "telemetry") == set()


async def test_tag_as_the_mes_sends_it_does_not_differ_from_its_file(store: Store, tmp_path: Path) -> None:
    tag = {"tag": "oven.temp", "unit": "CEL", "description": ""}
    await StationSettings(store, settings_kinds()).apply(SCOPE, "tag", SettingsMethod.PUT, tag)
    write(tmp_path, "tags/oven.json", tag)
    assert await find_differences(store, [SCOPE], (await read_site(tmp_path)).checked(), new_documents()) == ()
