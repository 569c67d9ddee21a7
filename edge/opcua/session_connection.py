"""The port by which a session uses the connection of its client."""

from collections.abc import Callable
from typing import Any, Protocol

from edge.opcua.server_channel import ServerChannel


class SessionConnection(Protocol):
    """The functions of a connection that its session uses."""

    @property
    def channel(self) -> ServerChannel:
        """The open channel."""

    async def flush(self) -> None:
        """Send the waiting answers."""

    @property
    def waiting_publish_requests(self) -> int:
        """The number of waiting publish requests."""

    @property
    def get_publish_request(self) -> Callable[..., Any]:
        """The source of publish requests for the subscriptions."""
