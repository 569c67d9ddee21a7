"""Readers of codes."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "readers",
    is_on=lambda settings: any(each.kind == "reader" for each in settings.southbound.values()),
    prepare="edge.features.readers.service:prepare_readers",
    open="edge.features.readers.service:open_readers",
    kinds={
        "reader": EquipmentKind(
            "edge.features.readers.settings:ReaderSettings", "edge.features.readers.reader:open_reader"
        ),
    },
)
