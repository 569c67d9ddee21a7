"""Readers of codes."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "readers",
    is_on=lambda settings: any(
        equipment_settings.kind == "reader" for equipment_settings in settings.southbound.values()
    ),
    prepare="edge.features.readers.service:prepare_readers",
    open="edge.features.readers.service:open_readers",
    subcommands={"sim": {"reader": "edge.features.readers.simulated:reader"}},
    kinds={
        "reader": EquipmentKind(
            "edge.features.readers.settings:ReaderSettings",
            "edge.features.readers.equipment:open_reader",
            number=5,
            action_types="edge.features.readers.action_types:action_types",
        ),
    },
)
