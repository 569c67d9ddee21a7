"""The topics for the MES, which topics an answer may have, and who writes them: a refused one blocks no other."""

import contextlib
from collections.abc import Collection, Iterable
from enum import Enum, auto
from urllib.parse import quote

import structlog
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.links.mqtt import Message, MqttSession, PublishRefused
from edge.links.mqtt_confirmations import UnconfirmedPublish
from edge.links.mqtt_connection import ReadRefused
from edge.links.mqtt_subscription import matches

_RESERVED_LEVELS = frozenset({"commands", "metadata", "events", "data", "state-index", "alarms"})
"""The last level of the topics that gateways and equipment read or write."""
_JOB_LEVELS = frozenset({"order", "result", "alarm"})
"""The last but one level of the topics of one job or alarm."""


class Topics(Struct, frozen=True):
    """Builds the topics of one scope below the configured prefix."""

    prefix: str
    scope: str

    @property
    def commands(self) -> str:
        """Return the topic on which the MES calls job methods and sends station settings."""
        return f"{self.prefix}/{self.scope}/commands"

    @property
    def metadata(self) -> str:
        """Return the topic on which the MES may send station settings apart from calls."""
        return f"{self.prefix}/{self.scope}/metadata"

    @property
    def read(self) -> tuple[str, ...]:
        """Return all topics that the gateway reads."""
        return self.commands, self.metadata, self.state_index

    @property
    def events(self) -> str:
        """Return the topic of status events: one for each change of a job's state."""
        return f"{self.prefix}/{self.scope}/events"

    @property
    def data(self) -> str:
        """Return the topic of the progress of running recipes."""
        return f"{self.prefix}/{self.scope}/data"

    @property
    def state_index(self) -> str:
        """Return the retained topic with the states of all jobs."""
        return f"{self.prefix}/{self.scope}/state-index"

    @property
    def alarms(self) -> str:
        """Return the topic of alarm events: one for each change of an alarm."""
        return f"{self.prefix}/{self.scope}/alarms"

    def alarm(self, alarm_id: str) -> str:
        """Return the retained topic of an alarm."""
        return f"{self.prefix}/{self.scope}/alarm/{_level(alarm_id)}"

    def kind(self, topic: str) -> str:
        """Return a topic of this scope without its job, as access rules name it."""
        scope = f"{self.prefix}/{self.scope}/"
        return scope + topic.removeprefix(scope).partition("/")[0]

    def order(self, job_order_id: str) -> str:
        """Return the retained topic of a job order with its state."""
        return f"{self.prefix}/{self.scope}/order/{_level(job_order_id)}"

    def result(self, job_order_id: str) -> str:
        """Return the retained topic of the response of a job."""
        return f"{self.prefix}/{self.scope}/result/{_level(job_order_id)}"


def may_answer_to(topic: str, prefix: str, allowed: Iterable[str]) -> bool:
    """Return whether an answer may go to a response topic: one below `prefix`, or one that a filter allows.

    Topics that gateways and equipment use are excluded below `prefix`: an answer there would act as another message.
    """
    if any(matches(text, topic) for text in allowed):
        return True
    if not topic.startswith(f"{prefix}/"):
        return False
    levels = topic.split("/")
    return levels[-1] not in _RESERVED_LEVELS and levels[-2] not in _JOB_LEVELS


def _level(job_order_id: str) -> str:
    """Return an id as one topic level: characters that MQTT forbids or splits at are percent-encoded."""
    return "".join(quote(text, safe="") if text in "%/+#" else text for text in job_order_id)


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
