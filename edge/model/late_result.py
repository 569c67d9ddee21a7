"""The payload of the event about a result that no command waited for."""

from typing import Any

import msgspec


class LateResultEvent(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """A result that was kept and decided nothing: which command it answers, as far as known, and what it holds."""

    job_order_id: str = msgspec.field(default="", name="JobOrderID")
    command_id: str = msgspec.field(default="", name="CommandID")
    source: str
    """Who reported it."""
    reason: str
    """Why no command waited for it."""
    data: Any = None
    """The result; as text where it was too long to be kept whole."""
