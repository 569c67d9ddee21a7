"""The commands of `edge flows` that change flows in the store while gateways run on it."""

from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, read_json, settings_option
from edge.features.flows.cli.faults import print_faults
from edge.features.flows.cli.stored_flows import change_flow
from edge.features.flows.cycle_service import FlowService

reason_option = click.option(
    "--reason", default="by hand", show_default=True, help="Reason, for the log and the status."
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

    async def work(service: FlowService) -> str:
        found = await service.put(document)
        if isinstance(found, tuple):
            print_faults(str(file), found)
            raise SystemExit(2)
        if begin:
            found = await service.start(found.flow_id)
        return f"{found.flow_id}: {found.status.value}"

    print_text(change_flow(settings_file, "flows put --start" if begin else "flows put", str(file), work))


@click.command(epilog="Example: edge flows start press-report")
@click.argument("flow", metavar="ID")
@settings_option
def start(flow: str, settings_file: Path | None) -> None:
    """Start a flow: its cycles run from now on."""
    found = change_flow(settings_file, "flows start", flow, lambda service: service.start(flow))
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

    async def work(service: FlowService) -> str:
        if component is not None:
            await service.stop_component(flow, component)
            return f"{flow}: component {component} stopped in this cycle"
        return f"{flow}: {(await service.stop(flow, reason)).status.value}"

    print_text(change_flow(settings_file, "flows stop", flow, work, reason))


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

    async def work(service: FlowService) -> str:
        if node is None and component is None and not only_cycle:
            stopped = await service.stop(flow, reason)
            if not stopped.in_cycle:
                return f"{flow}: {stopped.status.value}"
        record = await service.terminate(flow, reason, component=component, node=node)
        return f"{flow}: cycle {record.cycle.number} {record.cycle.status.value}"

    print_text(change_flow(settings_file, "flows terminate", flow, work, reason))


@click.command(epilog="Example: edge flows delete press-report")
@click.argument("flow", metavar="ID")
@settings_option
def delete(flow: str, settings_file: Path | None) -> None:
    """Delete a flow with all its cycles; a running cycle is cancelled."""
    change_flow(settings_file, "flows delete", flow, lambda service: service.delete(flow))
    print_text(f"{flow}: deleted")
