"""Reports the joinings that no command waits for: the operator's own, late ones, second ones of a command."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from edge.equipment.result_ledger import ReportedResult, ResultLedger, Verdict
from edge.equipment.unclaimed import LateResults
from edge.features.joining.conversion import is_result, measured_values, result_data, was_aborted
from edge.features.joining.schema import Result

OnOwn: TypeAlias = Callable[[Result, str], Awaitable[bool]]
"""Offers a joining of the operator's own as an event with an occurrence; returns whether a job has used it."""

AddLateFiles: TypeAlias = Callable[[str, Result, dict[str, Any]], Awaitable[None]]
"""Adds the files of a late result of a command to its data."""


class LateJoinings(Struct, frozen=True):
    """Reports joinings to the station, with their files. An aborted joining is not reported."""

    reporter: LateResults
    ledger: ResultLedger
    on_own: OnOwn
    add_files: AddLateFiles

    async def report_own(self, report: ReportedResult, verdict: Verdict) -> None:
        """Report a joining of no command, with the reason where it is known; raises Unavailable without the store."""
        result, occurrence = report.payload, self._occurrence(report)
        if was_aborted(result) or await self.on_own(result, occurrence):
            return
        created, add = result["ResultMetaData"].get("CreationTime"), self._adder(result, None)
        named = report.result_id, created, verdict.candidate, result_data(result)
        await self.reporter.keep(*named, add, occurrence, verdict.reason)

    async def report(self, report: ReportedResult, command_id: str) -> bool:
        """Report a joining of a command; return False for one that was stored already.

        Raises Unavailable without the store.
        """
        if was_aborted(report.payload):
            return True
        result, occurrence = await self._unreported(report.payload, command_id), self._occurrence(report)
        created, add = result["ResultMetaData"].get("CreationTime"), self._adder(result, command_id)
        return await self.reporter.report(report.result_id, created, command_id, result_data(result), add, occurrence)

    async def keep(self, report: ReportedResult, command_id: str) -> None:
        """Keep a joining as late that a command does not wait for; raises Unavailable without the store."""
        if not was_aborted(report.payload):
            result = await self._unreported(report.payload, command_id)
            created, add = result["ResultMetaData"].get("CreationTime"), self._adder(result, command_id)
            occurrence = self._occurrence(report)
            await self.reporter.keep(report.result_id, created, command_id, result_data(result), add, occurrence)

    async def _unreported(self, result: Result, command_id: str) -> Result:
        """Return a joining without those within it that its command has already: a batch ends after its joinings."""
        contents = []
        for content in result.get("ResultContent") or ():
            if not is_result(content):
                contents.append(content)
            elif not await self.reporter.is_stored(command_id, content["ResultMetaData"]["ResultId"]):
                contents.append(await self._unreported(content, command_id))
        return {**result, "ResultContent": contents}

    def _adder(self, result: Result, command_id: str | None) -> Callable[[Any], Awaitable[None]]:
        return partial(self.add_files, command_id or "", result)

    def _occurrence(self, report: ReportedResult) -> str:
        """Return what distinguishes a joining whose id and time another one had; empty where none had."""
        is_taken = self.ledger.is_taken(report)
        return "/".join(map(str, (report.sequence, *measured_values(report.payload)))) if is_taken else ""
