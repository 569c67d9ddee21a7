"""Makes the results of a tightening controller durable: reports those no command takes, then acknowledges them."""

import asyncio

import structlog

from edge.errors import Refused
from edge.southbound.ijt_late import LateJoinings
from edge.southbound.ijt_methods import IjtMethods
from edge.southbound.ijt_state import ControllerState
from edge.southbound.late_result import LateResults
from edge.southbound.result_ledger import ReportedResult, Verdict

_log = structlog.get_logger(__name__)


class JoiningSettlement:
    """Settles results in the ledger of a controller; with `acknowledges`, those of commands are acknowledged there.

    Every call raises Unavailable without the store, or when the connection is lost.
    """

    def __init__(
        self,
        methods: IjtMethods,
        state: ControllerState,
        reporter: LateResults,
        late: LateJoinings,
        *,
        acknowledges: bool,
    ) -> None:
        self._methods = methods
        self._known = state
        self._ledger = state.ledger
        self._reporter = reporter
        self._late = late
        self._settling = asyncio.Lock()
        self._acknowledges = acknowledges and "AcknowledgeResults" in methods

    async def settle(self, command_id: str) -> None:
        """Drop and acknowledge the results of a command whose answer is durable; report further ones as late."""
        parts, further = self._ledger.parts(command_id), self._ledger.further(command_id)
        is_answered = self._ledger.answer(command_id) is not None
        if is_answered:
            self._known.hold(command_id, parts)
            self._ledger.end(command_id)
            self._ledger.settle(parts)
        self._ledger.begun.discard(command_id)
        self._ledger.release(command_id)
        for report in further if is_answered else [*parts, *further]:
            await self.report_further(report, command_id)
        if is_answered:
            # The controller may decline it: what has to be reported is reported before.
            await self._acknowledge([each.result_id for each in parts])

    async def settle_left(self) -> None:
        """Report and acknowledge the results of commands that no longer wait, and were not settled when they ended.

        The connection was lost right after the answer, the command was stopped, or it was reset.
        """
        # The stop of a command may be repeated while its results are reported.
        async with self._settling:
            for command_id in {kept.command_id: None for kept in self._ledger.unsettled()}:
                if command_id != self._ledger.current and not await self._reporter.is_awaited(command_id):
                    await self._surrender(command_id)

    async def _surrender(self, command_id: str) -> None:
        """Report the results of a command that does not take them; those that its answer holds change nothing."""
        answer = self._ledger.answer(command_id)
        self._ledger.release(command_id)
        if answer is not None:
            await self._late.report(answer, command_id)
            self._known.hold(command_id, [answer])
            self._ledger.end(command_id)
            await self._finish(answer)
        for report in [*self._ledger.parts(command_id), *self._ledger.further(command_id)]:
            if not await self._reporter.is_stored(command_id, report.result_id):
                await self.report_further(report, command_id)
            else:
                await self._finish(report)

    async def dismiss(self, report: ReportedResult, verdict: Verdict, *, is_new: bool) -> None:
        """Report a new result that no command waits for, then acknowledge it.

        After a restart, a result that may have been answered before is new if its command was given up meanwhile.
        """
        command_id = verdict.command_id
        was_given_up = not is_new and command_id is not None and await self._reporter.was_given_up(command_id)
        if not is_new and not was_given_up:
            return
        if verdict.reason:
            _log.warning("result not of the command", result=report.result_id, reason=verdict.reason)
        if was_given_up and command_id is not None:
            await self._late.keep(report, command_id)
        else:
            await self._late.report(report, command_id)
        if command_id is not None and not was_given_up:
            self._ledger.end(command_id)
        await self._finish(report)

    async def report_further(self, report: ReportedResult, command_id: str) -> None:
        """Keep a result as a late one of its command, then acknowledge it."""
        _log.warning("late result of a command", result=report.result_id, command=command_id)
        await self._late.keep(report, command_id)
        await self._finish(report)

    async def acknowledge_own(self, report: ReportedResult) -> None:
        """Acknowledge a result of a command; a refusal of the controller is logged."""
        if report.command_id is None:
            # A result without a command id belongs to other clients that collect results.
            return
        try:
            await self._acknowledge([report.result_id])
        except Refused as refusal:
            _log.debug("late result not acknowledged", reason=refusal.message)

    async def _finish(self, report: ReportedResult) -> None:
        self._ledger.settle([report])
        await self.acknowledge_own(report)

    async def _acknowledge(self, result_ids: list[str]) -> None:
        if self._acknowledges and result_ids:
            await self._methods.call_result_method("AcknowledgeResults", result_ids)
