"""`edge sim openprotocol`: runs the simulated controller as a process."""

import asyncio

import click

from edge.cli.terminal.output import READY, wait_for_stop
from edge.features.openprotocol.simulated.controller import OpenProtocolFault, open_openprotocol_controller


@click.command(epilog="Example: edge sim openprotocol --port 4545 --fault nok")
@click.option("--name", default="wrench", show_default=True, help="The name of the controller.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=4545, show_default=True, help="Port on the loopback address."
)
@click.option(
    "--delay", type=click.FloatRange(min=0), default=0.2, show_default=True, help="Duration of a tightening in seconds."
)
@click.option(
    "--fault",
    type=click.Choice([fault.value for fault in OpenProtocolFault]),
    default="none",
    show_default=True,
    help="Fault in every tightening; a restart and nok-once happen once.",
)
@click.option("--supplier", default="ACT", show_default=True, help="Supplier code in MID 0002, three characters.")
@click.option(
    "--points", type=click.IntRange(0, 4000), default=0, show_default=True, help="Samples of each curve; 0 sends none."
)
@click.option("--no-link-layer", is_flag=True, help="Offer no sequence numbers (MID 9997, 9998).")
def openprotocol(
    name: str, port: int, delay: float, fault: str, supplier: str, points: int, *, no_link_layer: bool
) -> None:
    """Run a tightening controller with Open Protocol, for one tool.

    Its operator triggers the tool once each time it is enabled, in a batch until it is complete. It has the parameter
    sets 1 to 4 (10, 80, 85 and 120 N·m) and the jobs 1 and 2.
    """

    async def run() -> None:
        async with open_openprotocol_controller(
            name, port=port, delay=delay, supplier=supplier, link_layer=not no_link_layer, points=points
        ) as device:
            device.fault = OpenProtocolFault(fault)
            await wait_for_stop(f"{READY}controller {name} accepts clients at 127.0.0.1:{device.server.port}")

    asyncio.run(run())
