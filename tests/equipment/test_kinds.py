"""Every kind in the table can be configured and opened."""

import inspect
import pkgutil

import pytest

from edge.app.feature import Feature
from edge.app.features import equipment_kinds, equipment_settings, features
from edge.config import EquipmentSettings


@pytest.mark.parametrize("kind", equipment_kinds())
def test_every_kind_has_settings_and_an_opener(kind: str) -> None:
    assert issubclass(pkgutil.resolve_name(equipment_settings()[kind]), EquipmentSettings)
    parameters = inspect.signature(pkgutil.resolve_name(equipment_kinds()[kind].opener)).parameters.values()
    names = [parameter.name.lstrip("_") for parameter in parameters]
    assert [name for name in names if name != "session"][:4] == ["name", "settings", "station", "scopes"]


@pytest.mark.parametrize("feature", features(), ids=lambda feature: feature.name)
def test_only_a_feature_that_prepares_needs_more_to_open_its_equipment(feature: Feature) -> None:
    openers = [pkgutil.resolve_name(kind.opener) for kind in feature.kinds.values()]
    needed = [
        [item.name for item in inspect.signature(opener).parameters.values() if item.default is item.empty]
        for opener in openers
    ]
    assert all(len(names) == 4 or feature.prepare for names in needed)
