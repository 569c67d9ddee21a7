"""Build the topics for the MES, and check the topics of answers."""

from collections.abc import Iterable
from urllib.parse import quote

from msgspec import Struct

from edge.links.mqtt_topic import matches

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
