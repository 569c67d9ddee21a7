"""Intervenes in a run for the user of a command, and sends lost commands of a job again."""

import uuid
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from edge.cli.terminal.audit import authorize_command, record_as, recorded
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import SOURCE, open_access, print_json
from edge.cli.terminal.visiting_runs import visiting_runs
from edge.foundation.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.sfc.signal import Intervene, Resolve
from edge.station.intervene import InterventionRequest, intervene, names_of
from edge.station.job_call import CallAnswer
from edge.station.resend import resend
from edge.station.stored_job import find


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
