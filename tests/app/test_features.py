"""Each feature is a folder with a declaration, and a row."""

from pathlib import Path

import edge.features
from edge.app.features import FEATURES, equipment_kinds, equipment_settings, features
from edge.cli import commands


def test_each_folder_of_a_feature_has_its_row() -> None:
    folders = {path.parent.name for path in Path(edge.features.__path__[0]).glob("*/__init__.py")}
    assert folders == set(FEATURES)


def test_each_feature_declares_its_own_name() -> None:
    assert tuple(each.name for each in features()) == FEATURES


def test_no_two_features_declare_the_same_command_or_kind() -> None:
    nouns = [name for each in features() for name in each.commands]
    assert len(nouns) == len(set(nouns))
    assert set(nouns) < set(commands())
    kinds = [name for each in features() for name in each.kinds]
    assert len(kinds) == len(set(kinds))
    assert {*kinds, "mqtt"} == set(equipment_kinds()) == set(equipment_settings())
