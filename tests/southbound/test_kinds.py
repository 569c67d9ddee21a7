"""Every kind in the table can be set and opened."""

import inspect
import pkgutil

import pytest

from edge.config import EquipmentSettings
from edge.southbound.kinds import EQUIPMENT, KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_brings_its_settings_and_what_opens_it(kind: str) -> None:
    assert issubclass(pkgutil.resolve_name(EQUIPMENT[kind]), EquipmentSettings)
    opening = inspect.signature(pkgutil.resolve_name(KINDS[kind].opening))
    assert [name for name in opening.parameters if name not in {"session", "source"}] == [
        "name",
        "settings",
        "station",
        "scopes",
    ]
