"""The results of an Open Protocol tool and their numbers, beyond one connection."""

import msgspec
import structlog
from msgspec import Struct, field

from edge.equipment.result_ledger import Identity, ReportedResult, ResultLedger, limit_memory
from edge.equipment.result_numbers import ResultNumbers
from edge.features.openprotocol.reports import RememberedResult, ResultMemory, claim_of, mark_of, remembered
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
    last: RememberedResult | None = None
    pending: dict[str | Identity, RememberedResult] = field(default_factory=dict)
    """The results kept for a command whose confirmation at the controller, or removal from the inbox, is open."""

    @property
    def durable_number(self) -> int | None:
        """The number up to which no result is missing or unsettled; None where numbers are not known."""
        return self.numbers.durable(kept_result.report.sequence for kept_result in self.ledger.unsettled())

    @property
    def memory(self) -> str:
        """The text of what survives a restart."""
        memory = ResultMemory(self.durable_number, self.last, tuple(self.pending.values()))
        return msgspec.json.encode(memory).decode()

    def note(self, report: ReportedResult, command_id: str | None) -> None:
        """Record the last result, with the command that it is kept for."""
        self.last = remembered(report)
        if command_id:
            remembered_result = remembered(report, command_id, self.ledger.classification(command_id))
            self.pending[remembered_result.key] = remembered_result
            limit_memory(self.pending)

    def confirm(self, report: ReportedResult) -> None:
        """Record that a result does not come again after a restart."""
        self.pending.pop(report.frame, None)
        self.pending.pop(report.identity, None)

    def remember(self, command: Command, correlation: str) -> None:
        """Remember what a command expects, to recognize its result; one with invalid parameters expects nothing."""
        try:
            self.ledger.claim(claim_of(command), mark_of(command, correlation))
        except Refused as refusal:
            _log.info("command not expected", command=command.command_id, reason=refusal.message)
