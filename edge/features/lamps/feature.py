"""Stack lights."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "lamps",
    is_on=lambda settings: any(equipment.kind == "stacklight" for equipment in settings.southbound.values()),
    prepare="edge.features.lamps.equipment:prepare_lamps",
    kinds={
        "stacklight": EquipmentKind(
            "edge.features.lamps.settings:StackLightSettings",
            "edge.features.lamps.equipment:open_stacklight",
            number=6,
            action_types="edge.features.lamps.action_types:action_types",
        ),
    },
)
