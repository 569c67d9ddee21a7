"""Sends what the MES is told, and passes over what the broker refuses: one topic keeps no other from being told."""

from collections.abc import Collection

import structlog

from edge.errors import Refused
from edge.links.mqtt import Message, PublishRefused, Session
from edge.northbound.topics import Topics

logger = structlog.get_logger(__name__)


class Outlet:
    """The way out to the broker, for one scope.

    A message that the broker never takes, because it is too large for it, is given up. What only its access rules
    forbid is `refused` until a message of that kind gets through: who sent it tries again.
    """

    def __init__(self, session: Session, topics: Topics) -> None:
        self._session = session
        self._topics = topics
        self._refused: set[str] = set()

    @property
    def refused(self) -> Collection[str]:
        """The topics that the broker refuses now; those of jobs, `app/jobs/station-1/order`, count as one."""
        return self._refused

    async def send(self, message: Message) -> bool:
        """Publish a message; False when access rules forbid it. Raises Unavailable when the broker is gone."""
        kind = self._topics.kind(message.topic)
        try:
            await self._session.send(message)
        except PublishRefused as refused:
            if kind not in self._refused:
                logger.error("refused topic", topic=kind, reason=refused.message, advice=refused.advice)  # noqa: TRY400
            self._refused.add(kind)
            return False
        except Refused as refused:
            # To try it for ever would keep all others from being told. Its message says all there is.
            logger.error("cannot be told", topic=message.topic, reason=refused.message)  # noqa: TRY400
            return True
        if kind in self._refused:
            self._refused.remove(kind)
            logger.info("the broker takes a topic again", topic=kind)
        return True
