"""Sends what the MES is told, and notes what the broker refuses: one topic keeps no other from being told."""

import contextlib
from collections.abc import Collection

import structlog

from edge.errors import Refused
from edge.links.mqtt import Message, MqttSession, PublishRefused
from edge.links.mqtt_connection import ReadRefused
from edge.northbound.topics import Topics

logger = structlog.get_logger(__name__)

_READ_TIMEOUT_S = 2.0
"""How long what is retained may take. What comes later counts as gone, and is told again."""
_ECHO_TIMEOUT_S = 5.0
"""How long a message of ours may take to come back. Where it does not, nobody knows what is gone: it stays untold."""


class TopicWriter:
    """The way out to the broker, for one scope.

    A message that the broker never takes, because it is too large for it, is given up. What only its access rules
    forbid is `refused` until a message of that kind gets through: who sent it, or asked for it, tries again.
    """

    def __init__(self, session: MqttSession, topics: Topics) -> None:
        self._session = session
        self._topics = topics
        self._refused: set[str] = set()

    @property
    def refused(self) -> Collection[str]:
        """The topics that the broker refuses now; those of jobs, `app/jobs/station-1/order`, count as one.

        That which it does not let us read stands apart: `app/jobs/station-1/state-index (read)`.
        """
        return self._refused

    async def send(self, message: Message) -> bool:
        """Publish a message; False when access rules forbid it. Raises Unavailable when the broker is gone."""
        kind = self._topics.kind(message.topic)
        try:
            await self._session.send(message)
        except PublishRefused as refused:
            self._refuse(kind, refused)
            return False
        except Refused as refused:
            # To try it for ever would keep all others from being told. Its message says all there is.
            logger.error("cannot be told", topic=message.topic, reason=refused.message)  # noqa: TRY400
            return True
        self._allow(kind)
        return True

    async def read_retained(self, topic: str) -> Message | None:
        """Return what the broker retains on a topic; None when that is nothing.

        Raises ReadRefused when access rules keep it from us, Unavailable when the broker is gone.
        """
        try:
            message = await self._session.read_retained(topic, _READ_TIMEOUT_S)
            if message is None:
                await self._session.check_readable(topic, _ECHO_TIMEOUT_S)
        except ReadRefused as refused:
            self._refuse(_read_access(topic), refused)
            raise
        self._allow(_read_access(topic))
        return message

    async def is_readable_again(self, topic: str) -> bool:
        """Return whether the broker gives by now what it retains on a topic that it kept from us."""
        if _read_access(topic) not in self._refused:
            return False
        with contextlib.suppress(ReadRefused):
            return await self._session.read_retained(topic, _READ_TIMEOUT_S) is not None
        return False

    def _refuse(self, what: str, refusal: PublishRefused | ReadRefused) -> None:
        if what not in self._refused:
            logger.error("refused topic", topic=what, reason=refusal.message, advice=refusal.advice)
        self._refused.add(what)

    def _allow(self, what: str) -> None:
        if what in self._refused:
            self._refused.remove(what)
            logger.info("the broker allows a topic again", topic=what)


def _read_access(topic: str) -> str:
    return f"{topic} (read)"
