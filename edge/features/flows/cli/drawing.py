"""`edge flows draw`: draws the graph of a flow with the states of a cycle."""

from pathlib import Path

import click

from edge.chart.svg import chart_svg
from edge.chart.text import ANSI, PLAIN, chart_text
from edge.cli.terminal.store_access import FILE, read_json, settings_option
from edge.features.flows.cli.faults import print_faults
from edge.features.flows.cli.kinds_option import kinds_option
from edge.features.flows.cli.stored_flows import run_with_flows
from edge.features.flows.cycle import Cycle
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.graph_drawing import draw_flow
from edge.features.flows.plan import Plan, Rejected, plan_flow
from edge.features.flows.plugins import load_kinds
from edge.foundation.errors import Refused, Unavailable

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: edge flows draw --flow press-report -o press-report.svg")
@click.argument("file", metavar="FLOW", type=FILE, required=False)
@click.option("--flow", "flow_id", metavar="ID", help="Draw this flow of the store, with the states of its nodes.")
@click.option("--cycle", type=click.IntRange(min=0), help="Number of the cycle.  [default: the last]")
@click.option("-o", "--output", type=_FILE, help="Write a file: SVG when its name ends with .svg, else Unicode.")
@kinds_option
@settings_option
def draw(
    file: Path | None,
    flow_id: str | None,
    cycle: int | None,
    output: Path | None,
    kinds_folder: str | None,
    settings_file: Path | None,
) -> None:
    """Draw a flow as a graph.

    FLOW holds the flow as JSON; - is standard input. Colours and words show the state of each node, with the reason of
    a failure or the beginning of its output. The exit status is 2 when the flow has faults.
    """
    if (file is None) == (flow_id is None):
        raise click.UsageError("Name either a FLOW file or a --flow.")
    if file is not None:
        _write(_plan_of_file(file, kinds_folder), None, output)
    elif flow_id is not None:
        plan, drawn = run_with_flows(settings_file, lambda service: _stored(service, flow_id, cycle))
        _write(plan, drawn, output)


def _plan_of_file(file: Path, kinds_folder: str | None) -> Plan:

    plan = plan_flow(read_json(file), load_kinds(kinds_folder or ""))
    if isinstance(plan, Rejected):
        print_faults(str(file), plan.faults)
        raise SystemExit(2)
    return plan


async def _stored(service: FlowService, flow_id: str, number: int | None) -> tuple[Plan, Cycle | None]:
    """Return the plan of a flow of the store with a cycle that still fits it."""
    flow = await service.load(flow_id)
    plan = service.plan_of(flow)
    if not isinstance(plan, Plan):
        raise Refused("unknown_kind", f"flow {flow_id!r} has node kinds that are not installed here.")
    record = await service.load_cycle(flow, number)
    if record is None and number is not None:
        raise Refused("unknown_cycle", f"cycle {number} of flow {flow_id!r} is not kept.", "Show the flow.")
    # The flow may have been replaced since its last cycle.
    fits = record is not None and record.cycle.tasks.keys() == plan.nodes.keys()
    return plan, record.cycle if record and fits else None


def _write(plan: Plan, cycle: Cycle | None, output: Path | None) -> None:

    drawing = draw_flow(plan, cycle)
    if output is None:
        # click removes the colours when the output is not a terminal.
        click.echo("\n".join(chart_text(drawing, ANSI)))
        return
    is_svg = output.suffix.lower() == ".svg"
    document = chart_svg(drawing) if is_svg else "\n".join(chart_text(drawing, PLAIN)) + "\n"
    try:
        output.write_text(document, encoding="utf-8")
    except OSError as error:
        message = f"{output}: cannot be written: {error.strerror}"
        raise Unavailable(message, "Name a file where you may write.") from error
