"""What passes between a gateway and a piece of equipment, for who records it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct


class TraceKind(StrEnum):
    """What it is that passes, and what is told of it."""

    BEGUN = "begun"
    """A gateway tells from here on; of its process, to know one that was started anew, and how the equipment is."""
    CONNECTED = "connected"
    """The equipment is there; of the commands that it has not answered."""
    LOST = "lost"
    """The equipment is not there, or not any more; of the reason."""
    COMMAND = "command"
    """A command is given to it; of the command."""
    STOP = "stop"
    """A command is to be stopped; of that, without its parameters."""
    ASKED = "asked"
    """It was asked something; of the question and what it answered."""
    HAPPENING = "happening"
    """Something happened at it; of that, as its connection tells it."""
    ANSWER = "answer"
    """A command is answered; of the answer."""
    MISSED = "missed"
    """More passed than could be told; of how often."""


class TracedCall(Struct, frozen=True, omit_defaults=True):
    """A question to equipment, with what was found, or the `error`: a refusal of that `kind`, else it is away."""

    question: str
    arguments: Sequence[Any]
    found: Any = None
    error: str | None = None
    kind: str | None = None


class TraceRecord(Struct, frozen=True, kw_only=True):
    """One thing that passed, at an instant in milliseconds since the epoch, as a gateway tells it."""

    at: int
    gateway: str
    what: TraceKind
    data: Any
