"""The commands of `edge flows` that work on the store while gateways run on it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, json_option, open_access, print_json, read_json, settings_option

if TYPE_CHECKING:
    from edge.flows.service import FlowService

_T = TypeVar("_T")

_POLL_S = 0.2
reason_option = click.option(
    "--reason", default="by hand", show_default=True, help="Reason, for the log and the status."
)


@click.command(epilog="Example: edge flows put press-report.json --start")
@click.argument("file", metavar="FLOW", type=FILE)
@click.option("--start", "begin", is_flag=True, help="Also start it.")
@settings_option
def put(file: Path, settings_file: Path | None, *, begin: bool) -> None:
    """Register a flow, or replace it.

    FLOW holds the flow as JSON; - is standard input. All faults are reported at once. A running cycle ends as it began;
    the next one is that of the new document. The exit status is 2 when the flow has faults.
    """
    from edge.cli.flows.faults import print_faults

    document = read_json(file)

    async def work(service: "FlowService") -> str:
        found = await service.put(document)
        if isinstance(found, tuple):
            print_faults(str(file), found)
            raise SystemExit(2)
        if begin:
            found = await service.start(found.flow_id)
        return f"{found.flow_id}: {found.status.value}"

    print_text(_run(settings_file, work))


@click.command(name="list", epilog="Example: edge flows list --json")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the flows of the store with their state, cycles and next instant."""
    from edge.flows.view import flow_summary

    async def work(service: "FlowService") -> list[dict[str, Any]]:
        return [flow_summary(flow) for flow in await service.load_all()]

    found = _run(settings_file, work)
    if as_json:
        print_json(found)
        return
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
    """Show a flow with its last cycle, its nodes and their number by state."""
    found = _run(settings_file, lambda service: _status(service, flow, cycle))
    if as_json:
        print_json(found)
        return
    print_text(f"{found['id']}: {found['status']}" + (f" ({found['reason']})" if found["reason"] else ""))
    _print_cycle(found["cycle"])


async def _status(service: "FlowService", flow_id: str, number: int | None) -> dict[str, Any]:
    from edge.flows.view import flow_status

    flow = await service.load(flow_id)
    return flow_status(flow, service.plan_of(flow), await service.load_cycle(flow, number))


def _print_cycle(cycle: dict[str, Any] | None) -> None:
    import msgspec

    if cycle is None:
        print_text("no cycle")
        return
    print_text(f"cycle {cycle['cycle']} at {cycle['at']}: {cycle['status']}, run by {cycle['owner']}")
    width = max(map(len, cycle["nodes"]), default=0)
    for node, task in cycle["nodes"].items():
        detail = task["reason"] or msgspec.json.encode(task["output"]).decode()
        print_text(f"  {node:{width}}  {task['status']:10}  {detail}")
    counts = [f"{count} {status}" for status, count in cycle["statistics"].items() if status != "total" and count]
    print_text(f"  {cycle['statistics']['total']} nodes: {', '.join(counts)}")


@click.command(epilog="Example: edge flows start press-report")
@click.argument("flow", metavar="ID")
@settings_option
def start(flow: str, settings_file: Path | None) -> None:
    """Start a flow: its cycles run from now on."""
    found = _run(settings_file, lambda service: service.start(flow))
    print_text(f"{found.flow_id}: {found.status.value}")


@click.command(epilog="Example: edge flows stop press-report --reason maintenance")
@click.argument("flow", metavar="ID")
@click.option("--component", type=click.IntRange(min=0), help="Only this component, in the running cycle.")
@reason_option
@settings_option
def stop(flow: str, component: int | None, reason: str, settings_file: Path | None) -> None:
    """Stop a flow: its running cycle ends by itself, no further one begins.

    With --component only the nodes of that component that have not started in the running cycle are skipped.
    """

    async def work(service: "FlowService") -> str:
        if component is not None:
            await service.stop_component(flow, component)
            return f"{flow}: component {component} stopped in this cycle"
        return f"{flow}: {(await service.stop(flow, reason)).status.value}"

    print_text(_run(settings_file, work))


@click.command(epilog="Example: edge flows terminate press-report --node publish --reason 'wrong topic'")
@click.argument("flow", metavar="ID")
@click.option("--node", help="Only this node of the running cycle.")
@click.option("--component", type=click.IntRange(min=0), help="Only this component of the running cycle.")
@click.option("--cycle", "only_cycle", is_flag=True, help="Only the running cycle; the next begins when it is due.")
@reason_option
@settings_option
def terminate(
    flow: str, node: str | None, component: int | None, reason: str, settings_file: Path | None, *, only_cycle: bool
) -> None:
    """Cancel a flow, or a part of its running cycle, at once.

    The nodes that run are cancelled, their successors are skipped. Without an option the flow is stopped as well.
    """
    if (node is not None) + (component is not None) + only_cycle > 1:
        raise click.UsageError("use one of --node, --component and --cycle.")

    async def work(service: "FlowService") -> str:
        if node is None and component is None and not only_cycle:
            stopped = await service.stop(flow, reason)
            if not stopped.in_cycle:
                return f"{flow}: {stopped.status.value}"
        record = await service.terminate(flow, reason, component=component, node=node)
        return f"{flow}: cycle {record.cycle.number} {record.cycle.status.value}"

    print_text(_run(settings_file, work))


@click.command(epilog="Example: edge flows delete press-report")
@click.argument("flow", metavar="ID")
@settings_option
def delete(flow: str, settings_file: Path | None) -> None:
    """Delete a flow with all its cycles; a running cycle is cancelled."""
    _run(settings_file, lambda service: service.delete(flow))
    print_text(f"{flow}: deleted")


@click.command(epilog="Example: edge flows watch press-report --cycles 3")
@click.argument("flow", metavar="ID")
@click.option("--cycles", type=click.IntRange(min=1), help="End after so many cycles.  [default: until Ctrl-C]")
@settings_option
def watch(flow: str, cycles: int | None, settings_file: Path | None) -> None:
    """Print each change of the running cycle with a progress bar."""

    async def work(service: "FlowService") -> None:
        shown, ended = "", 0
        while cycles is None or ended < cycles:
            status = (await _status(service, flow, None))["cycle"]
            line = _progress(status) if status else ""
            if line != shown:
                print_text(line)
                shown = line
                ended += status["status"] != "running"
            else:
                await asyncio.sleep(_POLL_S)

    _run(settings_file, work)


def _progress(cycle: dict[str, Any]) -> str:
    counts = cycle["statistics"]
    done = sum(counts[status] for status in ("completed", "failed", "terminated", "skipped"))
    total = counts["total"]
    running = ", ".join(node for node, task in cycle["nodes"].items() if task["status"] == "running")
    bar = "#" * (20 * done // total) + "-" * (20 - 20 * done // total)
    return f"cycle {cycle['cycle']} [{bar}] {done}/{total} {running or cycle['status']}"


def _run(settings_file: Path | None, work: "Callable[[FlowService], Awaitable[_T]]") -> _T:
    """Run work with the flows of the store."""

    async def run() -> _T:
        async with _open(settings_file) as service:
            return await work(service)

    return asyncio.run(run())


@asynccontextmanager
async def _open(settings_file: Path | None) -> "AsyncIterator[FlowService]":
    from edge.flows.plans import Plans
    from edge.flows.plugin_check import load_checked_kinds
    from edge.flows.redis_state import RedisFlowState
    from edge.flows.service import FlowService
    from edge.station.clock import store_clock

    async with open_access(settings_file) as at:
        site = await load_checked_kinds(at.settings.flows.nodes)
        for origin, fault in site.faults.items():
            print_text(f"{origin}: {fault}", err=True)
        yield FlowService(RedisFlowState(at.store), Plans(site.kinds), await store_clock(at.store))
