"""An exported folder describes the same station; file names are safe for any id."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.app.documents import GuardedStore
from edge.features.station_files.apply import fill_store, load_objects
from edge.features.station_files.export import file_name, write_folder
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.client import Store
from tests.features.station_files.site import SCOPE, make_site, new_documents, read_site

ODD = ("a/b", "..", ".hidden", "ü: *", "x" * 255, "ä" * 255)


async def test_exported_files_describe_the_same_objects(store: Store, tmp_path: Path) -> None:
    site = make_site(tmp_path / "site")
    await fill_store(GuardedStore(store, now_ms), "gw", [SCOPE], site, new_documents())
    masters = [{"ID": text} for text in ODD]
    await StationSettings(store).apply(SCOPE, "workmaster", SettingsMethod.PUT, masters)
    await StationSettings(store).apply(SCOPE, "jobacceptance", SettingsMethod.PUT, {"max_downloadable_job_orders": 0})
    describeds = await load_objects(store, [SCOPE], new_documents())
    written = write_folder(tmp_path / "new", describeds)
    found = (await read_site(tmp_path / "new")).checked()
    assert {station_object: (described.content, described.folder) for station_object, described in found.items()} == {
        station_object: (described.content, described.folder) for station_object, described in describeds.items()
    }
    assert {"flows/count.json", "flows/stopped/idle.json", "rules/hot.json"} <= set(written)


def test_export_into_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert write_folder(tmp_path, {}) == []
    (tmp_path / "README.md").touch()
    with pytest.raises(Refused, match="is not empty"):
        write_folder(tmp_path, {})


# What str.isprintable permits: a filter would refuse most of the long texts.
PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")


@given(st.lists(st.text(PRINTABLE, min_size=1, max_size=255), unique=True, max_size=20))
def test_file_names_are_safe_and_unique(ids: list[str]) -> None:
    names = [file_name(identifier) for identifier in ids]
    assert len(set(names)) == len(ids)
    for name in names:
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name.encode()) <= 255
