"""Remembers the commands of one piece of connected equipment: which have not left, which met a defect, which ended."""

from edge.equipment.result_ledger import limit_memory
from edge.station.equipment import Command

MEMORY = 10_000
"""The most commands that are remembered of each kind: the oldest is forgotten first."""


class CommandMemory:
    """The commands of this process, by their ids.

    One that was forgotten counts as sent and as not ended: its stop is sent, and the station knows its answer.
    """

    def __init__(self, limit: int = MEMORY) -> None:
        self._limit = limit
        self._unsent: dict[str, None] = {}
        self._defects: dict[str, int] = {}
        self._ended: dict[str, None] = {}

    def note_queued(self, command: Command) -> None:
        """Record a command that waits for the device; one that was offered before may have been on its way."""
        if not command.offered_again:
            self._unsent[command.command_id] = None
            limit_memory(self._unsent, self._limit)

    def note_begun(self, command_id: str) -> None:
        """Record that a command is on its way to the device."""
        self._unsent.pop(command_id, None)

    def is_unsent(self, command_id: str) -> bool:
        """Return whether a command has certainly never been on its way to any device."""
        return command_id in self._unsent

    def count_defect(self, command_id: str) -> int:
        """Count a defect that a command met; return how many there were."""
        count = self._defects[command_id] = self._defects.get(command_id, 0) + 1
        limit_memory(self._defects, self._limit)
        return count

    def note_ended(self, command_id: str) -> None:
        """Record that a command has an answer or a stop."""
        self._ended[command_id] = None
        self._unsent.pop(command_id, None)
        self._defects.pop(command_id, None)
        limit_memory(self._ended, self._limit)

    def has_ended(self, command_id: str) -> bool:
        """Return whether a command has an answer or a stop."""
        return command_id in self._ended
