"""Remembers the commands of one piece of connected equipment: which have not left, which met a defect, which ended."""

from collections import Counter

from edge.station.equipment import Command

# Number of ended commands that are remembered, to recognize a command that is sent again.
MEMORY = 10_000


class CommandMemory:
    """The commands of this process, by their ids."""

    def __init__(self, limit: int = MEMORY) -> None:
        self._limit = limit
        self._unsent: set[str] = set()
        self._defects: Counter[str] = Counter()
        self._ended: dict[str, None] = {}

    def note_queued(self, command: Command) -> None:
        """Record a command that waits for the device; one that was offered before may have been on its way."""
        if not command.offered_again:
            self._unsent.add(command.command_id)

    def note_begun(self, command_id: str) -> None:
        """Record that a command is on its way to the device."""
        self._unsent.discard(command_id)

    def is_unsent(self, command_id: str) -> bool:
        """Return whether a command has certainly never been on its way to any device."""
        return command_id in self._unsent

    def count_defect(self, command_id: str) -> int:
        """Count a defect that a command met; return how many there were."""
        self._defects[command_id] += 1
        return self._defects[command_id]

    def note_ended(self, command_id: str) -> None:
        """Record that a command has an answer or a stop."""
        self._ended[command_id] = None
        self._unsent.discard(command_id)
        self._defects.pop(command_id, None)
        if len(self._ended) > self._limit:
            del self._ended[next(iter(self._ended))]

    def has_ended(self, command_id: str) -> bool:
        """Return whether a command has an answer or a stop."""
        return command_id in self._ended
