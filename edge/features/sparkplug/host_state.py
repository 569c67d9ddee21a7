"""The state of the primary host application: which of its STATE messages counts."""

from typing import Final

import msgspec
from msgspec import Struct

_MAX_STATE: Final = 4_096


class _StateMessage(Struct):
    online: bool
    timestamp: int


_DECODER: Final = msgspec.json.Decoder(_StateMessage)


class HostState(Struct, frozen=True):
    """Whether the host is online, as of the newest message by its own timestamp."""

    online: bool = False
    timestamp: int | None = None


def read_state(known: HostState, payload: bytes) -> HostState | str:
    """Return the state after a message; the reason for one that does not count."""
    if len(payload) > _MAX_STATE:
        return f"it has more than {_MAX_STATE} bytes"
    try:
        message = _DECODER.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"it is not a state: {error}"
    if known.timestamp is not None and message.timestamp < known.timestamp:
        return "it is older than the state before"
    return HostState(message.online, message.timestamp)
