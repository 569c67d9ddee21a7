"""The results of a camera: results of waiting commands are kept, others are reported as late."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from edge.equipment.result_file import ResultFileReader
from edge.equipment.unclaimed import LateResults, OwnEvents
from edge.features.vision.conversion import (
    answer_data,
    id_of,
    is_completed,
    meas_id_of,
    offers_file,
    parse_result,
    raw_id,
)
from edge.features.vision.state import call_method, find_part
from edge.foundation.errors import Refused
from edge.links.opcua import ClientSession, Node
from edge.ports.result_trace import FILE_MEMBER
from edge.sfc.identifiers import parse_command_id
from edge.station.equipment import Command

VisionResult = Mapping[str, Any]
"""A ResultDataType of OPC 40100-1 in plain Python."""

_KEPT_LIMIT = 1000
_HANDLE_MS = 1000
# Results of one job that are read per call, and in all: a job may have many partial results before the complete one.
_PAGE = 10
_SEARCHED = 200

_log = structlog.get_logger(__name__)


class VisionResults:
    """The results received on one connection; `jobs` maps commands to JobIds.

    `kept` holds the results that commands wait for. `events` reports the results of no command.
    """

    def __init__(
        self,
        session: ClientSession,
        parts: Mapping[str, Node],
        jobs: Mapping[str, str],
        reporter: LateResults,
        events: OwnEvents,
        files: ResultFileReader | None = None,
    ) -> None:
        self.kept: dict[str, VisionResult] = {}
        self._started: tuple[str, str] = "", ""
        self.skipped = 0
        """The number of results since the last start that could not be read."""
        self.skip_reason = ""
        """Why the last of them could not be read, as the end of a sentence."""
        self._session = session
        self._parts = parts
        self._jobs = jobs
        self._reporter = reporter
        self._events = events
        self._files = files

    def expect(self, command: Command) -> None:
        """Record the command whose job is about to start."""
        # A camera may reuse a JobId: a kept result with this id belongs to an earlier job.
        self.kept.clear()
        self.skipped = 0
        self._started = command.command_id, meas_id_of(command)

    def may_be_of_work(self, raw: Mapping[str, Any]) -> bool:
        """Return whether data that are not a valid result may be that of the job that was started last."""
        is_named = raw_id(raw.get("JobId")) in {None, *self._jobs.values()}
        return bool(self._jobs) and is_named and raw_id(raw.get("MeasId")) in {None, self._started[1]}

    async def handle(self, result: VisionResult) -> None:
        """Keep a result that a command waits for; report any other result."""
        command_id = self._command_of(result)
        if command_id is None or not await self._reporter.is_awaited(command_id):
            await self._report(result, command_id)
            return
        self.kept[command_id] = result
        if len(self.kept) > _KEPT_LIMIT:
            del self.kept[next(iter(self.kept))]

    async def note_skipped(self, refusal: Refused, result_id: str = "") -> None:
        """Record a result that cannot be read, as one that exceeds the size limit of a message."""
        await self._reporter.skip(result_id, refusal)
        self.skipped += 1
        is_large = refusal.kind == "too_large"
        self.skip_reason = "exceeds max_message_bytes" if is_large else f"cannot be read ({refusal.message})"

    async def report_late(self, command: Command) -> None:
        """Report the result of a command that no longer waits for it, if the camera has one."""
        if (found := await self.find(command)) is not None:
            await self._report(found, command.command_id)

    async def _report(self, result: VisionResult, command_id: str | None) -> None:
        result_id, created = id_of(result, "ResultId") or "", result.get("CreationTime")
        if command_id is None and is_completed(result) and await self._report_own(result, result_id):
            return
        if is_completed(result):
            add_file = partial(self._add_file, command_id or "", result)
            await self._reporter.report_surely(result_id, created, command_id, answer_data(result), add_file)
        else:
            _log.info("incomplete result discarded", result=result_id, command=command_id)

    async def _add_file(self, command_id: str, result: VisionResult, data: dict[str, Any]) -> None:
        """Fetch the file of a late result, where the settings want it and the camera offers one."""
        if self._files is not None and await self.has_file(result, id_of(result, "MeasId") or command_id):
            data[FILE_MEMBER] = await self._files.read_late(command_id, {"Id": result["ResultId"]})

    async def _report_own(self, result: VisionResult, result_id: str) -> bool:
        """Report the result of a picture that another client has taken; return whether a job has used it."""
        try:
            result = await self.fetch_content(result)
        except Refused as refusal:
            _log.info("result without content", result=result_id, reason=refusal.message)
        return await self._events.report("result", answer_data(result), f"result {result_id}" if result_id else "")

    def _command_of(self, result: VisionResult) -> str | None:
        """Return the command id of a result, by its JobId or else its MeasId; None when it belongs to no command."""
        job_id, meas_id = id_of(result, "JobId"), id_of(result, "MeasId") or ""
        for command_id, job in self._jobs.items():
            if job_id and job == job_id:
                return command_id
        if parse_command_id(meas_id) is not None:
            return meas_id
        # A MeasId of the recipe counts where the start, or the result, has no JobId.
        command_id, expected = self._started
        has_no_job_id = not job_id or not self._jobs.get(command_id)
        return command_id if has_no_job_id and meas_id and meas_id == expected else None

    async def find(self, command: Command) -> VisionResult | None:
        """Fetch the result of a command that was started earlier; None when the camera has none or cannot search.

        A MeasId that the command names may be that of earlier jobs, too: only its JobId distinguishes them.
        """
        meas_id, job_id = meas_id_of(command), self._jobs.get(command.command_id)
        if meas_id == command.command_id:
            return await self._find(meas_id)
        return await self._find(meas_id, job_id) if job_id else None

    async def _find(self, meas_id: str, job_id: str | None = None) -> VisionResult | None:
        """Fetch the complete result with a MeasId, of a certain job where `job_id` names it."""
        results = self._parts.get("ResultManagement")
        if results is None or "GetResultListFiltered" not in await self._session.children(results):
            return None
        start, size = 0, _PAGE
        while start < _SEARCHED:
            try:
                is_complete, listed = await self._page(results, meas_id, start, size)
            except Refused as refusal:
                if refusal.kind == "too_large" and size > 1:
                    size = 1
                    continue
                # A camera may list the method without implementing it.
                return None
            mine = [entry for entry in listed if id_of(entry, "MeasId") == meas_id and not entry.get("IsPartial")]
            if (found := next((entry for entry in mine if job_id in {None, id_of(entry, "JobId")}), None)) is not None:
                return found
            if is_complete or not listed:
                return None
            start += len(listed)
        return None

    async def _page(self, results: Node, meas_id: str, start: int, size: int) -> tuple[bool, Sequence[VisionResult]]:
        """Return whether the list of the results of a job ends with this page, and the page; partial ones are in it."""
        nothing = (None,) * 7
        arguments = (0, {"Id": meas_id}, *nothing, size, start, _HANDLE_MS)
        match await call_method(self._session, results, "GetResultListFiltered", *arguments):
            case [bool() as is_complete, _count, handle, listed]:
                pass
            case [*_, handle, listed]:
                is_complete = True
            case _:
                return True, ()
        await self._release(results, handle)
        return is_complete, [parse_result(value) for value in listed or ()]

    async def fetch_content(self, result: VisionResult) -> VisionResult:
        """Return a result with its content, which its event may leave out."""
        if result.get("ResultContent") is not None:
            return result
        return await self._get(result)

    async def has_file(self, result: VisionResult, meas_id: str) -> bool:
        """Return whether the camera offers a file with a result, which its event does not say (OPC 40100-1)."""
        if "HasTransferableDataOnFile" not in result:
            try:
                result = await self._get(result)
            except Refused:
                result = await self._find(meas_id) or result
        return offers_file(result)

    async def _get(self, result: VisionResult) -> VisionResult:
        results = find_part(self._parts, "ResultManagement")
        match await call_method(self._session, results, "GetResultById", result["ResultId"], _HANDLE_MS):
            case [handle, Mapping() as fetched]:
                await self._release(results, handle)
                return parse_result({**result, **fetched})
            case _:
                raise Refused("device", "GetResultById: the camera does not return the result")

    async def _release(self, results: Node, handle: Any) -> None:
        if handle and "ReleaseResultHandle" in await self._session.children(results):
            await self._session.call(results, "ReleaseResultHandle", handle)
