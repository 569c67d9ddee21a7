"""The results of an Open Protocol tool and their numbers, beyond one connection."""

import structlog
from msgspec import Struct, field

from edge.equipment.result_ledger import ResultLedger
from edge.equipment.result_numbers import ResultNumbers
from edge.features.openprotocol.reports import claim_of, mark_of
from edge.foundation.errors import Refused
from edge.station.equipment import Command

_log = structlog.get_logger(__name__)


class ToolState(Struct):
    """The results of a tool and their numbers, beyond one connection."""

    ledger: ResultLedger = field(default_factory=ResultLedger)
    numbers: ResultNumbers = field(default_factory=ResultNumbers)
    is_restored: bool = False
    has_memory: bool = False
    """Whether an earlier process left the number up to which no result is missing."""

    @property
    def durable_number(self) -> int | None:
        """The number up to which no result is missing or unsettled; None where numbers are not known."""
        return self.numbers.durable(kept_result.report.sequence for kept_result in self.ledger.unsettled())

    def remember(self, command: Command, correlation: str) -> None:
        """Remember what a command expects, to recognize its result; one with invalid parameters expects nothing."""
        try:
            self.ledger.claim(claim_of(command), mark_of(command, correlation))
        except Refused as refusal:
            _log.info("command not expected", command=command.command_id, reason=refusal.message)
