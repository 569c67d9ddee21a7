"""`equipment.command`: sends a command to equipment that no job uses."""

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import CommandEquipment


class EquipmentCommandConfig(NodeConfig, frozen=True):
    """The equipment section and the type of the command; an input that is an object brings its parameters."""

    equipment: str
    type_id: str


def _action(config: EquipmentCommandConfig, attempt: Attempt) -> CommandEquipment:
    return CommandEquipment(config.equipment, config.type_id, attempt.input, attempt.number)


KIND = NodeKind(
    "equipment.command",
    "Sends a command to equipment that no job uses.",
    EquipmentCommandConfig,
    Inputs.ONE,
    Act(_action),
    repeatable=False,
)
