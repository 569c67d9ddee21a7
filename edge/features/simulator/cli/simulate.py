"""`edge simulate`: runs a recipe against a script, in virtual time or live, and prints the trace."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec.structs

from edge.app.logs import set_up
from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import FILE, json_option, read_json
from edge.config import LoggingSettings, RedisSettings
from edge.features.simulator.live_simulation import simulate_live
from edge.features.simulator.script import Script, ScriptError, parse_script
from edge.features.simulator.trace import Trace
from edge.features.simulator.virtual_simulation import simulate as run
from edge.model.recipe import Interaction, parse_recipe
from edge.sfc.run import Outcome


@click.command(epilog="Example: edge simulate rear-axle.json --script good-day.json --json")
@click.argument("recipe", type=FILE)
@click.option("--script", "script_file", type=FILE, help="Answers and events of the equipment (JSON).")
@json_option
@click.option("--strict", is_flag=True, help="Exit with status 3 when a job has not ended.")
@click.option("--live", is_flag=True, help="Run it through the real engine, on a temporary store.")
@click.option(
    "--speed",
    metavar="N",
    type=click.FloatRange(min=0, max=1000, min_open=True),
    help="With --live: divide all times by this. [default: 1]",
)
def simulate(
    recipe: Path, script_file: Path | None, speed: float | None, *, as_json: bool, strict: bool, live: bool
) -> None:
    """Run a recipe with simulated equipment, in virtual time or live.

    RECIPE contains the recipe as JSON; - is standard input. Without a script all equipment answers commands with
    success after 0.1 s, and a warning names each event that the recipe waits for. Virtual time needs no Redis, broker
    or equipment, and ends at once. With --live the same script runs through the real engine in real time, on a
    temporary store of the installed Redis server; the trace is the same except for a few milliseconds per step, which
    --speed multiplies. For a job that has not ended it says what each active step waits for. The exit status is 0 when
    the simulation ran, also for a recipe with faults and whatever the outcome of the job, 2 when a file is not JSON or
    the script has another form, and with --strict 3 when a job has not ended.
    """
    if speed is not None and not live:
        raise click.UsageError("--speed divides the times of --live")
    data = read_json(recipe)
    try:
        script = parse_script(read_json(script_file)) if script_file else Script()
        trace = _run_live(data, script, speed or 1.0) if live else run(data, script)
    except ScriptError as error:
        usage_failure(f"{script_file}: {error.message}")
    if script_file is None:
        trace = msgspec.structs.replace(trace, warnings=[*trace.warnings, *_missing_events(data)])
    if as_json:
        print_json(trace.as_json())
    else:
        _print_trace(trace)
    if strict and Outcome.RUNNING in trace.final_by_job.values():
        raise SystemExit(_NOT_ENDED)


_NOT_ENDED = 3


def _missing_events(data: object) -> list[str]:
    """Return a warning for each type of event that only a script can send, and the script to begin with."""
    recipe, _ = parse_recipe(data)
    pulling = [action for action in recipe.actions if action.interaction is Interaction.PULL_EVENT] if recipe else []
    awaited = {action.type_id: action for action in pulling}
    if not awaited:
        return []
    timeline = [{"at": at, "event": {"type_id": name, "data": {}}} for at, name in enumerate(awaited, start=1)]
    waiting = [
        f"action '{action.name}' of step '{action.step}' waits for an event {name}" for name, action in awaited.items()
    ]
    return [*waiting, f"send these events with --script FILE: {json.dumps({'timeline': timeline})}"]


def _run_live(recipe: object, script: Script, speed: float) -> Trace:

    set_up(LoggingSettings(level="error"))
    return asyncio.run(simulate_live(recipe, script, speed, RedisSettings(url="embedded:")))


def _act(act: Mapping[str, Any]) -> str:
    """Return an intervention as text: its kind and what it is about."""
    names = " of " if act["action"] else " → "
    parts = [act["action"], act["step"]] if act["action"] else [act["step"], act["target"]]
    return f"{act['kind']} {names.join(filter(None, parts))}"


def _print_trace(trace: Trace) -> None:
    """Print the trace as text: one line per event, in the order of time."""
    lines = [(step["t"], 0, f"{step['job']}  {'▶' if step['active'] else '■'} {step['step']}") for step in trace.steps]
    lines += [
        (sent["t"], 1, f"{sent['job']}    {sent['phase']} {sent['action']} #{sent['attempt']}  {sent['type_id']}")
        for sent in trace.commands
    ]
    lines += [
        (act["t"], 1, f"{act['job']}    {_act(act)}{': ' if act['ignored'] else ''}{act['ignored']}")
        for act in trace.interventions
    ]
    for warning in trace.warnings:
        print_text(f"warning: {warning}")
    for t, _, line in sorted(lines, key=lambda row: row[0]):
        print_text(f"{t:10.3f}  {line}")
    for job, final in trace.final_by_job.items():
        print_text(f"{job}: {final}")
        for step in trace.waiting:
            if step["job"] == job:
                print_text(f"  step {step['step']} waits for" if step["step"] else "  waits for")
                for text in step["waits_for"]:
                    print_text(f"    {text}")
        for act in trace.possible_interventions:
            if act["job"] == job:
                print_text(f"  possible: {_act(act)}")
    if trace.error:
        print_text(trace.error)
