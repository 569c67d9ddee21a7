"""The port of the sources: the queue that takes their samples."""

from typing import Protocol

from edge.ports.sample_lines import Line


class SampleSink(Protocol):
    """The queue that takes samples."""

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
