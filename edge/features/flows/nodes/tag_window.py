"""`tag.window`: the values of a tag in the last seconds."""

from edge.features.flows.nodes.delay import Seconds
from edge.features.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.features.flows.nodes.outside import SampleWindow


class TagWindowConfig(NodeConfig, frozen=True):
    """The tag, the length of the window in seconds, and whether samples with their time are wanted."""

    tag: str
    seconds: Seconds
    samples: bool = False


def _query(config: TagWindowConfig, attempt: Attempt) -> SampleWindow:
    return SampleWindow(config.tag, attempt.now - round(config.seconds * 1000), attempt.now, config.samples)


KIND = NodeKind("tag.window", "The values of a tag in the last seconds.", TagWindowConfig, Inputs.NONE, Read(_query))
