"""The port by which a session uses the connection of its client."""

from collections.abc import Callable
from typing import Any, Protocol

from edge.opcua.server_channel import ServerChannel


class SessionConnection(Protocol):
    """What a session needs of the connection over which it is used."""

    @property
    def channel(self) -> ServerChannel:
        """The channel that is open there."""

    async def flush(self) -> None:
        """Send the answers that wait."""

    @property
    def waiting_publish_requests(self) -> int:
        """How many publish requests wait there."""

    @property
    def get_publish_request(self) -> Callable[..., Any]:
        """Where its subscriptions find the client's publish requests."""
