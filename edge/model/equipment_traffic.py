"""Records of the messages between a gateway and a piece of equipment."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct


class TrafficKind(StrEnum):
    """The kind of a record, and its data."""

    BEGUN = "begun"
    """A gateway records from here on; data: its process, to recognise a restart, and the state of the equipment."""
    CONNECTED = "connected"
    """The equipment is connected; data: the commands that it has not answered."""
    LOST = "lost"
    """The equipment is not connected, or no longer; data: the reason."""
    COMMAND = "command"
    """A command is sent; data: the command."""
    STOP = "stop"
    """A stop is sent; data: the command without its parameters."""
    ASKED = "asked"
    """A request is sent; data: the request and its answer."""
    HAPPENING = "happening"
    """An event at the equipment; data: the event as its connection reports it."""
    ANSWER = "answer"
    """A command is answered; data: the answer."""
    MISSED = "missed"
    """Records were dropped; data: their number."""


class EquipmentRequest(Struct, frozen=True, omit_defaults=True):
    """A request to equipment with its result or `error`; `kind` is set for a refusal, None when it is not connected."""

    question: str
    arguments: Sequence[Any]
    found: Any = None
    error: str | None = None
    kind: str | None = None


class TrafficRecord(Struct, frozen=True, kw_only=True):
    """One record of a gateway, at an instant in milliseconds since the epoch."""

    at: int
    gateway: str
    what: TrafficKind
    data: Any
