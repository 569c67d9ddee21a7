"""Every kind in the table can be configured and opened."""

import inspect
import pkgutil

import pytest

from edge.app.features import equipment_kinds, equipment_settings
from edge.config import EquipmentSettings


@pytest.mark.parametrize("kind", equipment_kinds())
def test_every_kind_has_settings_and_an_opener(kind: str) -> None:
    assert issubclass(pkgutil.resolve_name(equipment_settings()[kind]), EquipmentSettings)
    parameters = inspect.signature(pkgutil.resolve_name(equipment_kinds()[kind].opener)).parameters.values()
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    given_by_the_gateway = {"mqtt": {"session", "source"}, "operator": {"fault_of"}}.get(kind, set())
    named = [name.removeprefix("_") for name in needed if name not in given_by_the_gateway]
    assert named == ["name", "settings", "station", "scopes"]
