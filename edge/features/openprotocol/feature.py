"""Tightening controllers with Open Protocol."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "openprotocol",
    kinds={
        "openprotocol": EquipmentKind(
            "edge.features.openprotocol.settings:OpenProtocolSettings",
            "edge.features.openprotocol.openprotocol:open_openprotocol_equipment",
        ),
    },
)
