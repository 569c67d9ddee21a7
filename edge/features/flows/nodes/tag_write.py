"""`tag.write`: writes its input to a derived tag, which rules evaluate."""

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import WriteTag


class TagWriteConfig(NodeConfig, frozen=True):
    """The name of the tag."""

    tag: str


def _action(config: TagWriteConfig, attempt: Attempt) -> WriteTag:
    return WriteTag(config.tag, attempt.input)


KIND = NodeKind("tag.write", "Writes a derived tag.", TagWriteConfig, Inputs.ONE, Act(_action), repeatable=False)
