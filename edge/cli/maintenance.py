"""`edge maintenance`: keeps work from starting while people work at a plant, and says why."""

import asyncio
import time
from collections.abc import Callable, Mapping
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
from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import StoreAccess, json_option, open_access, settings_option
from edge.cli.terminal.table import local_time, utc_time
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.model.instant import milliseconds
from edge.model.job_state import JobState
from edge.model.plant import UPGRADE, UPGRADE_MESSAGE, Maintenance, MaintenanceKind
from edge.store import jobs, runs
from edge.store.mode import load, load_texts, save_texts

_LOOK_AGAIN_S = 0.5

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
        raise SystemExit(asyncio.run(_drain_for_upgrade(settings_file, as_json=as_json)))
    ends = None if until is None else _instant(until, now_ms())
    kind = MaintenanceKind.NOW if now else MaintenanceKind.DRAIN
    request = SwitchOn("", kind, message, ends)
    raise SystemExit(asyncio.run(_switch(settings_file, gateway, request, as_json=as_json, wait_s=wait_s)))


@maintenance.command(epilog="Example: edge maintenance off")
@_gateway_option
@settings_option
@json_option
def off(gateway: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Switch the maintenance mode off.

    Jobs that wait start, flows continue, alarms are shown again. Jobs that --now paused stay paused: resume them with
    `edge jobs resume` when the plant is safe.
    """
    raise SystemExit(asyncio.run(_switch(settings_file, gateway, SwitchOff(), as_json=as_json)))


@maintenance.command(epilog="Example: edge maintenance show")
@settings_option
@json_option
def show(settings_file: Path | None, *, as_json: bool) -> None:
    """Show the maintenance mode and the jobs that still run."""

    async def read() -> None:
        async with open_access(settings_file) as at:
            await _print(at, as_json=as_json)

    asyncio.run(read())


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

    async def apply() -> dict[str, str]:

        async with open_access(settings_file) as at:
            if name is not None:
                async with recorded(at, "maintenance text", name, text or "deleted"):
                    await at.store.commit(save_texts(at.store.keys, {name: text}))
            return {**BUILT_IN, **await load_texts(at.store)}

    texts = asyncio.run(apply())
    if as_json:
        print_json(texts)
    elif name is None:
        print_text("\n".join(f"{word}: {texts[word]}" for word in sorted(texts)))
    else:
        print_text(f"{name}: {'deleted' if delete else 'set'}")


async def _drain_for_upgrade(settings_file: Path | None, *, as_json: bool) -> int:
    """Drain this gateway for an upgrade, unless the settings do not ask for it."""
    async with open_access(settings_file) as at:
        gateway, wait_s = at.settings.gateway.name, at.settings.maintenance.drain_before_upgrade
    if not wait_s:
        return 0
    request = SwitchOn(UPGRADE, message=UPGRADE_MESSAGE)
    return await _switch(settings_file, gateway, request, as_json=as_json, wait_s=wait_s)


async def _switch(
    settings_file: Path | None, gateway: str, request: ModeRequest, *, as_json: bool, wait_s: float | None = None
) -> int:

    action = f"maintenance {'on' if isinstance(request, SwitchOn) else 'off'}"
    message = request.message if isinstance(request, SwitchOn) else ""
    async with open_access(settings_file) as at:
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
        await _print(at, as_json=as_json)
        return 0 if is_drained else 1


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


async def _print(at: StoreAccess, *, as_json: bool) -> None:

    found = await load(at.store, at.settings.gateway.name)
    texts = await load_texts(at.store)
    running = await _running(at)
    localized = _localizer(texts)
    modes = {"*": found.store, at.settings.gateway.name: found.gateway}
    if as_json:
        shown = {place: _as_data(mode, localized) for place, mode in modes.items() if mode}
        print_json({"on": bool(shown), "modes": shown, "running_jobs": running})
        return
    lines = [_line(place, mode, localized) for place, mode in modes.items() if mode] or ["maintenance is off"]
    if running:
        lines.append(f"{len(running)} jobs run: {', '.join(running[:5])}{' …' if len(running) > 5 else ''}")  # noqa: PLR2004
    print_text("\n".join(lines))


def _localizer(texts: Mapping[str, str]) -> Callable[[str], str]:

    return lambda message: localize(message, texts, operator_languages())


def _as_data(mode: Maintenance, localized: Callable[[str], str]) -> dict[str, object]:

    return {
        "kind": mode.kind.value,
        "message": localized(mode.message),
        "since": utc_time(mode.since) if mode.since else None,
        "until": None if mode.until is None else utc_time(mode.until),
        "by": mode.by,
    }


def _line(place: str, mode: Maintenance, localized: Callable[[str], str]) -> str:

    where = "every gateway" if place == "*" else f"gateway {place}"
    doing = "running jobs are paused" if mode.kind.value == "now" else "running jobs end"
    since = f", since {local_time(mode.since)}" if mode.since else ""
    until = "" if mode.until is None else f", until {local_time(mode.until)}"
    by = f", by {mode.by}" if mode.by else ""
    return f"maintenance is on for {where}{since}{until}{by}: {doing}\n  {localized(mode.message)}"


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
