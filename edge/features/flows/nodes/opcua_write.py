"""`opcua.write`: writes its input to an OPC UA variable of the equipment."""

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import WriteVariable


class OpcuaWriteConfig(NodeConfig, frozen=True):
    """The equipment section and the NodeId with its namespace URI."""

    equipment: str
    node: str


def _action(config: OpcuaWriteConfig, attempt: Attempt) -> WriteVariable:
    return WriteVariable(config.equipment, config.node, attempt.input)


KIND = NodeKind(
    "opcua.write", "Writes an OPC UA variable.", OpcuaWriteConfig, Inputs.ONE, Act(_action), repeatable=False
)
