"""The commands of `edge flows` for the flows of the store: list, show, watch, and those that change them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec
from rich.live import Live
from rich.text import Text as RichText

from edge.cli.terminal.operator import operator_languages, recorded
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import (
    FILE,
    CommandOutput,
    StoreAccess,
    read_json,
    run_on_store,
    settings_option,
    store_action,
    store_command,
)
from edge.cli.terminal.table import open_console
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.plan import Fault, Plans
from edge.features.flows.plugins import load_checked_kinds
from edge.features.flows.public_flow import PublicCycle, PublicFlow, PublicFlowDetail, PublicNode
from edge.features.flows.public_form import public_cycle, public_detail, public_flow
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.settings import FlowsSettings
from edge.features.flows.state import FlowRecord
from edge.foundation.text import Text, language_for
from edge.model.instant import Instant, parse_instant
from edge.station.clock import store_clock


def print_faults(file: str, faults: Sequence[Fault]) -> None:
    """Print each fault with its place, and their number."""
    for fault in faults:
        where = fault.where if isinstance(fault.where, str) else ", ".join(fault.where)
        print_text(f"{fault.kind.value}: {where}: {fault.message}")
    print_text(f"{file}: {len(faults)} fault{'' if len(faults) == 1 else 's'}")


_kinds = partial(
    click.option,
    "--kinds",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Folder of the node kinds of the site, as `[flows] nodes`.",
)
kinds_option = _kinds("kinds_folder")


def _as_sections(_context: click.Context, _option: click.Parameter, folder: str | None) -> Mapping[str, FlowsSettings]:
    return {"flows": FlowsSettings(nodes=folder or "")}


kinds_of_files_option = _kinds("sections", callback=_as_sections)
"""The option of `edge check station`."""


_T = TypeVar("_T")


async def flows_of(at: StoreAccess) -> FlowService:
    """Return the flows of the open store."""
    site = await load_checked_kinds(at.settings.section(FlowsSettings).nodes)
    for origin, fault in site.faults.items():
        print_text(f"{origin}: {fault}", err=True)
    return FlowService(RedisFlowState(at.store), Plans(site.kinds), await store_clock(at.store))


def run_with_flows(settings_file: Path | None, work: Callable[[FlowService], Awaitable[_T]]) -> _T:
    """Run work with the flows of the store of the settings."""

    async def run(at: StoreAccess) -> _T:
        return await work(await flows_of(at))

    return run_on_store(settings_file, run)


@asynccontextmanager
async def _changing(at: StoreAccess, action: str, flow: str, reason: str | Text = "") -> AsyncIterator[FlowService]:
    """Change a flow in the block, with a record in the audit trail."""
    service = await flows_of(at)
    async with recorded(at, action, flow, str(reason)):
        yield service


def _status(flow: FlowRecord) -> str:
    return f"{flow.flow_id}: {flow.status.value}"


_BY_HAND: Final = Text.of("by hand")
reason_option = click.option(
    "--reason",
    default=str(_BY_HAND),
    show_default=True,
    callback=lambda _context, _option, reason: _BY_HAND if reason == str(_BY_HAND) else reason,
    help="Reason, for the log and the status.",
)


@click.command(epilog="Example: edge flows put press-report.json --start")
@click.argument("file", metavar="FLOW", type=FILE)
@click.option("--start", "begin", is_flag=True, help="Also start it.")
@settings_option
def put(file: Path, settings_file: Path | None, *, begin: bool) -> None:
    """Register a flow, or replace it.

    FLOW holds the flow as JSON; - is standard input. All faults are reported at once. A running cycle ends with the old
    document; the next cycle uses the new document. The exit status is 2 when the flow has faults.
    """
    document = read_json(file)

    async def work(at: StoreAccess) -> str:
        async with _changing(at, "flows put --start" if begin else "flows put", str(file)) as service:
            found = await service.put(document)
            if isinstance(found, tuple):
                print_faults(str(file), found)
                raise SystemExit(2)
            return _status(await service.start(found.flow_id) if begin else found)

    print_text(run_on_store(settings_file, work))


@click.command(epilog="Example: edge flows start press-report")
@click.argument("flow", metavar="ID")
@store_action
async def start(at: StoreAccess, flow: str) -> str:
    """Start a flow: its cycles run from now on."""
    async with _changing(at, "flows start", flow) as service:
        return _status(await service.start(flow))


@click.command(epilog="Example: edge flows stop press-report --reason maintenance")
@click.argument("flow", metavar="ID")
@click.option("--component", type=click.IntRange(min=0), help="Only this component, in the running cycle.")
@reason_option
@store_action
async def stop(at: StoreAccess, flow: str, component: int | None, reason: str | Text) -> str:
    """Stop a flow: its running cycle ends by itself, no further one begins.

    With --component only the nodes of that component that have not started in the running cycle are skipped.
    """
    async with _changing(at, "flows stop", flow, reason) as service:
        if component is not None:
            await service.stop_component(flow, component)
            return f"{flow}: component {component} stopped in this cycle"
        return _status(await service.stop(flow, reason))


@click.command(epilog="Example: edge flows terminate press-report --node publish --reason 'wrong topic'")
@click.argument("flow", metavar="ID")
@click.option("--node", help="Only this node of the running cycle.")
@click.option("--component", type=click.IntRange(min=0), help="Only this component of the running cycle.")
@click.option("--cycle", "only_cycle", is_flag=True, help="Only the running cycle; the next begins when it is due.")
@reason_option
@settings_option
def terminate(
    flow: str,
    node: str | None,
    component: int | None,
    reason: str | Text,
    settings_file: Path | None,
    *,
    only_cycle: bool,
) -> None:
    """Cancel a flow, or a part of its running cycle, at once.

    The nodes that run are cancelled, their successors are skipped. Without an option the flow is stopped as well.
    """
    if (node is not None) + (component is not None) + only_cycle > 1:
        raise click.UsageError("use one of --node, --component and --cycle.")

    async def work(at: StoreAccess) -> str:
        async with _changing(at, "flows terminate", flow, reason) as service:
            if node is None and component is None and not only_cycle:
                stopped = await service.stop(flow, reason)
                if not stopped.in_cycle:
                    return _status(stopped)
            record = await service.terminate(flow, reason, component=component, node=node)
            return f"{flow}: cycle {record.cycle.number} {record.cycle.status.value}"

    print_text(run_on_store(settings_file, work))


@click.command(epilog="Example: edge flows delete press-report")
@click.argument("flow", metavar="ID")
@store_action
async def delete(at: StoreAccess, flow: str) -> str:
    """Delete a flow with all its cycles; a running cycle is cancelled."""
    async with _changing(at, "flows delete", flow) as service:
        await service.delete(flow)
    return f"{flow}: deleted"


_BAR: Final = 20
_ENDED: Final = ("completed", "failed", "terminated", "skipped")
_LONGEST_DETAIL: Final = 100


def flow_lines(detail: PublicFlowDetail) -> Iterator[str]:
    """Yield state, schedule, counts and components of a flow."""
    flow = detail.flow
    yield f"{flow.id}: {flow.status}" + (f" ({flow.reason})" if flow.reason else "")
    ended = ", ".join(f"{count} {status}" for status, count in flow.ended.items()) or "none"
    yield f"schedule: {_schedule(detail.config)}; next cycle: {_instant(flow.next_at)}"
    yield f"cycles: {ended}; {flow.missed} missed"
    for index, component in enumerate(detail.components):
        yield f"component {index}: {', '.join(component)}"


def cycle_lines(cycle: PublicCycle) -> Iterator[str]:
    """Yield a cycle with its nodes and their number by state."""
    took = ""
    if cycle.ended_at is not None:
        took = f", took {(parse_instant(cycle.ended_at) - parse_instant(cycle.started_at)).total_seconds():g} s"
    yield f"cycle {cycle.number} at {_instant(cycle.at)}: {cycle.status}, run by {cycle.owner}{took}"
    width = max((len(node.node) for node in cycle.nodes), default=0)
    for node in cycle.nodes:
        yield f"  {node.node:{width}}  {node.status:10}  {node.attempts}  {_detail(node)}".rstrip()
    counts = [f"{count} {status}" for status, count in cycle.statistics.items() if status != "total" and count]
    yield f"  {cycle.statistics['total']} nodes: {', '.join(counts)}"


def progress_lines(cycle: PublicCycle) -> list[str]:
    """Return the progress bar of a cycle, and one for each node that a worker runs."""
    counts, total = cycle.statistics, cycle.statistics["total"]
    done = sum(counts[status] for status in _ENDED)
    running = [node for node in cycle.nodes if node.status == "running"]
    names = ", ".join(node.node for node in running)
    lines = [f"cycle {cycle.number} [{_bar(done, total)}] {done}/{total} {names or cycle.status}"]
    lines += (f"  {node.node} [{_bar(node.progress, 100)}] {_worker(node)}" for node in running if node.worker)
    return lines


def _worker(node: PublicNode) -> str:
    message = f" {node.message}" if node.message else ""
    return f"{node.progress} %{message} (worker {node.worker})"


def _bar(done: int, total: int) -> str:
    filled = _BAR * done // total
    return "#" * filled + "-" * (_BAR - filled)


def _detail(node: PublicNode) -> str:
    if node.reason:
        return node.reason
    if node.status == "running" and node.worker:
        return _worker(node)
    text = msgspec.json.encode(node.output).decode()
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


def _instant(at: Instant | None) -> str:
    return "none" if at is None else f"{parse_instant(at):%Y-%m-%d %H:%M:%S} UTC"


_POLL_S = 0.2


@click.command(name="list", epilog="Example: edge flows list --json")
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the flows of the store with their state, cycles and next instant."""
    language = language_for(operator_languages())
    flows = [public_flow(flow, language) for flow in await (await flows_of(at)).load_all()]
    width = max((len(flow.id) for flow in flows), default=0)
    lines = [_line(flow, width) for flow in flows]
    return CommandOutput(flows, "\n".join(lines) or "no flows; register one with `edge flows put FLOW.json --start`")


def _line(flow: PublicFlow, width: int) -> str:
    ended = ", ".join(f"{count} {status}" for status, count in flow.ended.items()) or "no cycle yet"
    return f"{flow.id:{width}}  {flow.status:10}  {ended}, {flow.missed} missed"


@click.command(epilog="Example: edge flows show press-report --json")
@click.argument("flow", metavar="ID")
@click.option("--cycle", type=click.IntRange(min=0), help="Number of the cycle.  [default: the last]")
@store_command
async def show(at: StoreAccess, flow: str, cycle: int | None) -> CommandOutput:
    """Show the comprehensive status of a flow: schedule, counts, components, last cycle, nodes by state."""
    detail = await public_detail(await flows_of(at), flow, cycle, language=language_for(operator_languages()))
    cycles = cycle_lines(detail.cycle) if detail.cycle else ["no cycle"]
    return CommandOutput(detail, "\n".join((*flow_lines(detail), *cycles)))


@click.command(epilog="Example: edge flows watch press-report --cycles 3")
@click.argument("flow", metavar="ID")
@click.option("--cycles", type=click.IntRange(min=1), help="End after so many cycles.  [default: until Ctrl-C]")
@settings_option
def watch(flow: str, cycles: int | None, settings_file: Path | None) -> None:
    """Show each change of the running cycle with progress bars: one of the cycle, one of each node in a worker."""
    console, language = open_console(), language_for(operator_languages())

    async def work(service: FlowService) -> None:
        with Live(console=console, auto_refresh=False, transient=False) as live:

            def draw(lines: list[str]) -> None:
                if console.is_terminal:
                    live.update(RichText("\n".join(lines)), refresh=True)
                else:
                    print_text("\n".join(lines))

            shown: list[str] = []
            ended: set[int] = set()
            while cycles is None or len(ended) < cycles:
                cycle_record = await service.load_cycle(await service.load(flow))
                lines, cycle = [], None
                if cycle_record:
                    progress = await service.progress(cycle_record.cycle)
                    cycle = public_cycle(cycle_record, progress, language=language)
                    lines = progress_lines(cycle)
                if lines != shown:
                    draw(lines)
                    shown = lines
                    ended |= {cycle.number} if cycle and cycle.status != "running" else set()
                else:
                    await asyncio.sleep(_POLL_S)

    run_with_flows(settings_file, work)
