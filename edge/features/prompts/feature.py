"""Prompts: recipes ask the people at the station."""

from edge.app.feature import Feature, Noun
from edge.equipment.kinds import EquipmentKind

FEATURE = Feature(
    "prompts",
    commands={"prompts": Noun("edge.features.prompts.commands", "Show what people at the station are asked; answer.")},
    sections="edge.features.prompts.settings:SECTIONS",
    is_on=lambda settings: any(equipment.kind == "operator" for equipment in settings.southbound.values()),
    recipe_check="edge.features.prompts.prompt:recipe_faults",
    prepare="edge.features.prompts.service:prepare_prompts",
    kinds={
        "operator": EquipmentKind(
            "edge.features.prompts.settings:OperatorSettings", "edge.features.prompts.equipment:open_operator"
        ),
    },
)
