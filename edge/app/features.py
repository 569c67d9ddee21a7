"""The features of this gateway, one row each: a row and its folder go together."""

import importlib
from collections.abc import Mapping
from functools import cache

from edge.app.feature import Feature
from edge.equipment.kinds import CORE_KINDS, EquipmentKind

FEATURES = (
    "telemetry",
    "flows",
    "page",
    "joining",
    "vision",
    "openprotocol",
    "readers",
    "lamps",
    "traces",
    "station_files",
    "fleet",
    "sparkplug",
    "opcua_extras",
    "admin",
    "simulator",
)


@cache
def features() -> tuple[Feature, ...]:
    """Return what each feature declares, in the order of the rows."""
    declared = [importlib.import_module(f"edge.features.{name}.feature").FEATURE for name in FEATURES]
    return tuple(declared)


def equipment_kinds() -> Mapping[str, EquipmentKind]:
    """Return every kind of equipment by the value of `kind` in its section."""
    return CORE_KINDS | {name: kind for feature in features() for name, kind in feature.kinds.items()}


def equipment_settings() -> Mapping[str, str]:
    """Return the type of the section of each kind, as `module:name`, for `load_settings`."""
    return {name: kind.settings for name, kind in equipment_kinds().items()}
