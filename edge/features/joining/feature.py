"""Tightening controllers with OPC UA."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "joining",
    subcommands={"sim": {"ijt": "edge.features.joining.simulated.command:ijt"}},
    kinds={
        "ijt": EquipmentKind(
            "edge.features.joining.settings:IjtSettings",
            "edge.features.joining.equipment:open_ijt",
            number=2,
            ping="edge.equipment.opcua:ping",
            members=(
                *("evaluation", "process", "trace", "counters", "results", "result_id", "sequence_number"),
                *("is_simulated", "created_at", "torque", "angle"),
            ),
            action_types="edge.features.joining.action_types:action_types",
        ),
    },
)
