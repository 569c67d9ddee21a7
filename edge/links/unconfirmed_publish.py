"""A message of QoS 1 on its way to an MQTT broker, and how the reason code of its PUBACK is judged."""

import asyncio
from typing import Final

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from edge.foundation.errors import Unavailable

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
            message = f"the MQTT broker at {self._address} did not confirm a publish to {self._topic!r}"
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
