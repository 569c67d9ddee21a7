"""Each feature is a folder with a declaration, and a row."""

import pkgutil
from pathlib import Path

import click

import edge.features
from edge.app.features import FEATURES, equipment_kinds, equipment_settings, features
from edge.cli import commands, main
from edge.cli.terminal.command_group import OpenGroup


def test_each_folder_of_a_feature_has_its_row() -> None:
    folders = {path.parent.name for path in Path(edge.features.__path__[0]).glob("*/__init__.py")}
    assert folders == set(FEATURES)


def test_each_feature_declares_its_own_name() -> None:
    assert tuple(feature.name for feature in features()) == FEATURES


def test_no_two_features_declare_the_same_command_or_kind() -> None:
    nouns = [name for feature in features() for name in feature.commands]
    assert len(nouns) == len(set(nouns))
    assert set(nouns) < set(commands())
    kinds = [name for feature in features() for name in feature.kinds]
    assert len(kinds) == len(set(kinds))
    assert {*kinds, "mqtt"} == set(equipment_kinds()) == set(equipment_settings())


def test_commands_below_a_noun_of_the_core_take_no_place_of_another() -> None:
    below = [(noun, name) for feature in features() for noun, names in feature.subcommands.items() for name in names]
    assert len(below) == len(set(below))
    for noun, name in below:
        group = main.get_command(click.Context(main), noun)
        assert isinstance(group, OpenGroup)
        assert name not in group.commands
        assert name in group.list_commands(click.Context(group))
        found = group.get_command(click.Context(group), name)
        assert found is not None
        assert found.name == name


def test_every_location_that_a_feature_names_exists() -> None:
    for item in features():
        phases = [item.prepare, item.open, item.serve]
        below = [location for names in item.subcommands.values() for location in names.values()]
        kinds = item.settings_kinds.values()
        pings = [kind.ping for kind in item.kinds.values()]
        for location in filter(None, (*phases, *below, *kinds, *pings, *item.options.values())):
            assert pkgutil.resolve_name(location)
