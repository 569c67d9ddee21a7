"""Definitions of tags of the store apply over those of the settings, also when another process changed them."""

from pathlib import Path

import pytest

from edge.app.features import settings_kinds
from edge.features.telemetry.tag_sources import TagUpdates, read_definitions
from edge.foundation.errors import SettingsError
from edge.links.background_task import background_task
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.station.settings import SettingsMethod, StationSettings, follow_settings
from edge.store.client import Store
from edge.store.resources import TAGS
from tests.conftest import WaitUntil


async def test_changed_definitions_of_the_store_are_loaded(store: Store, wait_until: WaitUntil) -> None:
    found = TagDefinitions([TagDefinition("t", unit="CEL"), TagDefinition("u", unit="BAR")])
    settings = StationSettings(store, settings_kinds())
    async with background_task(follow_settings(store, [TagUpdates(store, found).refresh]), "updates"):
        sent = [{"tag": "t", "unit": "KEL"}, {"tag": "rev", "unit": "C62"}]
        await settings.apply("s", "tag", SettingsMethod.PUT, sent)
        await wait_until(lambda: found.find("rev"))
        assert [definition.unit for tag in ("t", "u", "rev") if (definition := found.find(tag))] == [
            "KEL",
            "BAR",
            "C62",
        ]
        await settings.apply("s", "tag", SettingsMethod.DELETE, {"tag": "t"})
        await wait_until(lambda: found.find("t") == TagDefinition("t", unit="CEL"))


async def test_unreadable_definition_is_skipped(store: Store) -> None:
    found = TagDefinitions()
    await store.commit(TAGS.save(store.keys, 0, {"a": '{"tag":"a","future":1}', "b": '{"tag":"b"}'}))
    await TagUpdates(store, found).refresh()
    assert (found.find("a"), found.find("b")) == (None, TagDefinition("b"))


def test_file_is_read_and_an_empty_name_means_no_definitions(tmp_path: Path) -> None:
    file = tmp_path / "tags.json"
    file.write_text('[{"tag": "t", "unit": "CEL"}]')
    found = read_definitions(str(file)).find("t")
    assert found is not None
    assert found.unit == "CEL"
    assert read_definitions("").find("t") is None


@pytest.mark.parametrize(
    ("text", "fault"), [("[", "not JSON"), ("{}", "a list"), ('[{"tag": "t", "unit": "m"}]', "'t'")]
)
def test_faulty_file_is_named_in_the_refusal(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "tags.json"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_definitions(str(file))
    assert "tags.json" in str(refused.value.problems)
    assert fault in str(refused.value.problems)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_definitions(str(tmp_path / "none.json"))
