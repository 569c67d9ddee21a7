"""Receive calls and station settings of the MES over MQTT, and publish their answers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

import structlog

from edge.errors import Refused
from edge.links.mqtt import Message, MqttSession, SubscriptionRefused, to_event
from edge.model.cloudevent import CloudEvent
from edge.northbound.calls import CallHandler, IncomingCall
from edge.northbound.message_age import sent_at_by_broker
from edge.northbound.topics import Topics, may_answer_to

logger = structlog.get_logger(__name__)


class Inbox:
    """Subscribes to the calls of the MES.

    A message is acknowledged when its effect is stored and its answer is published.
    """

    def __init__(
        self, session: MqttSession, calls: CallHandler, topic_prefix: str, response_topics: Sequence[str] = ()
    ) -> None:
        """Answer to topics below `topic_prefix` and to those that a filter of `response_topics` allows."""
        self._session = session
        self._calls = calls
        self._topic_prefix = topic_prefix
        self._response_topics = tuple(response_topics)

    async def open(self, topics: Mapping[str, Topics]) -> None:
        """Subscribe to the calls of each scope; a refused subscription is retried by the session."""
        for scope, each in topics.items():
            for topic in (each.commands, each.metadata):
                handle = partial(self._handle, scope)
                with suppress(SubscriptionRefused):
                    await self._session.subscribe(topic, handle, on_poison=partial(self._answer_defect, scope))

    async def _handle(self, scope: str, message: Message) -> None:
        answer = await self._calls.answer(parse_call(scope, message))
        if self._may_answer(message):
            await self._session.answer(message, answer)

    async def _answer_defect(self, scope: str, message: Message, error: Exception) -> None:
        answer = await self._calls.answer_defect(parse_call(scope, message), error)
        if self._may_answer(message):
            await self._session.answer(message, answer)

    def _may_answer(self, message: Message) -> bool:
        topic = message.response_topic
        if topic is None:
            return False
        if may_answer_to(topic, self._topic_prefix, self._response_topics):
            return True
        logger.warning("answer dropped", topic=topic, reason="response topic not allowed", source=message.topic)
        return False


def parse_call(scope: str, message: Message) -> IncomingCall:
    """Parse an MQTT message of a scope's topic."""
    try:
        event = to_event(message)
    except Refused as refusal:
        return _call(scope, message, refusal)
    return _call(scope, message, event)


def _call(scope: str, message: Message, event: CloudEvent | Refused) -> IncomingCall:
    expires_at = None
    if message.expiry is not None and message.received_at is not None:
        expires_at = message.received_at + message.expiry * 1000
    interval = message.user_properties.get("expiryinterval", "")
    return IncomingCall(
        event=event,
        attributes=message.user_properties,
        scope=scope,
        source=message.topic,
        raw=message.payload,
        expires_at=expires_at,
        sent_at=sent_at_by_broker(message.received_at, message.expiry, interval),
        is_retained=message.retain,
    )
