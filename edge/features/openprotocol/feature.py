"""Tightening controllers with Open Protocol."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "openprotocol",
    keys="edge.features.openprotocol.keys",
    checks="edge.features.openprotocol.checks:checks",
    is_on=lambda settings: any(
        equipment_settings.kind == "openprotocol" for equipment_settings in settings.southbound.values()
    ),
    prepare="edge.features.openprotocol.equipment:prepare_openprotocol",
    subcommands={"sim": {"openprotocol": "edge.features.openprotocol.simulated.command:openprotocol"}},
    kinds={
        "openprotocol": EquipmentKind(
            "edge.features.openprotocol.settings:OpenProtocolSettings",
            "edge.features.openprotocol.equipment:open_openprotocol_equipment",
            number=3,
            ping="edge.features.openprotocol.equipment:ping",
            members=(
                *("evaluation", "torque", "angle", "torque_status", "angle_status", "violations", "identifier", "vin"),
                *("parameter_set", "parameter_set_name", "job", "batch", "counts", "results", "result_id"),
                *("created_at", "tool_serial", "controller", "plot", "trace"),
            ),
            action_types="edge.features.openprotocol.action_types:action_types",
        ),
    },
)
