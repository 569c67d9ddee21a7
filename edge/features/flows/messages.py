"""The arguments of the methods of a flow, as the MES and sidecars call them."""

from typing import Final

from edge.model.isa95 import Payload

FLOW_KIND: Final = "flow"
"""The kind of the configuration event that registers, deletes or reads flows."""
FLOW_METHODS: Final = ("Start", "Stop", "Terminate")


class FlowCall(Payload, frozen=True, kw_only=True):
    """The flow that a method is for; `component` (Stop, Terminate) and `node` (Terminate) name a part of its cycle."""

    flow_id: str
    reason: str = ""
    by: str = ""
    component: int | None = None
    node: str | None = None
