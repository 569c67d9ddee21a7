"""The link layer of Open Protocol: sequence numbers, acknowledgements (MID 9997, 9998) and repetition of frames."""

import asyncio
from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from edge.features.openprotocol.protocol.frame import MidFrame, PartAssembler, encode_frame, split_message
from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text

_LAST_SEQUENCE = 99
_ERROR_SEQUENCE = 1
_ERROR_PARTS = 2


class LinkLimits(Struct, frozen=True):
    """The seconds until an unacknowledged frame is sent again, and the number of times it is sent."""

    repeat: float = 3.0
    times: int = 3


def next_sequence(sequence: int) -> int:
    """Return the sequence number after this one: 1 to 99."""
    return sequence % _LAST_SEQUENCE + 1


class LinkLayer:
    """Numbers and acknowledges frames while it is active; `write` sends bytes.

    One message at a time waits for its acknowledgement. A frame that is received twice is acknowledged twice and
    delivered once. A message in `held` is acknowledged when it is confirmed.
    """

    def __init__(self, write: Callable[[bytes], None], limits: LinkLimits, held: Collection[int] = ()) -> None:
        self.active = False
        self._held = held
        self.held: MidFrame | None = None
        """The message that is to be confirmed."""
        self._unconfirmed: MidFrame | None = None
        self._write = write
        self._limits = limits
        self._parts = PartAssembler()
        self._sent = 0
        self._received = 0
        self._acknowledged: asyncio.Future[None] | None = None
        self._sending = asyncio.Lock()

    async def send(self, message: MidFrame) -> None:
        """Send a message; with the link layer, return when each of its frames is acknowledged.

        Raises Unavailable when no acknowledgement comes, Refused when the other side declines a frame.
        """
        async with self._sending:
            for frame in split_message(message):
                if self.active:
                    await self._send_numbered(frame)
                else:
                    self._write(encode_frame(frame))

    async def _send_numbered(self, frame: MidFrame) -> None:
        self._sent = next_sequence(self._sent)
        numbered = encode_frame(replace(frame, sequence=self._sent))
        self._acknowledged = asyncio.get_running_loop().create_future()
        try:
            for _ in range(self._limits.times):
                self._write(numbered)
                done, _pending = await asyncio.wait((self._acknowledged,), timeout=self._limits.repeat)
                if done:
                    return self._acknowledged.result()
        finally:
            self._acknowledged = None
        raise Unavailable(Text.of("MID {mid:04d} was not acknowledged", mid=frame.mid))

    def receive(self, frame: MidFrame) -> MidFrame | None:
        """Return the message that a frame completes; None for a part, an acknowledgement or a repetition.

        The last frame of a message in `held` is acknowledged by `confirm`, each other one at once.
        Raises Refused(`unreadable`) when a part is missing.
        """
        if frame.mid in {Mid.LINK_ACKNOWLEDGE, Mid.LINK_ERROR}:
            self._settle(frame)
            return None
        if not self.active or not frame.sequence:
            return self._parts.add(frame)
        if frame.sequence == self._received:
            if self._unconfirmed is None:
                self._answer(Mid.LINK_ACKNOWLEDGE, frame)
            return None
        if self._received and frame.sequence != next_sequence(self._received):
            self._answer(Mid.LINK_ERROR, frame, error=_ERROR_SEQUENCE)
            return None
        try:
            message = self._parts.add(frame)
        except Refused:
            self._answer(Mid.LINK_ERROR, frame, error=_ERROR_PARTS)
            raise
        self._received = frame.sequence
        if message is not None and message.mid in self._held:
            self.held, self._unconfirmed = message, frame
        else:
            self._answer(Mid.LINK_ACKNOWLEDGE, frame)
        return message

    def confirm(self) -> None:
        """Acknowledge the message that is held; the controller sends the next one only then."""
        if self._unconfirmed is not None:
            frame, self.held, self._unconfirmed = self._unconfirmed, None, None
            self._answer(Mid.LINK_ACKNOWLEDGE, frame)

    def _answer(self, mid: Mid, frame: MidFrame, **values: int) -> None:
        answer = new_message(mid, mid=frame.mid, **values)
        self._write(encode_frame(replace(answer, sequence=next_sequence(frame.sequence))))

    def _settle(self, frame: MidFrame) -> None:
        waiting = self._acknowledged
        if waiting is None or waiting.done() or frame.sequence != next_sequence(self._sent):
            return
        if frame.mid == Mid.LINK_ACKNOWLEDGE:
            waiting.set_result(None)
        else:
            fields = parse_message(frame)
            waiting.set_exception(
                Refused(
                    "device",
                    Text.of(
                        "MID {fields:04d} was declined, error {fields2}", fields=fields["mid"], fields2=fields["error"]
                    ),
                )
            )
