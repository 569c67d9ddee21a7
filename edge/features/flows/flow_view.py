"""What OPC UA clients see of a flow and call: the engine shows views, the nodes at a server start and stop flows."""

from typing import Protocol

from msgspec import Struct

from edge.foundation.text import Text


class FlowView(Struct, frozen=True):
    """A flow as clients see it; instants and durations are in milliseconds, None while there is none."""

    state: str
    reason: str = ""
    last_cycle: int = -1
    cycle_state: str = ""
    cycle_at: int | None = None
    duration_ms: int | None = None
    next_at: int | None = None
    completed: int = 0
    failed: int = 0
    terminated: int = 0
    missed: int = 0


class ShownFlows(Protocol):
    """The nodes of flows at a server (`edge.features.flows.opcua`)."""

    def show(self, flow_id: str, view: FlowView) -> None:
        """Show a flow, or its new state."""

    def hide(self, flow_id: str) -> None:
        """Hide a flow."""

    async def notify_subscribers(self) -> None:
        """Notify the subscribers of what was shown, until cancelled."""


class FlowMethods(Protocol):
    """Starts and stops flows (edge.features.flows.opcua_feed); both raise Refused."""

    async def start(self, flow_id: str) -> None:
        """Start a flow."""

    async def stop(self, flow_id: str, reason: str | Text) -> None:
        """Stop a flow."""
