"""How the results of an Open Protocol controller are reported, remembered and acknowledged when they are settled."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import structlog

from edge.equipment.remembered_text import RememberedText
from edge.equipment.result_ledger import ReportedResult, Verdict
from edge.equipment.unclaimed import LateResults
from edge.features.openprotocol.conversion import TighteningResult, batch_data, created_at, lacking, result_data
from edge.features.openprotocol.inbox import ResultInbox
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.protocol.session import OpenProtocolSession
from edge.features.openprotocol.reports import batch_of
from edge.features.openprotocol.state import ToolState
from edge.foundation.errors import Refused, Unavailable
from edge.model.cloudevent import new_id

OnOwn: TypeAlias = Callable[[TighteningResult, str], Awaitable[bool]]
"""Offers a result of the operator's own as an event with an occurrence; returns whether a job has used it."""

_log = structlog.get_logger(__name__)


class SettledTightenings:
    """The reports of a controller on one connection; as `SettledController`."""

    def __init__(
        self,
        session: OpenProtocolSession,
        state: ToolState,
        reporter: LateResults,
        memory: RememberedText,
        inbox: ResultInbox,
        acknowledgement: Mid,
        on_own: OnOwn,
    ) -> None:
        self._session = session
        self._state = state
        self._ledger = state.ledger
        self._reporter = reporter
        self._memory = memory
        self._inbox = inbox
        self._acknowledgement = acknowledgement
        self._on_own = on_own

    async def report_own(self, report: ReportedResult, verdict: Verdict) -> None:
        """Report a result that counts for no command: as an event of the operator's own, or as a late one."""
        occurrence = self._occurrence(report)
        if not await self._is_used(report, occurrence):
            named = report.result_id, created_at(report.payload), verdict.candidate, result_data(report.payload)
            await self._reporter.keep(*named, occurrence=occurrence, reason=verdict.reason)

    async def report_answer(self, command_id: str, answer: ReportedResult) -> Sequence[ReportedResult]:
        """Report all results of a command as its answer, if it is not stored; return them.

        Those of a batch that lacks others are not answer, and left.
        """
        reports, data = [answer], result_data(answer.payload)
        if self._ledger.classification(command_id) == "batch":
            reports = batch_of(self._ledger.results(command_id))
            results = [report.payload for report in reports]
            if lacking(results):
                return ()
            data = batch_data(results)
        last = reports[-1]
        await self._reporter.report(last.result_id, created_at(last.payload), command_id, data)
        return reports

    async def keep(self, report: ReportedResult, command_id: str) -> None:
        """Keep a result as a late one of its command."""
        data, created = result_data(report.payload), created_at(report.payload)
        await self._reporter.keep(report.result_id, created, command_id, data, occurrence=self._occurrence(report))

    async def is_stored(self, _report: ReportedResult, _command_id: str) -> bool:
        """Return False: a stored result of the same number may be another one, as numbers repeat."""
        return False

    def note_answered(self, command_id: str, reports: Sequence[ReportedResult]) -> None:
        """Remember nothing: no result of a tightening is within another one."""

    async def acknowledge(self, reports: Sequence[ReportedResult]) -> None:
        """Acknowledge the results of an answer; until then a restart knows that they were kept for its command."""
        await self.confirm(*reports)
        await self.write()

    async def acknowledge_late(self, report: ReportedResult) -> None:
        """Acknowledge a result; what survives a restart is written before."""
        await self.note(report, None)
        await self.confirm(report)

    async def note(self, report: ReportedResult, command_id: str | None) -> None:
        """Write a result as the last one; one with `command_id` is not durable yet."""
        self._state.note(report, command_id)
        await self.write()

    async def write(self) -> None:
        """Write what survives a restart."""
        await self._memory.write(self._state.memory)

    async def confirm(self, *reports: ReportedResult) -> None:
        """Acknowledge results that are durable; those in the inbox were confirmed at their receipt: they leave it."""
        keys = [reported_result.payload["kept"] for reported_result in reports if is_confirmed(reported_result)]
        is_removed = await self._is_removed(keys)
        for report in reports:
            if is_removed or not is_confirmed(report):
                self._state.confirm(report)
            if not is_confirmed(report) and self._ledger.owes(report):
                # From now on an equal frame can be a result of its own.
                self._ledger.acknowledge(report, asyncio.get_running_loop().time())
                await self._session.send(MidFrame(self._acknowledgement))

    async def _is_removed(self, keys: Sequence[str]) -> bool:
        """Remove results from the inbox; return False without the store, which the next write corrects."""
        try:
            if keys:
                await self._inbox.remove(*keys)
        except Unavailable as error:
            _log.info("settled results still in the inbox", reason=error.message)
            return False
        return True

    async def _is_used(self, report: ReportedResult, occurrence: str) -> bool:
        try:
            return await self._on_own(report.payload, occurrence)
        except Refused as refusal:
            _log.warning("event of a result refused", result=report.result_id, reason=refusal.message)
            return False

    def _occurrence(self, report: ReportedResult) -> str:
        """Return what distinguishes a result from others with its number and instant; empty where these do."""
        if report.sequence and report.instant is not None and not self._ledger.is_taken(report):
            return ""
        return new_id() if report.frame else "/".join(map(str, (*report.measured, report.payload.get("identifier"))))


def is_confirmed(report: ReportedResult) -> bool:
    """Return whether a result is in the inbox, and was confirmed at its receipt."""
    return "kept" in report.payload
