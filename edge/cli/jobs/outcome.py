"""Resolves an action of unknown outcome, and sends lost commands of a job again."""

import uuid
from pathlib import Path

import click
import msgspec

from edge.cli.jobs.stored_job import find
from edge.cli.terminal.audit import authorize_command, record_as, recorded
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import SOURCE, open_access, print_json
from edge.cli.terminal.visiting_runs import visiting_runs
from edge.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.sfc.signal import Resolution
from edge.station.jobs import CallAnswer
from edge.station.resolve import ResolveRequest, resend, resolve


async def resolve_action(
    settings_file: Path | None, job_id: str, action: str, resolution: Resolution, data: object, reason: str
) -> CallAnswer:
    """Apply the decision of the user who runs this command."""
    async with open_access(settings_file) as at:
        by = await authorize_command(at, f"jobs resolve {resolution.value}", f"{job_id}/{action}")
        found = await find(at.store, job_id)
        retention = at.settings.retention
        request = ResolveRequest(
            scope=found.job.scope if found else at.settings.gateway.scopes[0],
            job_id=job_id,
            action=action,
            resolution=resolution,
            by=by,
            reason=reason,
            data=data,
            source=SOURCE,
            event_id=str(uuid.uuid4()),
        )
        answer = await resolve(await visiting_runs(at), request, retention.dedupe * 1000)
        status = "; ".join(answer.reasons) or "Good"
        await record_as(at, by, f"jobs resolve {resolution.value}", f"{job_id}/{action}", status, reason)
        return answer


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


def print_answer(job_id: str, action: str, resolution: Resolution, answer: CallAnswer, *, as_json: bool) -> None:
    """Print the answer; end with status 1 when the decision was refused."""
    done = answer.status is ReturnStatus.NO_ERROR
    if as_json:
        print_json({"job": job_id, "action": action, "resolution": resolution.value, "reasons": list(answer.reasons)})
    elif done:
        print_text(f"job {printable(job_id)}: action {printable(action)} resolved as {resolution.value}")
    if not done and not as_json:
        raise Refused("refused", "; ".join(answer.reasons), f"Look at the job: edge jobs why {job_id}")
    if not done:
        raise SystemExit(1)
