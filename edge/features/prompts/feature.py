"""Prompts: recipes ask the people at the station."""

from edge.app.feature import Feature, Noun
from edge.equipment.kinds import EquipmentKind
from edge.model.event_types import PROMPT_METHOD_TYPE, PROMPT_TYPE

FEATURE = Feature(
    "prompts",
    commands={"prompts": Noun("edge.features.prompts.commands", "Show what people at the station are asked; answer.")},
    keys="edge.features.prompts.keys",
    sections="edge.features.prompts.settings:SECTIONS",
    payloads={
        "prompt": ("edge.features.prompts.prompt_changes:PromptEvent", PROMPT_TYPE),
        "prompt.call": ("edge.features.prompts.calls:PromptCall", PROMPT_METHOD_TYPE.format("METHOD")),
        "prompt.List.answer": ("edge.features.prompts.open_prompt:PromptList", PROMPT_METHOD_TYPE.format("List")),
        "prompt.answer": ("edge.features.prompts.answering:PromptAnswered", PROMPT_METHOD_TYPE.format("Answer")),
    },
    page="edge.features.prompts.page:PAGE",
    is_on=lambda settings: any(equipment.kind == "operator" for equipment in settings.southbound.values()),
    recipe_check="edge.features.prompts.prompt:recipe_faults",
    prepare="edge.features.prompts.service:prepare_prompts",
    serve="edge.features.prompts.service:publish_prompts",
    opcua="edge.features.prompts.opcua.prompt_feed:add_prompts",
    opcua_off="edge.features.prompts.opcua.prompt_view:add_types",
    calls=tuple(map(PROMPT_METHOD_TYPE.format, ("List", "Answer"))),
    switch="Add equipment of the kind operator: [southbound.NAME].",
    kinds={
        "operator": EquipmentKind(
            "edge.features.prompts.settings:OperatorSettings",
            "edge.features.prompts.equipment:open_operator",
            number=7,
            members=("confirmed", "choice"),
            action_types="edge.features.prompts.action_types:action_types",
        ),
    },
)
