"""Finds samples that are older than one of their tag that was evaluated: they belong to history only."""

from typing import Final

from edge.ports.batch import EARLY_MS
from edge.ports.sample_lines import Quality, Sample

MAX_TAGS: Final = 10_000


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
