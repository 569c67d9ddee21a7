"""Counts of one piece of equipment since this process started."""

from collections.abc import Sequence

from edge.foundation.latency import Latency

ROUND_TRIP_S = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds of command round trips in seconds, from a lamp to a batch of joinings."""


class EquipmentStats:
    """Counts for people and their monitoring; no decision uses them. Instants are milliseconds since the epoch."""

    def __init__(self) -> None:
        self.last_seen: int | None = None
        self.answered = 0
        self.failed = 0
        self.ok = 0
        self.not_ok = 0
        self.repeated_starts = 0
        self.unknown = 0
        self.late = 0
        self.unsolicited = 0
        self.declined_stops = 0
        self.lost_traces = 0
        self.lost_since_stored = 0
        """The traces and files that were lost since the last one was stored."""
        self.skipped_since_answer = 0
        """The results and messages beyond a size limit since the last command that the equipment carried out."""
        self.ignored = 0
        self.refused = 0
        self.last_error = ""
        self.last_late = ""
        self.last_late_at: int | None = None
        self.round_trips = Latency(ROUND_TRIP_S)
        """From the decision to send a command until its answer has arrived."""

    def record_contact(self, at: int) -> None:
        """Record a message, a connection or a disconnection."""
        self.last_seen = at

    def record_answer(self, at: int, sent_at: int | None, error: str | None) -> None:
        """Record the answer to a command sent at `sent_at`; None where this process does not know the instant."""
        self.answered += 1
        if sent_at is not None:
            self.round_trips.record(max(0, at - sent_at) / 1000)
        if error is not None:
            self.failed += 1
            self.last_error = error
        else:
            self.skipped_since_answer = 0

    def record_result(self, data: object) -> None:
        """Record the evaluation of a result, where the equipment reports one: `OK` or `NotOK`."""
        match data:
            case {"evaluation": "OK"}:
                self.ok += 1
            case {"evaluation": "NotOK"}:
                self.not_ok += 1
            case _:
                pass

    def record_repeated_start(self) -> None:
        """Record a start that the equipment may have received before."""
        self.repeated_starts += 1

    def record_unknown(self, reason: str) -> None:
        """Record a command whose outcome cannot be found."""
        self.unknown += 1
        self.last_error = f"outcome unknown: {reason}"

    def record_late(self, at: int, reason: str) -> None:
        """Record a result that no command waits for, and why it does not count."""
        self.late += 1
        self.last_late, self.last_late_at = reason, at

    def record_unsolicited(self) -> None:
        """Record an answer that no command waits for, and that is not kept."""
        self.unsolicited += 1

    def record_declined_stop(self, reason: str) -> None:
        """Record a stop or reset that the equipment did not carry out."""
        self.declined_stops += 1
        self.last_error = f"not stopped: {reason}"

    def record_traces(self, stored: int, lost: Sequence[str]) -> None:
        """Record how many traces and files of a result are stored, and why others are lost."""
        self.lost_traces += len(lost)
        if stored:
            self.lost_since_stored = 0
        self.lost_since_stored += len(lost)
        if lost:
            self.last_error = f"trace not stored: {lost[-1]}"

    def record_ignored(self) -> None:
        """Record a repeated answer, an answer to an unknown command, or an event that no job waits for."""
        self.ignored += 1

    def record_refused(self, kind: str, reason: str) -> None:
        """Record a refused message; one of the kind `too_large` is also counted until the next carried out command."""
        self.refused += 1
        self.skipped_since_answer += kind == "too_large"
        self.last_error = reason
