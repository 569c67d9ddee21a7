"""Execute the method by which the MES and sidecars read the file of a trace, part by part."""

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path

from edge.features.traces.files import read_chunk
from edge.features.traces.messages import TraceAnswer, TraceCall
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import TRACES_METHOD_TYPE
from edge.model.isa95 import ReturnStatus
from edge.northbound.reply import Handler, arguments_of, replying

MOST_BYTES = 192 * 1024
"""The most bytes of an answer: 256 KiB of base64, as the largest result."""


class TraceCalls:
    """The traces of a directory as the MES sees them."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        # One file in memory, however many calls come at once.
        self._reading = asyncio.Lock()

    @property
    def table(self) -> Mapping[str, Handler]:
        """Return the calls by their CloudEvents type."""
        return {TRACES_METHOD_TYPE.format("Read"): replying(self.read)}

    async def read(self, event: CloudEvent, _origin: str) -> TraceAnswer:
        """Return a part of a file. Raises Refused for wrong arguments, and for a file that is not stored."""
        call = _arguments(event)
        if not self._directory:
            raise Refused("unknown_trace", "this gateway stores no traces", "Set [traces] directory.")
        async with self._reading:
            data, size = await asyncio.to_thread(read_chunk, Path(self._directory), call.file, call.offset, MOST_BYTES)
        return TraceAnswer(
            return_status=ReturnStatus.NO_ERROR,
            file=call.file,
            size=size,
            offset=call.offset,
            data=base64.b64encode(data).decode(),
        )


def _arguments(event: CloudEvent) -> TraceCall:
    call = arguments_of(event, TraceCall, "Send File and Offset.", {})
    if call.offset < 0:
        raise Refused("invalid_payload", f"Offset {call.offset} is negative", "Send the number of bytes that you have.")
    return call
