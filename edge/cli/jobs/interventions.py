"""`edge jobs retry`, `skip`, `force` and `complete`: a person intervenes in a running job."""

import asyncio
from pathlib import Path

import click

from edge.cli.jobs.outcome import decide, parse_data, print_answer
from edge.cli.terminal.store_access import json_option, settings_option
from edge.model.recipe import Intervention
from edge.sfc.signal import Intervene

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
