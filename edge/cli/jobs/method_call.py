"""Calls a job method as a MES would, and prints the answer of the station."""

import uuid
from pathlib import Path
from typing import TypeVar

import msgspec

from edge.access.mode import ModeWatch
from edge.cli.jobs.table import state_text
from edge.cli.terminal.audit import authorize_command, record_as
from edge.cli.terminal.operator import operator_languages
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import SOURCE, StoreAccess, open_access, print_json, read_json, usage_failure
from edge.cli.terminal.visiting_runs import visiting_runs
from edge.foundation.instant import now_ms
from edge.model.isa95 import IdCall, JobOrder, LocalizedText, OrderCall, ReturnStatus, read_payload
from edge.model.job_state import METHODS, Cause, JobState, next_status
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import JobService
from edge.station.retention import retention_policy
from edge.station.stored_job import find
from edge.store.jobs import Job

COMMANDS = {
    "start": Cause.START,
    "revoke": Cause.REVOKE_START,
    "pause": Cause.PAUSE,
    "resume": Cause.RESUME,
    "stop": Cause.STOP,
    "abort": Cause.ABORT,
    "cancel": Cause.CANCEL,
    "clear": Cause.CLEAR,
    "update": Cause.UPDATE,
}
"""Command -> job method it calls on a stored job order."""

_T = TypeVar("_T")


async def call_by_id(settings_file: Path | None, method: Cause, job_id: str, comment: str | None) -> "MethodResult":
    """Call a method that names a stored job order, whatever its scope."""
    async with open_access(settings_file) as at:
        found = await find(at.store, job_id)
        scope = found.job.scope if found else at.settings.gateway.scopes[0]
        return await _call(at, scope, method, IdCall(job_order_id=job_id, comment=_comment(comment)))


async def call_with_order(
    settings_file: Path | None, method: Cause, file: Path, scope: str | None, comment: str | None
) -> "MethodResult":
    """Call Store, StoreAndStart or Update with the job order in a file."""
    order = read_as(JobOrder, file, read_json(file))
    async with open_access(settings_file) as at:
        return await _call(at, at.scope(scope), method, OrderCall(job_order=order, comment=_comment(comment)))


def read_as(kind: type[_T], file: Path, data: object) -> _T:
    """Convert the content of a file to a data type of the model; fail the command on another shape."""
    try:
        return read_payload(data, kind)
    except msgspec.ValidationError as error:
        usage_failure(f"{file}: not a {kind.__name__} in OPC UA spelling: {error}")


def _comment(text: str | None) -> tuple[LocalizedText, ...] | None:
    return (LocalizedText(text=text),) if text else None


async def _call(at: StoreAccess, scope: str, method: Cause, arguments: OrderCall | IdCall) -> "MethodResult":
    retention = at.settings.retention
    job_id = arguments.job_order.job_order_id if isinstance(arguments, OrderCall) else arguments.job_order_id
    user = await authorize_command(at, f"jobs {method}", job_id)
    mode = ModeWatch(at.store, at.settings.gateway.name)
    await mode.refresh()
    service = JobService(
        at.store,
        await visiting_runs(at),
        at.settings.northbound.max_downloadable_job_orders,
        retention.dedupe * 1000,
        wall=now_ms,
        max_undelivered=retention_policy(at.settings).refuses_beyond,
        mode=mode,
    )
    by = f"{user} at the command line"
    asked = JobCall(scope, method, arguments, SOURCE, str(uuid.uuid4()), languages=operator_languages(), by=by)
    answer = await service.call(asked)
    comment = " / ".join(localized_text.text or "" for localized_text in arguments.comment or ())
    await record_as(at, user, f"jobs {method}", job_id, "; ".join(answer.reasons) or "Good", comment)
    found = await find(at.store, job_id)
    return MethodResult(method, job_id, answer, found.job if found else None)


class MethodResult(msgspec.Struct, frozen=True):
    """The answer to a call, and the job right after it; None when there is no job."""

    method: Cause
    job_id: str
    answer: CallAnswer
    job: Job | None

    def print(self, *, as_json: bool) -> None:
        """Print the answer; exit with status 1 on a refusal."""
        done = self.answer.status is ReturnStatus.NO_ERROR
        if as_json:
            print_json(self._as_json())
        elif done:
            print_text(f"{printable(self.job_id)}: {state_text(self.job.status) if self.job else 'removed'}")
        else:
            reasons = "; ".join(self.answer.reasons)
            refused = f"{self.method} of {self.job_id!r} is refused"
            print_text(f"edge: {refused}: {self.answer.status.words}: {reasons}", err=True)
            print_text(f"edge: {self._advice()}", err=True)
        if not done:
            raise SystemExit(1)

    def _as_json(self) -> dict[str, object]:
        return {
            "job_order_id": self.job_id,
            "method": self.method,
            "return_status": self.answer.status.value,
            "meaning": self.answer.status.name,
            "reasons": self.answer.reasons,
            "state": state_text(self.job.status) if self.job else None,
        }

    def _advice(self) -> str:
        match self.answer.status:
            case ReturnStatus.UNKNOWN_JOB_ORDER_ID:
                return "Find its id: edge jobs list"
            case ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER:
                return "Check what the station accepts: edge station show, edge station set, edge maintenance show"
            case ReturnStatus.INVALID_JOB_ORDER_STATUS if self.job:
                accepted = ", ".join(commands_in(self.job.status.state))
                return f"It is {state_text(self.job.status)}; in this state it accepts: {accepted}"
            case _:
                return "Correct the job order."


def commands_in(state: JobState) -> list[str]:
    """Return the commands that a job accepts in a state."""
    allowed = {method for method in METHODS if next_status(state, method) is not None}
    return [name for name, method in COMMANDS.items() if method in allowed]
