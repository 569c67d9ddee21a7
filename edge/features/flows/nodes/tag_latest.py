"""`tag.latest`: the last value of a tag."""

from edge.features.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.features.flows.nodes.outside import LatestValue


class TagLatestConfig(NodeConfig, frozen=True):
    """The name of the tag."""

    tag: str


def _query(config: TagLatestConfig, attempt: Attempt) -> LatestValue:
    return LatestValue(config.tag, attempt.now)


KIND = NodeKind("tag.latest", "The last value of a tag that is not bad.", TagLatestConfig, Inputs.NONE, Read(_query))
