"""A queue of samples for tests of sources."""

import asyncio
from collections import Counter

from edge.ports.sample_lines import Line, Quality, Sample


class Sink:
    """A queue whose lines are stored when the test says so."""

    def __init__(self) -> None:
        self.taken: list[Line] = []
        self.refused: Counter[str] = Counter()
        self.stored = asyncio.Event()
        self.dropped = 0
        self.doubted: list[str] = []

    @property
    def received(self) -> int:
        return len(self.taken)

    def put(self, line: Line) -> None:
        self.taken.append(line)

    def refuse(self, source: str, count: int) -> None:
        self.refused[source] += count

    async def pause(self) -> None:
        """Continue at once."""

    def note_drop(self) -> None:
        self.dropped += 1

    def doubt(self, tag: str) -> None:
        self.doubted.append(tag)

    async def settle(self, received: int) -> None:
        if received:
            await self.stored.wait()

    def values(self, tag: str) -> list[tuple[object, Quality]]:
        """Return the values of a tag with their quality, in order."""
        return [
            (sample.value, sample.quality) for sample in self.taken if isinstance(sample, Sample) and sample.tag == tag
        ]
