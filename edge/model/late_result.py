"""The payload of the event about a result that no command waited for."""

from typing import Any

import msgspec


class LateResultEvent(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """A result that was kept without effect: the command that it answers, as far as known, and its data."""

    job_order_id: str = msgspec.field(default="", name="JobOrderID")
    command_id: str = msgspec.field(default="", name="CommandID")
    source: str
    """The equipment that reported it."""
    reason: str
    """The reason why no command waited for it."""
    data: Any = None
    """The result; as text where it was too long to be kept whole."""
