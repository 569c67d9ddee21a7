"""`edge maintenance`: keeps work from starting while people work at a plant, and says why."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from msgspec.structs import replace

from edge.access.localization import BUILT_IN, KEY, localize
from edge.access.mode import ModeRequest, SwitchOff, SwitchOn, switch_mode
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import (
    authorize_command,
    copy_to_journal,
    operator_languages,
    operator_name,
    record_as,
    record_of,
    recorded,
)
from edge.cli.terminal.output import counted, usage_failure
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import local_time
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.model.instant import milliseconds
from edge.model.job_state import JobState
from edge.model.plant import UPGRADE, UPGRADE_MESSAGE, Maintenance, MaintenanceKind, public_maintenance
from edge.store import jobs, runs
from edge.store.mode import load, load_texts, save_texts

_LOOK_AGAIN_S = 0.5
_MOST_NAMED = 5

_gateway_option = click.option("--gateway", default="", help="This gateway only. [default: every gateway on the store]")


@click.group(cls=CommandGroup)
def maintenance() -> None:
    """Keep work from starting while people work at a plant.

    These commands work on the store of the settings, whether or not a gateway runs. The exit status is 0 on success, 1
    when the request is refused or the store is unavailable, and 2 when settings or arguments are invalid.
    """


@maintenance.command(epilog='Example: edge maintenance on --message "New cable at cell 2" --until 18:00')
@click.option(
    "--message",
    default="",
    help="What callers are answered; {$Name} in it is a localised text. [default: of the product]",
)
@click.option("--until", help="When it is expected to end: HH:MM of this machine's time, or ISO 8601.")
@click.option("--drain", "now", flag_value=False, default=False, help="Running jobs end. [default]", type=bool)
@click.option("--now", "now", flag_value=True, help="Running jobs are paused.", type=bool)
@click.option("--wait", "wait_s", type=click.FloatRange(0), help="Wait at most so many seconds for running jobs.")
@click.option(
    "--upgrade",
    is_flag=True,
    help="For the package: this gateway only, until its next start; `[maintenance] drain_before_upgrade` has the wait.",
)
@_gateway_option
@settings_option
@json_option
def on(
    message: str,
    until: str | None,
    wait_s: float | None,
    gateway: str,
    settings_file: Path | None,
    *,
    now: bool,
    upgrade: bool,
    as_json: bool,
) -> None:
    """Switch the maintenance mode on, or change its message and end.

    Jobs, flows and alarms: calls that start work are refused with the message, jobs that may start wait, flows wait,
    and alarms are suppressed where `[maintenance] suppress_alarms` names their rules. The end is announced only:
    `edge maintenance off` ends the mode. With --wait the exit status is 1 when jobs still run at the end of that time.
    """
    if upgrade:
        output = run_on_store(settings_file, _drain_for_upgrade)
    else:
        ends = None if until is None else _instant(until, now_ms())
        request = SwitchOn("", MaintenanceKind.NOW if now else MaintenanceKind.DRAIN, message, ends)
        output = run_on_store(settings_file, lambda at: _switch(at, gateway, request, wait_s))
    if output:
        output.print(as_json=as_json)


@maintenance.command(epilog="Example: edge maintenance off")
@_gateway_option
@store_command
async def off(at: StoreAccess, gateway: str) -> CommandOutput:
    """Switch the maintenance mode off.

    Jobs that wait start, flows continue, alarms are shown again. Jobs that --now paused stay paused: resume them with
    `edge jobs resume` when the plant is safe.
    """
    return await _switch(at, gateway, SwitchOff())


@maintenance.command(epilog="Example: edge maintenance show")
@store_command
async def show(at: StoreAccess) -> CommandOutput:
    """Show the maintenance mode and the jobs that still run."""
    return await _state(at)


@maintenance.command(epilog='Example: edge maintenance text de:CellTwo "Zelle 2 wird umgebaut."')
@click.argument("name", required=False)
@click.argument("text", required=False)
@click.option("--delete", is_flag=True, help="Delete it instead.")
@settings_option
@json_option
def text(name: str | None, text: str | None, settings_file: Path | None, *, delete: bool, as_json: bool) -> None:
    """Show the localised texts of messages, or set one.

    NAME is `[lang:]Name`; without a language the text is for every reader whose language has none. A message refers to
    it as {$Name}.
    """
    if name is not None and not KEY.fullmatch(name):
        usage_failure(f"{name!r} is not a name of a text: expected [lang:]Name, as in de:CellTwo")
    if name is not None and (text is None) is not delete:
        usage_failure("name a text and its content, or a text and --delete")

    async def apply(at: StoreAccess) -> CommandOutput:
        if name is not None:
            async with recorded(at, "maintenance text", name, text or "deleted"):
                await at.store.commit(save_texts(at.store.keys, {name: text}))
        texts = {**BUILT_IN, **await load_texts(at.store)}
        done = f"{name}: {'deleted' if delete else 'set'}"
        return CommandOutput(texts, done if name else "\n".join(f"{word}: {texts[word]}" for word in sorted(texts)))

    run_on_store(settings_file, apply).print(as_json=as_json)


async def _drain_for_upgrade(at: StoreAccess) -> CommandOutput | None:
    """Drain this gateway for an upgrade, unless the settings do not ask for it."""
    wait_s = at.settings.maintenance.drain_before_upgrade
    request = SwitchOn(UPGRADE, message=UPGRADE_MESSAGE)
    return await _switch(at, at.settings.gateway.name, request, wait_s) if wait_s else None


async def _switch(at: StoreAccess, gateway: str, request: ModeRequest, wait_s: float | None = None) -> CommandOutput:
    action = f"maintenance {'on' if isinstance(request, SwitchOn) else 'off'}"
    message = request.message if isinstance(request, SwitchOn) else ""
    subject = gateway or "*"
    user = await _user_of(at, request, action, subject)
    if isinstance(request, SwitchOn):
        request = replace(request, by=request.by or user)
    record = record_of(at, user, action, subject, "Good", message)
    try:
        await switch_mode(at.store, gateway, request, record, now_ms, at.settings.retention.audit)
    except Refused as refusal:
        await record_as(at, user, action, subject, refusal.message, message)
        raise
    copy_to_journal(record)
    is_drained = wait_s is None or await _wait_for_jobs(at, wait_s)
    return replace(await _state(at), is_failed=not is_drained)


async def _user_of(at: StoreAccess, request: ModeRequest, action: str, subject: str) -> str:
    """Return the user that switches the mode; an upgrade of the package needs no login."""
    if isinstance(request, SwitchOn) and request.by == UPGRADE:
        return operator_name()
    return await authorize_command(at, action, subject)


async def _wait_for_jobs(at: StoreAccess, within_s: float) -> bool:
    """Wait until no job runs; return False when one still runs after that time."""
    until = time.monotonic() + within_s
    while await _running(at):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(_LOOK_AGAIN_S)
    return True


async def _running(at: StoreAccess) -> list[str]:
    """Return the jobs that run; those that are paused wait for a person and count as ended."""
    loaded = [await jobs.load(at.store, job_id) for job_id in await runs.active_jobs(at.store)]
    return sorted(job.job_id for job in loaded if job and job.status.state is JobState.RUNNING)


async def _state(at: StoreAccess) -> CommandOutput:
    """Return the modes with the jobs that still run."""
    modes = await load(at.store, at.settings.gateway.name)
    texts = await load_texts(at.store)
    running = await _running(at)
    places = {"*": modes.store, at.settings.gateway.name: modes.gateway}
    messages = {place: localize(mode.message, texts, operator_languages()) for place, mode in places.items() if mode}
    data = {place: public_maintenance(mode, messages[place]) for place, mode in places.items() if mode}
    lines = [_line(place, mode, messages[place]) for place, mode in places.items() if mode]
    if running:
        named = ", ".join(running[:_MOST_NAMED]) + (" …" if len(running) > _MOST_NAMED else "")
        lines.append(f"{counted(len(running), 'running job')}: {named}")
    if not messages:
        lines.insert(0, "maintenance is off")
    return CommandOutput({"on": bool(data), "modes": data, "running_jobs": running}, "\n".join(lines))


def _line(place: str, mode: Maintenance, message: str) -> str:
    where = "every gateway" if place == "*" else f"gateway {place}"
    doing = "running jobs are paused" if mode.kind is MaintenanceKind.NOW else "running jobs end"
    since = f", since {local_time(mode.since)}" if mode.since else ""
    until = "" if mode.until is None else f", until {local_time(mode.until)}"
    by = f", by {mode.by}" if mode.by else ""
    return f"maintenance is on for {where}{since}{until}{by}: {doing}\n  {message}"


def _instant(text: str, now: int) -> int:
    """Return an instant in milliseconds since the epoch: the next HH:MM of local time, or ISO 8601."""
    here = datetime.fromtimestamp(now / 1000, UTC).astimezone()
    try:
        if len(text) <= len("HH:MM"):
            at = datetime.strptime(text, "%H:%M").replace(tzinfo=here.tzinfo)
            named = here.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
            named += timedelta(days=named <= here)
        else:
            named = datetime.fromisoformat(text)
            named = named if named.tzinfo else named.replace(tzinfo=here.tzinfo)
    except ValueError:
        usage_failure(f"--until {text!r} is not an instant: expected HH:MM or ISO 8601, as in 2027-01-31T18:00")
    return milliseconds(named)
