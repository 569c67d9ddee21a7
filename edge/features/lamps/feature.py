"""Stack lights."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "lamps",
    kinds={
        "stacklight": EquipmentKind(
            "edge.features.lamps.stacklight:StackLightSettings", "edge.features.lamps.stacklight:open_stacklight"
        ),
    },
)
