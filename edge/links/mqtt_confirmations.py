"""Messages of QoS 1 on their way to an MQTT broker: waits for their acknowledgements and judges the reason codes."""

import asyncio
from typing import Any, Final

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text


class Confirmations:
    """The packets that wait for their acknowledgement, of one connection.

    A timer for each packet would cost more than the packet: one runs for the oldest, whose time ends first.
    """

    def __init__(self, answer_s: float) -> None:
        """Create an empty set; the broker has `answer_s` seconds for each packet."""
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, tuple[float, asyncio.Future[Any]]] = {}
        """When the time of each packet ends, and its future; in the order of these instants."""
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, packet_id: int) -> bool:
        return packet_id in self._waiting

    def expect(self, packet_id: int) -> asyncio.Future[Any]:
        """Return the future of an acknowledgement, which raises TimeoutError when none comes in time."""
        answer = self._loop.create_future()
        self._waiting[packet_id] = self._loop.time() + self._answer_s, answer
        if self._timer is None:
            self._timer = self._loop.call_later(self._answer_s, self._check)
        return answer

    def confirm(self, packet_id: int, answer: object) -> None:
        """Pass on what the broker answered; ignore it when its sender has given up."""
        _, waiting = self._waiting.get(packet_id, (0.0, None))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def drop(self, packet_id: int) -> None:
        """Release a packet id: its acknowledgement has come, or its sender has given up."""
        del self._waiting[packet_id]

    def fail(self, error: Unavailable) -> None:
        """Raise an error for every packet, for the connection is lost."""
        if self._timer is not None:
            self._timer.cancel()
        for _, waiting in self._waiting.values():
            _raise(waiting, error)

    def _check(self) -> None:
        self._timer = None
        now = self._loop.time()
        for due, waiting in self._waiting.values():
            if due > now:
                self._timer = self._loop.call_at(due, self._check)
                return
            _raise(waiting, TimeoutError())


def _raise(waiting: asyncio.Future[Any], error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)
        # Its caller may have been cancelled.
        waiting.exception()


SUCCESS: Final = 0x00
_NO_SUBSCRIBER: Final = 0x10
_NEVER = frozenset({0x87, 0x90, 0x99})
"""PUBACK reason codes that refuse this very message: not authorized, topic name invalid, payload format invalid."""


class PublishRefused(Unavailable):
    """The broker refuses this message at every attempt, until its access rules change."""


class UnconfirmedPublish:
    """A message of QoS 1 that was sent and waits for its PUBACK."""

    def __init__(self, puback: asyncio.Future[int], address: str, topic: str) -> None:
        self._puback = puback
        self._address = address
        self._topic = topic

    async def confirmed(self) -> bool:
        """Return after the PUBACK whether the broker knows a subscriber; raises as Connection.publish does."""
        try:
            reason = await self._puback
        except TimeoutError:
            message = Text.of(
                "the MQTT broker at {address} did not confirm a publish to {topic!r}",
                address=self._address,
                topic=self._topic,
            )
            raise Unavailable(message) from None
        if reason not in {SUCCESS, _NO_SUBSCRIBER}:
            refusal = f"the MQTT broker at {self._address} refused a publish to {self._topic!r}: {_name(reason)}"
            kind = PublishRefused if reason in _NEVER else Unavailable
            raise kind(refusal, "Check the broker's access rules for this client.")
        return reason != _NO_SUBSCRIBER


def _name(reason: int) -> str:
    try:
        return str(ReasonCode(PacketTypes.PUBACK, identifier=reason))
    except KeyError:
        return f"reason code {reason:#04x}"
