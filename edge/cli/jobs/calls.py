"""Calls a job method as a MES would, and intervenes in a run for the user of a command.

A command decides about runs but sends nothing: a gateway sends.
"""

import uuid
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from edge.access.mode import ModeWatch
from edge.cli.jobs.tables import state_text
from edge.cli.terminal.operator import authorize_command, operator_languages, record_as
from edge.cli.terminal.output import print_json, print_text, printable, usage_failure
from edge.cli.terminal.store_access import SOURCE, StoreAccess, read_json, store_command
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.isa95 import IdCall, JobOrder, LocalizedText, OrderCall, ReturnStatus, read_payload
from edge.model.job_state import METHODS, Cause, JobState, next_status
from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene, Resolve
from edge.station.clock import store_clock
from edge.station.decision import second_person
from edge.station.intervene import InterventionRequest, intervene, names_of
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import JobService
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


async def call_by_id(at: StoreAccess, method: Cause, job_id: str, comment: str | None) -> "MethodResult":
    """Call a method that names a stored job order, whatever its scope."""
    stored_job = await find(at.store, job_id)
    scope = stored_job.job.scope if stored_job else at.settings.gateway.scopes[0]
    return await _call(at, scope, method, IdCall(job_order_id=job_id, comment=_comment(comment)))


async def call_with_order(
    at: StoreAccess, method: Cause, order: JobOrder, scope: str | None, comment: str | None
) -> "MethodResult":
    """Call Store, StoreAndStart or Update with a job order."""
    return await _call(at, at.scope(scope), method, OrderCall(job_order=order, comment=_comment(comment)))


def read_order(file: Path) -> JobOrder:
    """Read a job order from a file; fail the command on another shape."""
    try:
        return read_payload(read_json(file), JobOrder)
    except msgspec.ValidationError as error:
        usage_failure(f"{file}: not a JobOrder in OPC UA spelling: {error}")


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
    by = Text.of("{user} at the command line", user=user)
    job_call = JobCall(scope, method, arguments, SOURCE, str(uuid.uuid4()), languages=operator_languages(), by=by)
    answer = await service.call(job_call)
    comment = " / ".join(localized_text.text or "" for localized_text in arguments.comment or ())
    await record_as(at, user, f"jobs {method}", job_id, str(answer.reason) or "Good", comment)
    stored_job = await find(at.store, job_id)
    return MethodResult(method, job_id, answer, stored_job.job if stored_job else None)


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
            reasons = self.answer.reason
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


async def decide(at: StoreAccess, job_id: str, signal: Resolve | Intervene) -> "RunDecision":
    """Apply the decision of the user who runs this command; the command fills in the name of the user."""
    action = f"jobs {decision_text(signal)}"
    subject = "/".join((job_id, *names_of(signal)))
    by = await authorize_command(at, action, subject)
    stored_job = await find(at.store, job_id)
    request = InterventionRequest(
        scope=stored_job.job.scope if stored_job else at.settings.gateway.scopes[0],
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
    await record_as(at, by, action, subject, str(answer.reason) or "Good", signal.reason)
    return RunDecision(job_id, signal, answer)


def decision_text(signal: Resolve | Intervene) -> str:
    """Return the name of a decision, such as `resolve done` or `skip`."""
    return f"resolve {signal.resolution.value}" if isinstance(signal, Resolve) else signal.kind.value


def parse_data(text: str | None) -> object:
    """Parse the result of an operator from JSON."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.UsageError(f"--data is not JSON: {error}") from None


class RunDecision(msgspec.Struct, frozen=True):
    """A decision of a person about a run, and the answer of the station."""

    job_id: str
    signal: Resolve | Intervene
    answer: CallAnswer

    def print(self, *, as_json: bool) -> None:
        """Print the answer; end with status 1 when the decision was refused."""
        is_done = self.answer.status is ReturnStatus.NO_ERROR
        is_waiting = self.answer.status is ReturnStatus.AWAITS_SECOND_PERSON
        if as_json:
            print_json(self._as_json(is_waiting=is_waiting))
            if not is_done and not is_waiting:
                raise SystemExit(1)
        elif is_done or is_waiting:
            print_text(f"job {printable(self.job_id)}: {self._text(is_waiting=is_waiting)}")
        else:
            raise Refused(
                "refused",
                self.answer.reason,
                Text.of("Look at the job: edge jobs why {job_id}", job_id=self.job_id),
            )

    def _text(self, *, is_waiting: bool) -> str:
        named = " → ".join(map(printable, names_of(self.signal)))
        word = decision_text(self.signal).partition(" ")[0]
        if is_waiting:
            return f"{word} of {named} waits: {self.answer.reasons[0]}"
        if isinstance(self.signal, Resolve):
            return f"action {named} resolved as {self.signal.resolution.value}"
        return f"{word} of {named} is carried out"

    def _as_json(self, *, is_waiting: bool) -> dict[str, object]:
        signal = self.signal
        head: dict[str, object] = {"job_order_id": self.job_id, "action": signal.action}
        if isinstance(signal, Resolve):
            facts: dict[str, object] = {"resolution": signal.resolution.value}
        else:
            facts = {"intervention": signal.kind.value, "step": signal.step, "target": signal.target}
        return head | facts | {"awaits_second": is_waiting, "reasons": list(self.answer.reasons)}


reason_option = click.option("--reason", required=True, help="What was seen; it stays with the job.")
_step_option = click.option("--step", default="", help="The step of the action, where it stands in several.")


@click.command("retry", epilog="Example: edge jobs retry AXLE-0001 tighten --reason 'bit replaced'")
@click.argument("job")
@click.argument("action")
@_step_option
@reason_option
@store_command
async def retry_(at: StoreAccess, job: str, action: str, step: str, reason: str) -> RunDecision:
    """Start an action again that failed, timed out, or whose outcome is unknown.

    The recipe must allow it: `"interventions": ["retry"]`. The new attempt has a new command id.
    """
    return await decide(at, job, Intervene(kind=Intervention.RETRY, action=action, step=step, reason=reason))


@click.command("skip", epilog="Example: edge jobs skip AXLE-0001 tighten --data '{\"torque\": 85}' --reason 'by hand'")
@click.argument("job")
@click.argument("action")
@_step_option
@click.option(
    "--data", help="The result of the action, as JSON.", callback=lambda _context, _option, text: parse_data(text)
)
@reason_option
@store_command
async def skip_(at: StoreAccess, job: str, action: str, step: str, data: object, reason: str) -> RunDecision:
    """Complete an action in place of its equipment.

    The recipe must allow it: `"interventions": ["skip"]`. A command without answer is stopped.
    """
    signal = Intervene(kind=Intervention.SKIP, action=action, step=step, data=data, reason=reason)
    return await decide(at, job, signal)


@click.command("force", epilog="Example: edge jobs force AXLE-0001 Load Tighten --reason 'sensor defect'")
@click.argument("job")
@click.argument("step")
@click.argument("target")
@reason_option
@store_command
async def force_(at: StoreAccess, job: str, step: str, target: str, reason: str) -> RunDecision:
    """Clear the transition from an active STEP to the step TARGET, whatever its condition says.

    The recipe must allow it: `"interventions": ["force"]`. The open actions of the step end as when it is left.
    """
    return await decide(at, job, Intervene(kind=Intervention.FORCE, step=step, target=target, reason=reason))


@click.command("complete", epilog="Example: edge jobs complete AXLE-0001 Load --reason 'part is in place'")
@click.argument("job")
@click.argument("step")
@reason_option
@store_command
async def complete_(at: StoreAccess, job: str, step: str, reason: str) -> RunDecision:
    """Complete an active STEP: its open actions end, and its transitions are tested.

    The recipe must allow it: `"interventions": ["complete"]`.
    """
    return await decide(at, job, Intervene(kind=Intervention.COMPLETE, step=step, reason=reason))
