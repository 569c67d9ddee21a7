"""The topics of an edge node: where it publishes, and where commands and the state of its host come from."""

from typing import Final

from msgspec import Struct

NAMESPACE: Final = "spBv1.0"
_RESERVED: Final = frozenset("/+#")
_LONGEST_ID: Final = 255


class NodeTopics(Struct, frozen=True):
    """The topics of the edge node `node` of a group."""

    group: str
    node: str

    def of_node(self, kind: str) -> str:
        """Return the topic of a message of the edge node, as NBIRTH."""
        return f"{NAMESPACE}/{self.group}/{kind}/{self.node}"

    def of_device(self, kind: str, device: str) -> str:
        """Return the topic of a message of a device, as DDATA."""
        return f"{NAMESPACE}/{self.group}/{kind}/{self.node}/{device}"


def state_topic(host: str) -> str:
    """Return the topic of the state of a host application."""
    return f"{NAMESPACE}/STATE/{host}"


def as_id(name: str) -> str:
    """Return a name as identifier of a device, shortened; characters that topics reserve or forbid are replaced."""
    return "".join(text if text.isprintable() and text not in _RESERVED else "_" for text in name[:_LONGEST_ID])
