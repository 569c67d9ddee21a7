"""Makes the results of a controller durable: keeps those that a command waits for, reports the others.

Results are judged by the ledger. They are acknowledged at the controller once they are durable.
"""

from collections.abc import Sequence
from typing import Protocol

from edge.equipment.result_ledger import ReportedResult, ResultLedger, Standing, Verdict
from edge.equipment.unclaimed import LateResults


class SettledController(Protocol):
    """How a kind of controller reports its results and acknowledges them; its calls raise Unavailable.

    A report or an acknowledgement that was interrupted is repeated.
    """

    async def report_own(self, report: ReportedResult, verdict: Verdict) -> None:
        """Report a result that counts for no command, with the reason where the verdict has one."""

    async def report_answer(self, command_id: str, answer: ReportedResult) -> Sequence[ReportedResult]:
        """Report what answers a command that no longer waits, if it is not stored; return the results it consists of.

        `answer` is the last of them. None is reported and returned where it is stored, or where others are missing:
        each that is not stored is late then.
        """

    async def keep(self, report: ReportedResult, command_id: str) -> None:
        """Keep a result as a late one of its command."""

    async def is_stored(self, report: ReportedResult, command_id: str) -> bool:
        """Return whether a result is stored at its command, apart from the results of `report_answer`."""

    def note_answered(self, command_id: str, reports: Sequence[ReportedResult]) -> None:
        """Remember the results that are the durable answer of a command."""

    async def acknowledge(self, reports: Sequence[ReportedResult]) -> None:
        """Acknowledge the results of an answer; raises Refused when the controller declines it."""

    async def acknowledge_late(self, report: ReportedResult) -> None:
        """Acknowledge any other result; a refusal of the controller is logged."""


class ResultSettlement:
    """Settles results in the ledger of a controller. Calls raise Unavailable without the store or the connection."""

    def __init__(self, ledger: ResultLedger, reporter: LateResults, controller: SettledController) -> None:
        self._ledger = ledger
        self._reporter = reporter
        self._controller = controller

    async def take(self, report: ReportedResult, verdict: Verdict, *, is_new: bool = True) -> bool:
        """Keep a result that its command waits for, and report any other; return whether it is kept for its command.

        Without `is_new`, a result may have been reported before a restart.
        """
        ledger, command_id = self._ledger, verdict.command_id
        match verdict.standing:
            case Standing.OF_COMMAND if command_id and await self._is_open(command_id):
                ledger.keep(report, command_id)
                return True
            case Standing.FURTHER if command_id and ledger.answer(command_id) is not None:
                ledger.keep(report, command_id, is_further=True)
            case Standing.FURTHER if command_id:
                await self._report_further(report, command_id)
            case _:
                await self._dismiss(report, verdict, is_new=is_new)
        return False

    async def settle(self, command_id: str) -> None:
        """Drop and acknowledge the results of a command whose answer is durable; report further ones as late."""
        ledger = self._ledger
        async with ledger.settling:
            parts, settled = ledger.parts(command_id), list[ReportedResult]()
            if ledger.answer(command_id) is not None:
                self._controller.note_answered(command_id, parts)
                ledger.end(command_id)
                settled = ledger.settle(parts)
            ledger.begun.discard(command_id)
            ledger.release(command_id)
            for report in ledger.results(command_id):
                await self._report_further(report, command_id)
            # The controller may decline it: what has to be reported is reported before.
            await self._controller.acknowledge(settled)

    async def settle_left(self) -> None:
        """Report and acknowledge the results of commands that no longer wait, and were not settled when they ended.

        The connection was lost right after the answer, the command was stopped, or it was reset.
        """
        # The stop of a command may be repeated while its results are reported.
        async with self._ledger.settling:
            for command_id in {kept_result.command_id: None for kept_result in self._ledger.unsettled()}:
                if command_id != self._ledger.current and not await self._reporter.is_awaited(command_id):
                    await self._surrender(command_id)

    async def _surrender(self, command_id: str) -> None:
        """Report the results of a command that does not take them; those that its answer holds change nothing."""
        answer = self._ledger.answer(command_id)
        self._ledger.release(command_id)
        if answer is not None and (reported := await self._controller.report_answer(command_id, answer)):
            self._controller.note_answered(command_id, reported)
            self._ledger.end(command_id)
            # All at once: without the connection they are acknowledged when the controller sends them again.
            for report in self._ledger.settle(reported):
                await self._controller.acknowledge_late(report)
        for report in self._ledger.results(command_id):
            if not await self._controller.is_stored(report, command_id):
                await self._report_further(report, command_id)
            else:
                await self._finish(report)

    async def _dismiss(self, report: ReportedResult, verdict: Verdict, *, is_new: bool) -> None:
        """Report a new result that no command waits for, then acknowledge it.

        After a restart, a result that may have been answered before is new if its command was given up meanwhile.
        """
        command_id = verdict.command_id
        was_given_up = not is_new and command_id is not None and await self._reporter.was_given_up(command_id)
        if not is_new and not was_given_up:
            return
        if command_id is None:
            await self._controller.report_own(report, verdict)
        elif was_given_up or not self._ledger.completes(report, command_id):
            # A part of a batch is not an answer: it would resolve an unknown outcome.
            await self._controller.keep(report, command_id)
        else:
            # With the results that came before it: together they are the answer, or each is late.
            self._ledger.keep(report, command_id)
            async with self._ledger.settling:
                await self._surrender(command_id)
            return
        await self._finish(report)

    async def _report_further(self, report: ReportedResult, command_id: str) -> None:
        """Keep a result as a late one of its command, then acknowledge it."""
        await self._controller.keep(report, command_id)
        await self._finish(report)

    async def _is_open(self, command_id: str) -> bool:
        # The answer of another gateway may be committed before this one ends its own work for the command.
        return command_id == self._ledger.current or await self._reporter.is_awaited(command_id)

    async def _finish(self, report: ReportedResult) -> None:
        for settled in self._ledger.settle([report]):
            await self._controller.acknowledge_late(settled)
