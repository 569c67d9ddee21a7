"""Calls a job method as a MES would, and intervenes in a run for the user of a command.

A command decides about runs but sends nothing: a gateway sends.
"""

import asyncio
import uuid
from pathlib import Path
from typing import TypeVar

import click
import msgspec
from msgspec.structs import replace

from edge.access.mode import ModeWatch
from edge.cli.jobs.report import state_text
from edge.cli.terminal.operator import authorize_command, operator_languages, record_as, recorded
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import (
    SOURCE,
    StoreAccess,
    json_option,
    open_access,
    print_json,
    read_json,
    settings_option,
    usage_failure,
)
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.model.isa95 import IdCall, JobOrder, LocalizedText, OrderCall, ReturnStatus, read_payload
from edge.model.job_state import METHODS, Cause, JobState, next_status
from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene, Resolve
from edge.station.clock import store_clock
from edge.station.decision import second_person
from edge.station.intervene import InterventionRequest, intervene, names_of
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import JobService
from edge.station.manual_retry import resend
from edge.station.retention import retention_policy
from edge.station.runs import Runs
from edge.station.stored_job import find
from edge.store.jobs import Job


async def visiting_runs(at: StoreAccess) -> Runs:
    """Return the run service for one command, with the gateway's settings; its clock is that of the store's host."""
    keep, users = at.settings.retention, at.settings.users
    return Runs(
        at.store,
        await store_clock(at.store),
        keep.ended_jobs * 1000,
        most_decisions=keep.decisions,
        second_person=second_person(users),
    )


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


async def decide(settings_file: Path | None, job_id: str, signal: Resolve | Intervene) -> CallAnswer:
    """Apply the decision of the user who runs this command; the command fills in the name of the user."""
    action = f"jobs {decision_text(signal)}"
    subject = "/".join((job_id, *names_of(signal)))
    async with open_access(settings_file) as at:
        by = await authorize_command(at, action, subject)
        found = await find(at.store, job_id)
        request = InterventionRequest(
            scope=found.job.scope if found else at.settings.gateway.scopes[0],
            job_id=job_id,
            signal=replace(signal, by=by),
            source=SOURCE,
            event_id=str(uuid.uuid4()),
            has_login=True,
        )
        try:
            answer = await intervene(await visiting_runs(at), request, at.settings.retention.dedupe * 1000)
        except Refused as refusal:
            await record_as(at, by, action, subject, refusal.message, signal.reason)
            raise
        await record_as(at, by, action, subject, "; ".join(answer.reasons) or "Good", signal.reason)
        return answer


def decision_text(signal: Resolve | Intervene) -> str:
    """Return the name of a decision, such as `resolve done` or `skip`."""
    return f"resolve {signal.resolution.value}" if isinstance(signal, Resolve) else signal.kind.value


async def resend_commands(settings_file: Path | None, job_id: str) -> int:
    """Queue the commands of a job that have no answer to be sent again."""
    async with open_access(settings_file) as at, recorded(at, "jobs resend", job_id):
        return await resend(await visiting_runs(at), job_id)


def parse_data(text: str | None) -> object:
    """Parse the result of an operator from JSON."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.UsageError(f"--data is not JSON: {error}") from None


def print_answer(job_id: str, signal: Resolve | Intervene, answer: CallAnswer, *, as_json: bool) -> None:
    """Print the answer; end with status 1 when the decision was refused."""
    done, waits = answer.status is ReturnStatus.NO_ERROR, answer.status is ReturnStatus.AWAITS_SECOND_PERSON
    named = " → ".join(map(printable, names_of(signal)))
    if as_json:
        print_json(_as_json(job_id, signal, answer))
    elif waits:
        print_text(f"job {printable(job_id)}: {signal_word(signal)} of {named} waits: {answer.reasons[0]}")
    elif isinstance(signal, Resolve) and done:
        print_text(f"job {printable(job_id)}: action {named} resolved as {signal.resolution.value}")
    elif done:
        print_text(f"job {printable(job_id)}: {signal_word(signal)} of {named} is carried out")
    else:
        raise Refused("refused", "; ".join(answer.reasons), f"Look at the job: edge jobs why {job_id}")
    if not done and not waits:
        raise SystemExit(1)


def signal_word(signal: Resolve | Intervene) -> str:
    """Return the one word for a decision."""
    return decision_text(signal).partition(" ")[0]


def _as_json(job_id: str, signal: Resolve | Intervene, answer: CallAnswer) -> dict[str, object]:
    head: dict[str, object] = {"job": job_id, "action": signal.action}
    waits = answer.status is ReturnStatus.AWAITS_SECOND_PERSON
    if isinstance(signal, Resolve):
        return head | {
            "resolution": signal.resolution.value,
            "waits_for_second": waits,
            "reasons": list(answer.reasons),
        }
    facts = {"intervention": signal.kind.value, "step": signal.step, "target": signal.target}
    return head | facts | {"waits_for_second": waits, "reasons": list(answer.reasons)}


_reason_option = click.option("--reason", required=True, help="What was seen; it stays with the job.")
_step_option = click.option("--step", default="", help="The step of the action, where it stands in several.")


def _intervene(settings_file: Path | None, job: str, *, as_json: bool, **members: object) -> None:

    signal = Intervene(**members)  # type: ignore[arg-type]
    print_answer(job, signal, asyncio.run(decide(settings_file, job, signal)), as_json=as_json)


@click.command("retry", epilog="Example: edge jobs retry AXLE-0001 tighten --reason 'bit replaced'")
@click.argument("job")
@click.argument("action")
@_step_option
@_reason_option
@settings_option
@json_option
def retry_(job: str, action: str, step: str, reason: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Start an action again that failed, timed out, or whose outcome is unknown.

    The recipe must allow it: `"interventions": ["retry"]`. The new attempt has a new command id.
    """
    _intervene(settings_file, job, as_json=as_json, kind=Intervention.RETRY, action=action, step=step, reason=reason)


@click.command("skip", epilog="Example: edge jobs skip AXLE-0001 tighten --data '{\"torque\": 85}' --reason 'by hand'")
@click.argument("job")
@click.argument("action")
@_step_option
@click.option("--data", help="The result of the action, as JSON.")
@_reason_option
@settings_option
@json_option
def skip_(
    job: str, action: str, step: str, data: str | None, reason: str, settings_file: Path | None, *, as_json: bool
) -> None:
    """Complete an action in place of its equipment.

    The recipe must allow it: `"interventions": ["skip"]`. A command without answer is stopped.
    """
    members = {"action": action, "step": step, "data": parse_data(data), "reason": reason}
    _intervene(settings_file, job, as_json=as_json, kind=Intervention.SKIP, **members)


@click.command("force", epilog="Example: edge jobs force AXLE-0001 Load Tighten --reason 'sensor defect'")
@click.argument("job")
@click.argument("step")
@click.argument("target")
@_reason_option
@settings_option
@json_option
def force_(job: str, step: str, target: str, reason: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Clear the transition from an active STEP to the step TARGET, whatever its condition says.

    The recipe must allow it: `"interventions": ["force"]`. The open actions of the step end as when it is left.
    """
    _intervene(settings_file, job, as_json=as_json, kind=Intervention.FORCE, step=step, target=target, reason=reason)


@click.command("complete", epilog="Example: edge jobs complete AXLE-0001 Load --reason 'part is in place'")
@click.argument("job")
@click.argument("step")
@_reason_option
@settings_option
@json_option
def complete_(job: str, step: str, reason: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Complete an active STEP: its open actions end, and its transitions are tested.

    The recipe must allow it: `"interventions": ["complete"]`.
    """
    _intervene(settings_file, job, as_json=as_json, kind=Intervention.COMPLETE, step=step, reason=reason)
