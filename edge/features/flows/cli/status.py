"""The commands of `edge flows` that show the flows of the store: list, show, watch."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.live import Live
from rich.text import Text

from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import json_option, settings_option
from edge.cli.terminal.table import open_console
from edge.features.flows.cli.stored_flows import read_status, run_with_flows
from edge.features.flows.cycle_service import FlowService, flow_summary
from edge.model.instant import utc

_BAR: Final = 20
_ENDED: Final = ("completed", "failed", "terminated", "skipped")
_LONGEST_DETAIL: Final = 100


def flow_lines(flow: Mapping[str, Any]) -> Iterator[str]:
    """Yield state, schedule, counts and components of a flow."""
    yield f"{flow['id']}: {flow['status']}" + (f" ({flow['reason']})" if flow["reason"] else "")
    ended = ", ".join(f"{count} {status}" for status, count in flow["ended"].items()) or "none"
    yield f"schedule: {_schedule(flow['config'])}; next cycle: {_instant(flow['next_execution'])}"
    yield f"cycles: {ended}; {flow['missed']} missed"
    components = flow["structure"]["components"] if flow["structure"] else ()
    for index, component in enumerate(components):
        yield f"component {index}: {', '.join(component)}"


def cycle_lines(cycle: Mapping[str, Any]) -> Iterator[str]:
    """Yield a cycle with its nodes and their number by state."""
    end = cycle["end_time"]
    took = f", took {(end - cycle['start_time']) / 1000:g} s" if end is not None else ""
    yield f"cycle {cycle['cycle']} at {_instant(cycle['at'])}: {cycle['status']}, run by {cycle['owner']}{took}"
    width = max(map(len, cycle["nodes"]), default=0)
    for node, task in cycle["nodes"].items():
        yield f"  {node:{width}}  {task['status']:10}  {task['attempts']}  {_detail(task)}".rstrip()
    counts = [f"{count} {status}" for status, count in cycle["statistics"].items() if status != "total" and count]
    yield f"  {cycle['statistics']['total']} nodes: {', '.join(counts)}"


def progress_lines(cycle: Mapping[str, Any]) -> list[str]:
    """Return the progress bar of a cycle, and one for each node that a worker runs."""
    counts, total = cycle["statistics"], cycle["statistics"]["total"]
    done = sum(counts[status] for status in _ENDED)
    running = {node: task for node, task in cycle["nodes"].items() if task["status"] == "running"}
    lines = [f"cycle {cycle['cycle']} [{_bar(done, total)}] {done}/{total} {', '.join(running) or cycle['status']}"]
    for node, task in running.items():
        if task["worker"] is not None:
            lines.append(f"  {node} [{_bar(task['progress'], 100)}] {_worker(task)}")
    return lines


def _worker(task: Mapping[str, Any]) -> str:
    message = f" {task['message']}" if task["message"] else ""
    return f"{task['progress']} %{message} (worker {task['worker']})"


def _bar(done: int, total: int) -> str:
    filled = _BAR * done // total
    return "#" * filled + "-" * (_BAR - filled)


def _detail(task: Mapping[str, Any]) -> str:
    if task["reason"]:
        return str(task["reason"])
    if task["status"] == "running" and task["worker"] is not None:
        return _worker(task)
    text = msgspec.json.encode(task["output"]).decode()
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}…"


def _schedule(config: Mapping[str, Any]) -> str:
    zone = config.get("time_zone", "UTC")
    match config:
        case {"interval_seconds": 0}:
            return "once"
        case {"interval_seconds": seconds}:
            return f"every {seconds:g} s"
        case {"cron": text}:
            return f"cron {text}, {zone}"
        case _:
            return f"shifts {', '.join(config.get('shifts', ()))}, {zone}"


def _instant(at: int | None) -> str:
    return "none" if at is None else f"{utc(at):%Y-%m-%d %H:%M:%S} UTC"


_POLL_S = 0.2


@click.command(name="list", epilog="Example: edge flows list --json")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the flows of the store with their state, cycles and next instant."""

    async def work(service: FlowService) -> list[dict[str, Any]]:
        return [flow_summary(flow) for flow in await service.load_all()]

    found = run_with_flows(settings_file, work)
    if as_json:
        print_json(found)
        return
    if not found:
        print_text("no flows; register one with `edge flows put FLOW.json --start`")
    width = max((len(entry["id"]) for entry in found), default=0)
    for fields in found:
        ended = ", ".join(f"{count} {status}" for status, count in fields["ended"].items()) or "no cycle yet"
        print_text(f"{fields['id']:{width}}  {fields['status']:10}  {ended}, {fields['missed']} missed")


@click.command(epilog="Example: edge flows show press-report --json")
@click.argument("flow", metavar="ID")
@click.option("--cycle", type=click.IntRange(min=0), help="Number of the cycle.  [default: the last]")
@settings_option
@json_option
def show(flow: str, cycle: int | None, settings_file: Path | None, *, as_json: bool) -> None:
    """Show the comprehensive status of a flow: schedule, counts, components, last cycle, nodes by state."""
    found = run_with_flows(settings_file, lambda service: read_status(service, flow, cycle))
    if as_json:
        print_json(found)
        return
    for line in (*flow_lines(found), *(cycle_lines(found["cycle"]) if found["cycle"] else ["no cycle"])):
        print_text(line)


@click.command(epilog="Example: edge flows watch press-report --cycles 3")
@click.argument("flow", metavar="ID")
@click.option("--cycles", type=click.IntRange(min=1), help="End after so many cycles.  [default: until Ctrl-C]")
@settings_option
def watch(flow: str, cycles: int | None, settings_file: Path | None) -> None:
    """Show each change of the running cycle with progress bars: one of the cycle, one of each node in a worker."""
    console = open_console()

    async def work(service: FlowService) -> None:
        with Live(console=console, auto_refresh=False, transient=False) as live:

            def draw(lines: list[str]) -> None:
                if console.is_terminal:
                    live.update(Text("\n".join(lines)), refresh=True)
                else:
                    print_text("\n".join(lines))

            shown: list[str] = []
            ended: set[int] = set()
            while cycles is None or len(ended) < cycles:
                status = (await read_status(service, flow, None))["cycle"]
                lines = progress_lines(status) if status else []
                if lines != shown:
                    draw(lines)
                    shown = lines
                    ended |= {status["cycle"]} if status["status"] != "running" else set()
                else:
                    await asyncio.sleep(_POLL_S)

    run_with_flows(settings_file, work)
