"""The sections of the settings are those of the core and of each feature."""

from pathlib import Path

import pytest

from edge.app.sections import declared_sections
from edge.config import SECTIONS, FeatureSettings, Settings, load_settings
from edge.features.flows.settings import FlowsSettings
from edge.foundation.errors import SettingsError


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
    assert Settings().section(FlowsSettings) == FlowsSettings()
    given = FlowsSettings(run="on")
    assert Settings(sections={"flows": given}).section(FlowsSettings) is given
