"""Takes calls and station settings from the MES over MQTT, and answers them."""

from collections.abc import Mapping
from functools import partial

from edge.links.mqtt import Message, MqttSession, to_event
from edge.northbound.calls import CallHandler, IncomingCall
from edge.northbound.topics import Topics


class Inbox:
    """The MES's way in. A message is acknowledged once its effect is in the store and its answer is out."""

    def __init__(self, session: MqttSession, calls: CallHandler) -> None:
        self._session = session
        self._calls = calls

    async def open(self, topics: Mapping[str, Topics]) -> None:
        """Subscribe to the calls of each scope. Raises Unavailable when the broker does not confirm."""
        for scope, each in topics.items():
            for topic in (each.commands, each.metadata):
                take = partial(self._take, scope)
                await self._session.subscribe(topic, take, on_poison=partial(self._answer_defect, scope))

    async def _take(self, scope: str, message: Message) -> None:
        await self._session.answer(message, await self._calls.answer(_incoming(scope, message)))

    async def _answer_defect(self, scope: str, message: Message, error: Exception) -> None:
        await self._session.answer(message, await self._calls.answer_defect(_incoming(scope, message), error))


def _incoming(scope: str, message: Message) -> IncomingCall:
    return IncomingCall(
        read=partial(to_event, message),
        attributes=message.user_properties,
        scope=scope,
        source=message.topic,
        raw=lambda: message.payload,
        expires_at=_expiry(message),
    )


def _expiry(message: Message) -> int | None:
    if message.expiry is None or message.received_at is None:
        return None
    return message.received_at + message.expiry * 1000
