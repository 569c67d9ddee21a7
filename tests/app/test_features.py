"""Each feature is a folder with a declaration, and a row."""

import pkgutil
from collections.abc import Mapping
from pathlib import Path

import click
import pytest

import edge.features
from edge.app.feature import Feature
from edge.app.features import (
    FEATURES,
    declared_sections,
    document_kinds,
    equipment_kinds,
    equipment_settings,
    features,
    settings_kinds,
)
from edge.cli import commands, main
from edge.cli.terminal.command_group import OpenGroup
from edge.config import SECTIONS, FeatureSettings, Settings, load_settings
from edge.foundation.errors import SettingsError


def test_each_folder_of_a_feature_has_its_row() -> None:
    folders = {path.parent.name for path in Path(edge.features.__path__[0]).glob("*/__init__.py")}
    assert folders == set(FEATURES)


def test_each_feature_declares_its_own_name() -> None:
    assert tuple(feature.name for feature in features()) == FEATURES


def test_features_that_another_one_needs_stand_before_it() -> None:
    rows = list(FEATURES)
    needs = [(feature.name, need) for feature in features() for need in feature.needs]
    assert needs
    assert [(name, need) for name, need in needs if rows.index(need) > rows.index(name)] == []


def test_no_two_features_declare_the_same_command_or_kind() -> None:
    nouns = [name for feature in features() for name in feature.commands]
    assert len(nouns) == len(set(nouns))
    assert set(nouns) < set(commands())
    kinds = [name for feature in features() for name in feature.kinds]
    assert len(kinds) == len(set(kinds))
    assert {*kinds, "mqtt"} == set(equipment_kinds()) == set(equipment_settings())
    numbers = [kind.number for kind in equipment_kinds().values()]
    assert len(numbers) == len(set(numbers))


def test_commands_below_a_noun_of_the_core_take_no_place_of_another() -> None:
    below = [(noun, name) for feature in features() for noun, names in feature.subcommands.items() for name in names]
    assert len(below) == len(set(below))
    for noun, name in below:
        group = main.get_command(click.Context(main), noun)
        assert isinstance(group, OpenGroup)
        assert name not in group.commands
        assert name in group.list_commands(click.Context(group))
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.name == name


def test_every_location_that_a_feature_names_exists() -> None:
    for item in features():
        phases = [item.prepare, item.open, item.serve]
        below = [location for names in item.subcommands.values() for location in names.values()]
        kinds = item.settings_kinds.values()
        pings = [kind.ping for kind in item.kinds.values()]
        documents = [kind.documents for kind in item.documents.values()]
        further = (item.page, item.brokers, item.checks, *item.options.values())
        for location in filter(None, (*phases, *below, *kinds, *pings, *documents, *further)):
            assert pkgutil.resolve_name(location)


PLACES = {
    "settings": {"settings"},
    "equipment": {"equipment"},
    # The last is what a gateway without an archive imports of it.
    "phases": {"service", "operations", "equipment", "calls", "withdrawal"},
    "opcua": {"opcua"},
    "page": {"page"},
    "checks": {"checks"},
    "documents": {"documents"},
    "commands": {"commands", "cli", "simulated"},
}
"""What a declaration names -> the files or folders of a feature in which it is, for whoever looks for it."""


def locations(item: Feature) -> Mapping[str, list[str]]:
    """Return the locations that a feature declares, by what they add."""
    kinds = item.kinds.values()
    subcommands = [location for names in item.subcommands.values() for location in names.values()]
    return {
        "settings": [item.sections, item.mirrors, item.folders, item.discovered_as, *(kind.settings for kind in kinds)],
        "equipment": [
            location
            for kind in kinds
            for location in (kind.opener, kind.ping)
            if not location.startswith("edge.equipment.")
        ],
        "phases": [item.prepare, item.open, item.open_off, item.serve],
        "opcua": [item.opcua, item.opcua_off],
        "page": [item.page],
        "checks": [item.checks, item.brokers],
        "documents": [kind.documents for kind in item.documents.values()],
        "commands": [*(noun.module for noun in item.commands.values()), *subcommands, *item.options.values()],
    }


@pytest.mark.parametrize("kind", PLACES)
def test_additions_of_features_are_in_the_files_named_for_them(kind: str) -> None:
    declared = [location for item in features() for location in locations(item)[kind] if location]
    assert [location for location in declared if location.partition(":")[0].split(".")[3] not in PLACES[kind]] == []


def test_documents_without_a_location_are_a_kind_of_station_settings() -> None:
    assert {name for name, kind in document_kinds().items() if not kind.documents} <= set(settings_kinds())
    folders = [kind.folder for kind in document_kinds().values()]
    assert len({*folders, "scopes"}) == len(folders) + 1


def test_section_of_a_feature_that_is_absent_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("[flows]\nrun = 'on'\n")
    with pytest.raises(SettingsError, match="flows: there is no such section"):
        load_settings(file, {}, SECTIONS)
    assert load_settings(file, {}, declared_sections()).is_on("flows")


def test_sections_of_features_follow_those_that_they_name() -> None:
    declared = declared_sections()
    names = list(declared)
    assert [name for name in names if name in SECTIONS] == list(SECTIONS)
    for name, section in declared.items():
        if name not in SECTIONS:
            assert issubclass(section.keys, FeatureSettings)
            assert names.index(section.after) < names.index(name)


def test_section_that_is_not_given_has_its_default_values() -> None:
    declared = [
        section.keys
        for section in declared_sections().values()
        if issubclass(section.keys, FeatureSettings) and not section.is_named
    ]
    assert declared
    for keys in declared:
        assert Settings().section(keys) == keys()
