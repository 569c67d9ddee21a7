"""Publish to the topics of a scope, and record which of them the broker refuses: none of them blocks another."""

import contextlib
from collections.abc import Collection
from enum import Enum, auto

import structlog

from edge.foundation.errors import Refused
from edge.links.mqtt import Message, MqttSession, PublishRefused
from edge.links.mqtt_connection import ReadRefused
from edge.links.unconfirmed_publish import UnconfirmedPublish
from edge.northbound.topics import Topics

logger = structlog.get_logger(__name__)


class WriteOutcome(Enum):
    """The result of publishing a message."""

    READ = auto()
    """The broker has it and knows a subscriber."""
    UNREAD = auto()
    """The broker has it; its topic has no subscriber."""
    REFUSED = auto()
    """Access rules forbid it."""
    IMPOSSIBLE = auto()
    """The broker never takes it; it is given up."""


class StartedWrite:
    """A message on its way to the broker."""

    def __init__(self, writer: "TopicWriter", message: Message, sent: UnconfirmedPublish | None) -> None:
        self.message = message
        self._writer = writer
        self._sent = sent

    async def outcome(self) -> WriteOutcome:
        """Return the outcome once the broker has answered. Raises Unavailable when the broker is unavailable."""
        if self._sent is None:
            return WriteOutcome.IMPOSSIBLE
        return await self._writer.outcome(self.message, self._sent)


class TopicWriter:
    """Publishes to the topics of one scope.

    A message that the broker never takes, because it is too large, is given up. A topic that its access rules forbid is
    `refused` until a message of that kind passes: the sender tries again.
    """

    def __init__(self, session: MqttSession, topics: Topics, read_timeout_s: float, echo_timeout_s: float) -> None:
        self._session = session
        self._topics = topics
        self._read_timeout_s = read_timeout_s
        self._echo_timeout_s = echo_timeout_s
        self._refused: set[str] = set()

    @property
    def refused(self) -> Collection[str]:
        """Return the topics that the broker refuses now; those of jobs, `app/jobs/station-1/order`, count as one.

        A topic that we may not read has a name of its own: `app/jobs/station-1/state-index (read)`.
        """
        return self._refused

    async def send(self, message: Message) -> WriteOutcome:
        """Publish a message. Raises Unavailable when the broker is unavailable."""
        return await (await self.start(message)).outcome()

    async def start(self, message: Message) -> StartedWrite:
        """Send a message without waiting for the answer of the broker; those started in order are sent in order.

        Raises Unavailable when the broker is unavailable.
        """
        try:
            return StartedWrite(self, message, await self._session.start(message))
        except Refused as refused:
            # Retrying it without end would block all others.
            logger.error("message not publishable", topic=message.topic, reason=refused.message)
            return StartedWrite(self, message, None)

    async def outcome(self, message: Message, sent: UnconfirmedPublish) -> WriteOutcome:
        """Return the outcome of a message that was sent. Raises Unavailable when the broker is unavailable."""
        kind = self._topics.kind(message.topic)
        try:
            is_read = await sent.confirmed()
        except PublishRefused as refused:
            self._refuse(kind, refused)
            return WriteOutcome.REFUSED
        self._allow(kind)
        return WriteOutcome.READ if is_read else WriteOutcome.UNREAD

    async def read_retained(self, topic: str) -> Message | None:
        """Return the retained message of a topic; None when there is none.

        Raises ReadRefused when access rules forbid reading it, Unavailable when the broker is unavailable.
        """
        try:
            message = await self._session.read_retained(topic, self._read_timeout_s)
            if message is None:
                await self._session.check_readable(topic, self._echo_timeout_s)
        except ReadRefused as refused:
            self._refuse(_read_access(topic), refused)
            raise
        self._allow(_read_access(topic))
        return message

    async def is_readable_again(self, topic: str) -> bool:
        """Return whether a topic that could not be read before is readable now."""
        if _read_access(topic) not in self._refused:
            return False
        with contextlib.suppress(ReadRefused):
            return await self._session.read_retained(topic, self._read_timeout_s) is not None
        return False

    def _refuse(self, what: str, refusal: PublishRefused | ReadRefused) -> None:
        if what not in self._refused:
            logger.error("refused topic", topic=what, reason=refusal.message, advice=refusal.advice)
        self._refused.add(what)

    def _allow(self, what: str) -> None:
        if what in self._refused:
            self._refused.remove(what)
            logger.info("topic allowed again", topic=what)


def _read_access(topic: str) -> str:
    return f"{topic} (read)"
