"""The last sample of each tag in memory: saved to the store every few seconds, and compared to find late samples.

A late sample is older than one of its tag that was evaluated: it belongs to history only.
"""

from typing import Any, Final

from msgspec.structs import replace

from edge.ports.batch import EARLY_MS, encode_line
from edge.ports.sample_lines import Line, Quality, Sample
from edge.ports.sample_value import is_usable
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from edge.store.commit import written_size

SAVE_EVERY_MS: Final = 5_000
MAX_TAGS: Final = 10_000


class LatestTags:
    """Keeps the last sample of at most 10,000 tags; those of further tags are not kept."""

    def __init__(self) -> None:
        self.written_bytes = 0
        """Bytes that this wrote to the append-only file, about."""
        self._latest: dict[str, Sample] = {}
        self._usable: dict[str, Any] = {}
        self._unsaved: set[str] = set()
        self._saved_at = 0

    def note(self, line: Line) -> None:
        """Keep a sample as the last one of its tag."""
        if not isinstance(line, Sample):
            return
        name = line.name
        if name not in self._latest and len(self._latest) >= MAX_TAGS:
            return
        if line.value is None and line.quality is Quality.UNCERTAIN and name in self._latest:
            # A sample of the tag was refused: the value that it had is uncertain.
            line = replace(self._latest[name], quality=Quality.UNCERTAIN)
        self._latest[name] = line
        if is_usable(line):
            self._usable[name] = line.value
        self._unsaved.add(name)

    def value_of(self, tag: str) -> Any:
        """Return the last value of a tag, by the name of its samples, that rules took notice of; None without one."""
        return self._usable.get(tag)

    async def save_if_due(self, store: Store, now: int) -> None:
        """Write the tags that changed, when the last time was long enough ago. Raises Unavailable."""
        if not self._unsaved or 0 <= now - self._saved_at < SAVE_EVERY_MS:
            return
        samples = {name: self._latest[name] for name in self._unsaved}
        # An earlier release kept the tags of gateways without their name.
        former = {sample.tag for sample in samples.values() if sample.gateway is not None} - samples.keys()
        commit = tags.save_last(store.keys, {name: encode_line(sample) for name, sample in samples.items()}, former)
        await store.commit(commit)
        self.written_bytes += written_size(commit)
        self._unsaved.clear()
        self._saved_at = now


class NewestSamples:
    """The instants of the newest samples of at most 10,000 tags; those of a decision count after its commit."""

    def __init__(self) -> None:
        self._committed: dict[str, int] = {}
        self._open: dict[str, int] = {}

    def is_late(self, sample: Sample, arrived_at: int) -> bool:
        """Return whether a newer sample of the tag came before; keep the instant of one that is not late.

        A newest instant in the future of the arrival is of a clock that was set back since: it does not count. Nor does
        that of a sample without a value, which has it by the clock of the gateway: what follows a bad one is current.
        """
        name = sample.name
        if sample.late:
            return True
        if sample.value is None:
            if sample.quality is Quality.BAD and (name in self._open or name in self._committed):
                self._open[name] = 0
            return False
        newest = self._open.get(name, self._committed.get(name))
        if newest is not None and sample.at < newest <= arrived_at + EARLY_MS:
            return True
        if newest is not None or len(self._committed) + len(self._open) < MAX_TAGS:
            self._open[name] = sample.at
        return False

    def commit(self) -> None:
        """Keep the instants of the decision that was committed."""
        self._committed |= self._open
        self._open.clear()

    def rollback(self) -> None:
        """Forget the instants of a decision that is made again."""
        self._open.clear()
