"""Readers of codes."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "readers",
    kinds={
        "reader": EquipmentKind(
            "edge.features.readers.settings:ReaderSettings", "edge.features.readers.reader:open_reader"
        ),
    },
)
