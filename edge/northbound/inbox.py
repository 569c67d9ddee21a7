"""Receive calls and station settings of the MES over MQTT, publish their answers, and report those that may not go."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text
from edge.links.mqtt import Message, MqttSession, PublishRefused, SubscriptionRefused, to_event, to_message
from edge.model.cloudevent import CloudEvent
from edge.northbound.calls import CallHandler, IncomingCall, sent_at_by_broker
from edge.northbound.topics import Topics, may_answer_to

logger = structlog.get_logger(__name__)

_SHOWN_S: Final = 3600.0
"""How long an answer that could not be published is a problem, unless a later one passes."""
_MOST: Final = 20
"""The most response topics that are kept: callers choose them."""
_MOST_SHOWN: Final = 3
_TOPIC_LENGTH: Final = 200


class _Unsent(Struct, frozen=True):
    reason: Text
    until: float


class UnsentAnswers:
    """The response topics of the last hour to which an answer could not be published, each with the reason."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Create it without a topic; `clock` returns monotonic seconds."""
        self._clock = clock
        self._topics: OrderedDict[str, _Unsent] = OrderedDict()
        self._faults = LogThrottle(logger)

    def add(self, topic: str, reason: Text, source: str) -> None:
        """Keep and log that an answer to a call from the topic `source` was dropped."""
        topic = topic[:_TOPIC_LENGTH]
        self._faults.warning("answer dropped", f"{topic} {reason}", topic=topic, reason=str(reason), source=source)
        self._topics[topic] = _Unsent(reason, self._clock() + _SHOWN_S)
        self._topics.move_to_end(topic)
        if len(self._topics) > _MOST:
            self._topics.popitem(last=False)

    def remove(self, topic: str) -> None:
        """Forget a topic: an answer passed."""
        if self._topics:
            self._topics.pop(topic[:_TOPIC_LENGTH], None)

    def problems(self) -> list[Text]:
        """Return a sentence for each of the newest topics."""
        now = self._clock()
        due = [(topic, unsent.reason) for topic, unsent in self._topics.items() if unsent.until > now]
        return [
            Text.of("answers to {topic} are not sent: {reason}", topic=topic, reason=reason)
            for topic, reason in due[-_MOST_SHOWN:]
        ]


class Inbox:
    """Subscribes to the calls of the MES.

    A message is acknowledged when its effect is stored and its answer is published.
    """

    def __init__(
        self,
        session: MqttSession,
        calls: CallHandler,
        topic_prefix: str,
        response_topics: Sequence[str] = (),
        ahead_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """Answer to topics below `topic_prefix` and to those that a filter of `response_topics` allows.

        `ahead_ms` returns what the clock of `calls` is ahead of that of this machine, in milliseconds.
        """
        self._session = session
        self._ahead_ms = ahead_ms
        self._calls = calls
        self._topic_prefix = topic_prefix
        self._response_topics = tuple(response_topics)
        self._unsent = UnsentAnswers()

    async def open(self, topics: Mapping[str, Topics]) -> None:
        """Subscribe to the calls of each scope; a refused subscription is retried by the session."""
        for scope, item in topics.items():
            for topic in (item.commands, item.metadata):
                handle = partial(self._handle, scope)
                with suppress(SubscriptionRefused):
                    await self._session.subscribe(topic, handle, on_poison=partial(self._answer_defect, scope))

    async def _handle(self, scope: str, message: Message) -> None:
        answer = await self._calls.answer(self._parse(scope, message))
        if await self._reply(message, answer):
            await self._calls.record_received(answer)

    async def _answer_defect(self, scope: str, message: Message, error: Exception) -> None:
        await self._reply(message, await self._calls.answer_defect(self._parse(scope, message), error))

    def _parse(self, scope: str, message: Message) -> IncomingCall:
        return parse_call(scope, message, self._ahead_ms())

    async def _reply(self, message: Message, answer: CloudEvent) -> bool:
        """Publish an answer; return whether it was received. One that may not be published is a problem."""
        if (topic := message.response_topic) is None:
            return False
        if not may_answer_to(topic, self._topic_prefix, self._response_topics):
            reason = Text.of("[northbound] response_topics does not allow its response topic")
            self._unsent.add(topic, reason, message.topic)
            return False
        try:
            is_read = await self._session.send(to_message(answer, topic, correlation_data=message.correlation_data))
        except (PublishRefused, Refused) as error:
            self._unsent.add(topic, error.text, message.topic)
            return False
        self._unsent.remove(topic)
        return is_read

    def problems(self) -> list[Text]:
        """Return which answers the MES does not get, and why."""
        return self._unsent.problems()


def parse_call(scope: str, message: Message, ahead_ms: int = 0) -> IncomingCall:
    """Parse an MQTT message of a scope's topic; `ahead_ms` is added to the instants of this machine's clock."""
    received_at = None if message.received_at is None else message.received_at + ahead_ms
    try:
        event = to_event(message)
    except Refused as refusal:
        return _call(scope, message, refusal, received_at)
    return _call(scope, message, event, received_at)


def _call(scope: str, message: Message, event: CloudEvent | Refused, received_at: int | None) -> IncomingCall:
    expires_at = None
    if message.expiry is not None and received_at is not None:
        expires_at = received_at + message.expiry * 1000
    interval = message.user_properties.get("expiryinterval", "")
    return IncomingCall(
        event=event,
        attributes=message.user_properties,
        scope=scope,
        source=message.topic,
        raw=message.payload,
        expires_at=expires_at,
        sent_at=sent_at_by_broker(received_at, message.expiry, interval),
        is_retained=message.retain,
    )
