"""The commands of `edge flows` that show the flows of the store: list, show, watch."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import json_option, open_console, print_json, settings_option
from edge.features.flows.cli.status_text import cycle_lines, flow_lines, progress_lines
from edge.features.flows.cli.stored_flows import read_status, run_with_flows

if TYPE_CHECKING:
    from edge.features.flows.cycle_service import FlowService

_POLL_S = 0.2


@click.command(name="list", epilog="Example: edge flows list --json")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the flows of the store with their state, cycles and next instant."""
    from edge.features.flows.view import flow_summary

    async def work(service: "FlowService") -> list[dict[str, Any]]:
        return [flow_summary(flow) for flow in await service.load_all()]

    found = run_with_flows(settings_file, work)
    if as_json:
        print_json(found)
        return
    if not found:
        print_text("no flows; register one with `edge flows put FLOW.json --start`")
    width = max((len(each["id"]) for each in found), default=0)
    for each in found:
        ended = ", ".join(f"{count} {status}" for status, count in each["ended"].items()) or "no cycle yet"
        print_text(f"{each['id']:{width}}  {each['status']:10}  {ended}, {each['missed']} missed")


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
    from rich.live import Live
    from rich.text import Text

    console = open_console()

    async def work(service: "FlowService") -> None:
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
