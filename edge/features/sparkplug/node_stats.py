"""What an edge node has done since the start of the gateway."""

from msgspec import Struct


class NodeStats(Struct):
    """Whether the edge node is born, and its births, its messages and the commands that it refused."""

    is_born: bool = False
    births: int = 0
    messages: int = 0
    refused: int = 0
