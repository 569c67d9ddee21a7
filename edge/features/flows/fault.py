"""The faults of a flow document, as `edge flows check` reports them."""

from enum import StrEnum

from msgspec import Struct


class FaultKind(StrEnum):
    """The kinds of fault that keep a flow from being registered."""

    CYCLE = "cycle"
    UNKNOWN_NODE = "unknown_node"
    UNKNOWN_KIND = "unknown_kind"
    INVALID_CONFIG = "invalid_config"
    DUPLICATE_NODE = "duplicate_node"
    DUPLICATE_EDGE = "duplicate_edge"
    PORT_MISMATCH = "port_mismatch"
    EMPTY = "empty"
    INVALID_SCHEDULE = "invalid_schedule"


FLOW = "flow"
"""The `where` of a fault that belongs to the document itself."""
NODES = "nodes"
"""The `where` of a flow without nodes."""
SCHEDULE = "schedule"
"""The `where` of a fault of the schedule."""


class Fault(Struct, frozen=True):
    """One fault: a node id, `a->b` for an edge, a part of the document, or the nodes of a cycle; and a message."""

    kind: FaultKind
    where: str | tuple[str, ...]
    message: str
