"""The errors of a message that an Open Protocol controller declines, or does not answer."""

from edge.features.openprotocol.protocol.mids import DECLINES
from edge.foundation.errors import Refused
from edge.links.connection_fault import ConnectionFailed
from edge.model.equipment_connection import ConnectionFault


class DeclinedError(Refused):
    """A message that the controller declined with MID 0004; `error` is its number."""

    def __init__(self, mid: int, error: int) -> None:
        self.error = error
        super().__init__("device", f"MID {mid:04d} declined: {DECLINES.get(error, f'error {error}')}")


class UnansweredError(ConnectionFailed):
    """A message that the controller has not answered in time."""

    def __init__(self, mid: int, seconds: float) -> None:
        super().__init__(ConnectionFault.SILENT, f"MID {mid:04d}: no answer within {seconds:g} s")
