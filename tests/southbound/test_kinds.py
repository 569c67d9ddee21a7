"""Every kind in the table can be configured and opened."""

import inspect
import pkgutil

import pytest

from edge.config import EquipmentSettings
from edge.southbound.kinds import EQUIPMENT_SETTINGS, KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_settings_and_an_opener(kind: str) -> None:
    assert issubclass(pkgutil.resolve_name(EQUIPMENT_SETTINGS[kind]), EquipmentSettings)
    parameters = inspect.signature(pkgutil.resolve_name(KINDS[kind].opener)).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty]
    given_by_the_gateway = {"session", "source"} if kind == "mqtt" else set()
    assert [name for name in needed if name not in given_by_the_gateway] == ["name", "settings", "station", "scopes"]
