"""Remembers which open commands the equipment can have: sent on this connection, since it came online, or at all."""

from collections.abc import Callable

from edge.sfc.signal import Phase
from edge.station.equipment import Command

_AWAITED = (Phase.START, Phase.RESET)
"""The phases that wait for an answer: these are sent again."""


class SentCommands:
    """The starts and resets without an answer; `connection` returns the number of the current connection."""

    def __init__(self, connection: Callable[[], int]) -> None:
        self._connection = connection
        self._sent_on: dict[tuple[str, Phase], int] = {}
        self._undelivered: set[str] = set()
        self._maybe_delivered: set[tuple[str, Phase]] = set()

    def may_be_delivered(self, command_id: str, phase: Phase) -> bool:
        """Return whether a command was sent before, and some subscriber may have it."""
        return (command_id, phase) in self._maybe_delivered

    def is_sent(self, command: Command) -> bool:
        """Return whether the broker has a command on this connection, or is about to have it."""
        return self._sent_on.get((command.command_id, command.phase)) == self._connection()

    def is_undelivered(self, command_id: str) -> bool:
        """Return whether a command was sent and certainly had no subscriber the last time."""
        return command_id in self._undelivered

    def begin(self, command_id: str, phase: Phase) -> None:
        """Record that a command is being sent; from now on the equipment may have it."""
        if phase in _AWAITED:
            self._undelivered.discard(command_id)
            self._sent_on[command_id, phase] = self._connection()

    def end(self, command_id: str, phase: Phase, *, delivered: bool | None) -> None:
        """Record whether a subscriber had the command; None when the broker did not confirm it."""
        if delivered is not False and phase in _AWAITED:
            self._maybe_delivered.add((command_id, phase))
        if delivered:
            return
        self._sent_on.pop((command_id, phase), None)
        if delivered is False and phase in _AWAITED:
            self._undelivered.add(command_id)

    def forget(self, command_id: str) -> None:
        """Forget a command that has an answer or a stop."""
        self._undelivered.discard(command_id)
        for phase in _AWAITED:
            self._sent_on.pop((command_id, phase), None)
            self._maybe_delivered.discard((command_id, phase))

    def forget_all(self) -> None:
        """Forget what was sent: the equipment came back and may have lost it."""
        self._sent_on.clear()
