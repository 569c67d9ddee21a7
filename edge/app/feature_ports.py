"""What features use of each other: the types of `core.ports[name]`, which a feature has while it is on."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from msgspec import Struct

from edge.foundation.text import Text
from edge.links.mqtt import MqttSession
from edge.ports.alarm import Alarm, AlarmCause
from edge.ports.sample_lines import Line
from edge.ports.tag import TagDefinitions
from edge.store.archive_backlog import JobDocuments
from edge.store.client import Store


class ArchivedRun(Struct, frozen=True):
    """A run of the archive that started at an instant; `load` reads its documents from a file, None when it is gone."""

    job_id: str
    run_id: str
    started_at: int
    load: Callable[[], JobDocuments | None]


class RecipeFindings(Protocol):
    """The port of recipes."""

    @property
    def findings(self) -> Callable[[str], Sequence[Text]]:
        """Return the faults and warnings of a stored recipe, by its hash."""


class SampleSink(Protocol):
    """The queue that takes the samples of sources."""

    @property
    def received(self) -> int:
        """Return the number of lines that came so far."""

    def put(self, line: Line) -> None:
        """Queue a line."""

    def refuse(self, source: str, count: int) -> None:
        """Count values of a source that are not samples."""

    async def pause(self) -> None:
        """Pause a source that has many samples, so that the steps of jobs come in between."""

    def note_drop(self) -> None:
        """Count a message that was dropped before it became samples."""

    def doubt(self, tag: str) -> None:
        """Mark the value of a tag as uncertain: its source has sent one that is not a sample."""

    async def settle(self, received: int) -> None:
        """Wait until that many lines are stored or dropped."""


class RecordedTags(Protocol):
    """The tags whose samples are recorded, apart from those of rules."""

    used_tags: frozenset[str]
    """Tags that other features read or write."""

    def publish(self, patterns: tuple[str, ...]) -> None:
        """Record also the tags that match one of these patterns: they are published to other systems."""


class MqttSource(Struct, frozen=True):
    """A source of the settings, `[source.NAME]`, whose messages another feature reads."""

    name: str
    payload: str
    topic: str
    """The filter of its topics."""
    tag: str
    """The name of a tag, with `{...}` for what differs."""
    open_session: Callable[[AsyncExitStack, int], Awaitable[MqttSession]]
    """Opens its session until the stack closes; the number is the largest packet in bytes."""


class Telemetry(Protocol):
    """The port of telemetry."""

    @property
    def queue(self) -> SampleSink:
        """The queue that takes samples of sources."""

    @property
    def interest(self) -> RecordedTags:
        """The tags whose samples are recorded."""

    @property
    def tags(self) -> TagDefinitions:
        """The definitions of tags."""

    @property
    def mqtt_sources(self) -> Sequence[MqttSource]:
        """The sources whose messages another feature reads."""

    @property
    def volatile(self) -> Store | None:
        """The store of samples that are kept in memory only; None where all are in the store of the gateway."""

    @property
    def stream_length(self) -> int:
        """The number of batches that a stream of samples keeps."""

    async def raise_alarm(self, cause: AlarmCause) -> Alarm | None:
        """Raise an alarm and return it; None when a flood of alarms withheld it. Raises Unavailable."""
