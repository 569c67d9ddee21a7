"""The state of a joining system beyond one connection, and the limits of what is kept of it."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, field

from edge.equipment.result_ledger import ReportedResult, ResultLedger, limit_memory
from edge.equipment.result_numbers import MissingNumbers, parse_position, position_text
from edge.features.joining.conversion import joinings_in


class ResultLimits(Struct, frozen=True):
    """Limits: seconds to wait for requested results, and number and bytes of JSON of the results kept in memory.

    In memory, a result takes ten times the size of its JSON.
    """

    missed_seconds: float = 5.0
    kept: int = 1000
    kept_bytes: int = 8 << 20


class ControllerState(Struct):
    """The state of a controller beyond one connection.

    `last` is the last SequenceNumber: results up to it are not requested again; `instant` is the newest CreationTime.
    `held` are the ids of joinings within the result of a batch, with their commands, and `skipped_ids` those of results
    that could not be read.
    """

    ledger: ResultLedger = field(default_factory=ResultLedger)
    last: int | None = None
    instant: datetime | None = None
    restored: int | None = None
    """The SequenceNumber up to which all results were durable before a restart."""
    is_restored: bool = False
    earlier: str = ""
    """The command that an earlier process has started last, where results may have no command id."""
    missing: MissingNumbers = field(default_factory=MissingNumbers)
    """The numbers up to `last` that were requested and did not come: they are requested on each connection."""
    oldest: tuple[object, ...] | None = None
    """What identifies the latest result before the first connection, () without one; None until it is known."""
    held: dict[tuple[str, str], None] = field(default_factory=dict)
    skipped_ids: dict[str, None] = field(default_factory=dict)
    skipped: int = 0
    """The number of results that were skipped because they could not be read."""
    skip_reason: str = ""
    """Why the last of them could not be read."""
    unreadable: str = ""
    """Why the last result that came could not be read."""
    is_disabled_elsewhere: bool = False
    """Whether another system disabled the tool during a command."""

    def is_old(self, mark: tuple[object, ...], number: int | None) -> bool:
        """Return whether the latest result was made, or was durable, before the first connection of this process."""
        if self.oldest is None:
            self.oldest = mark if self.restored is None or number == self.restored else ()
        return mark == self.oldest

    def skip(self, result_id: str, reason: str = "") -> None:
        """Record that a result could not be read, with the reason; an empty id is not known."""
        self.skipped += 1
        self.skip_reason = reason
        self.ignore(result_id)

    def ignore(self, result_id: str) -> None:
        """Record a stored result that is not to be read again; an empty id is not known."""
        if result_id:
            self.skipped_ids[result_id] = None
            limit_memory(self.skipped_ids)

    def hold(self, command_id: str, results: Sequence[ReportedResult]) -> None:
        """Remember the joinings within results of a command: one that is reported later is not a late result."""
        for result in results:
            for joining in joinings_in(result.payload):
                self.held[joining["ResultMetaData"]["ResultId"], command_id] = None
        limit_memory(self.held)

    def is_held(self, report: ReportedResult) -> bool:
        """Return whether a result was within one of its command that is durable."""
        return (report.result_id, report.command_id) in self.held

    def advance(self, number: int) -> None:
        """Record the number of the newest result; where numbers begin again, the earlier ones are no longer missing."""
        if self.last is not None and number < self.last:
            self.missing.numbers.clear()
        self.last = number

    def position(self) -> str | None:
        """Return the text with the number up to which all is durable but the missing results; None without one."""
        if self.last is None:
            return None
        open_numbers = [
            kept_result.report.sequence for kept_result in self.ledger.unsettled() if kept_result.report.sequence > 0
        ]
        number = min([self.last, *(number - 1 for number in open_numbers)])
        return position_text(number, self.missing.ranges(number))

    def restore(self, text: str) -> None:
        """Restore the numbers from the text of `position` after a restart."""
        if self.last is None and (position := parse_position(text)) is not None:
            self.last, self.missing = position
            self.restored = self.last
        self.is_restored = True
