"""The topic grammar of the northbound side."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Topics:
    """Builds the topics of one scope below the configured prefix."""

    prefix: str
    scope: str

    @property
    def commands(self) -> str:
        """Where the MES calls job methods and sends station settings."""
        return f"{self.prefix}/{self.scope}/commands"

    @property
    def metadata(self) -> str:
        """Where the MES may send station settings apart from calls."""
        return f"{self.prefix}/{self.scope}/metadata"

    @property
    def read(self) -> tuple[str, ...]:
        """All that the gateway reads."""
        return self.commands, self.metadata, self.state_index

    @property
    def events(self) -> str:
        """Where each change of a job's state is told."""
        return f"{self.prefix}/{self.scope}/events"

    @property
    def data(self) -> str:
        """Where the progress of running recipes is told."""
        return f"{self.prefix}/{self.scope}/data"

    @property
    def state_index(self) -> str:
        """Retained: where all jobs stand."""
        return f"{self.prefix}/{self.scope}/state-index"

    def kind(self, topic: str) -> str:
        """Give a topic of this scope without the job that it is of, as access rules name it."""
        scope = f"{self.prefix}/{self.scope}/"
        return scope + topic.removeprefix(scope).partition("/")[0]

    def order(self, job_order_id: str) -> str:
        """Retained: a job order with its state."""
        return f"{self.prefix}/{self.scope}/order/{_level(job_order_id)}"

    def result(self, job_order_id: str) -> str:
        """Retained: the response of a job."""
        return f"{self.prefix}/{self.scope}/result/{_level(job_order_id)}"


def _level(job_order_id: str) -> str:
    """Make one topic level of an id: what MQTT forbids or splits at is percent-encoded, all else stays as it is."""
    return "".join(quote(each, safe="") if each in "%/+#" else each for each in job_order_id)
