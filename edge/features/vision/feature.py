"""Cameras with OPC UA."""

from edge.app.feature import Feature
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "vision",
    subcommands={"sim": {"vision": "edge.features.vision.simulated.command:vision"}},
    kinds={
        "vision": EquipmentKind(
            "edge.features.vision.settings:VisionSettings",
            "edge.features.vision.equipment:open_vision",
            number=4,
            ping="edge.equipment.opcua:ping",
            members=(
                *("result_state", "result_id", "job_id", "meas_id", "part_id", "recipe_id", "is_simulated"),
                *("created_at", "content"),
            ),
            action_types="edge.features.vision.action_types:action_types",
        ),
    },
)
