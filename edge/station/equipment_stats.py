"""What one piece of equipment has told the station since this process started."""

from edge.latency import Latency

ROUND_TRIP_S = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds of command round trips: from a lamp that is switched to a batch that is tightened."""


class EquipmentStats:
    """Counts for people to look at: no decision rests on them. Instants are milliseconds since the epoch."""

    def __init__(self) -> None:
        self.last_seen: int | None = None
        self.answered = 0
        self.failed = 0
        self.ignored = 0
        self.refused = 0
        self.last_error = ""
        self.round_trips = Latency(ROUND_TRIP_S)
        """From the decision to send a command until its answer has come."""

    def record_contact(self, at: int) -> None:
        """Note that it said something, came or went."""
        self.last_seen = at

    def record_answer(self, at: int, sent_at: int | None, error: str | None) -> None:
        """Note the answer to a command that has waited for it since `sent_at`, None where we do not know that."""
        self.answered += 1
        if sent_at is not None:
            self.round_trips.record(max(0, at - sent_at) / 1000)
        if error is not None:
            self.failed += 1
            self.last_error = error

    def record_ignored(self) -> None:
        """Note an answer that is late, repeated or to no command of ours, or an event that nobody waits for."""
        self.ignored += 1

    def record_refused(self, reason: str) -> None:
        """Note a message that could not be taken."""
        self.refused += 1
        self.last_error = reason
