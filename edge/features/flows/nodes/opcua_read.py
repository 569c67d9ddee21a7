"""`opcua.read`: the value of an OPC UA variable of the equipment."""

from edge.features.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.features.flows.nodes.outside import VariableValue


class OpcuaReadConfig(NodeConfig, frozen=True):
    """The equipment section and the NodeId with its namespace URI."""

    equipment: str
    node: str


def _query(config: OpcuaReadConfig, _attempt: Attempt) -> VariableValue:
    return VariableValue(config.equipment, config.node)


KIND = NodeKind("opcua.read", "The value of an OPC UA variable.", OpcuaReadConfig, Inputs.NONE, Read(_query))
