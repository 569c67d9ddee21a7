"""How the joinings of a tightening controller are reported and acknowledged when the ledger settles them."""

from collections.abc import Sequence

import structlog

from edge.equipment.result_ledger import ReportedResult
from edge.features.joining.late import LateJoinings
from edge.features.joining.methods import IjtMethods
from edge.features.joining.state import ControllerState
from edge.foundation.errors import Refused

_log = structlog.get_logger(__name__)


class SettledJoinings:
    """The reports of a controller; as `SettledController`.

    With `acknowledges`, those of commands are acknowledged there.
    """

    def __init__(self, methods: IjtMethods, state: ControllerState, late: LateJoinings, *, acknowledges: bool) -> None:
        self._methods = methods
        self._known = state
        self._late = late
        self._acknowledges = acknowledges and "AcknowledgeResults" in methods
        self.report_own = late.report_own
        self.keep = late.keep

    async def report_answer(self, command_id: str, answer: ReportedResult) -> Sequence[ReportedResult]:
        """Report the result that answers a command, as it holds its joinings; return it.

        One that is stored already may be a part of what an earlier process has reported: the others are asked for, too.
        """
        return (answer,) if await self._late.report(answer, command_id) else ()

    async def is_stored(self, report: ReportedResult, command_id: str) -> bool:
        """Return whether a joining is stored at its command, also within its answer."""
        return await self._late.reporter.is_stored(command_id, report.result_id)

    def note_answered(self, command_id: str, reports: Sequence[ReportedResult]) -> None:
        """Remember the joinings within an answer: they may be reported once more, by themselves."""
        self._known.hold(command_id, reports)

    async def acknowledge(self, reports: Sequence[ReportedResult]) -> None:
        """Acknowledge results; raises Refused when the controller declines it."""
        if self._acknowledges and reports:
            await self._methods.call_result_method("AcknowledgeResults", [report.result_id for report in reports])

    async def acknowledge_late(self, report: ReportedResult) -> None:
        """Acknowledge a result of a command; a refusal of the controller is logged."""
        if report.command_id is None:
            # A result without a command id belongs to other clients that collect results.
            return
        try:
            await self.acknowledge([report])
        except Refused as refusal:
            _log.debug("late result not acknowledged", reason=refusal.message)
