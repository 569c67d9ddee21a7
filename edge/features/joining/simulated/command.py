"""`edge sim ijt`: runs the simulated controller as a process."""

import asyncio

import click

from edge.cli.terminal.output import READY, wait_for_stop
from edge.features.joining.simulated.controller import IjtFault, open_ijt


@click.command(epilog="Example: edge sim ijt --port 4851 --fault nok")
@click.option("--name", default="wrench", show_default=True, help="The BrowseName of its joining system.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=4851,
    show_default=True,
    help="Port on the loopback address.",
)
@click.option(
    "--delay",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help="Duration of a joining in seconds.",
)
@click.option(
    "--fault",
    type=click.Choice([fault.value for fault in IjtFault]),
    default="none",
    show_default=True,
    help="Fault in every joining; a restart, a cut and nok-once happen once.",
)
@click.option(
    "--points",
    type=click.IntRange(0, 4000),
    default=0,
    show_default=True,
    help="Samples of each curve; 0 sends none.",
)
@click.option("--process", "processes", multiple=True, help="A joining process that it lists. May be repeated.")
def ijt(name: str, port: int, delay: float, fault: str, points: int, processes: tuple[str, ...]) -> None:
    """Run a tightening controller (OPC 40450-1), an OPC UA server without security.

    It runs one joining after the other, and ends each after a delay with a torque near the value in the name of the
    joining process, such as `front axle 85Nm`.
    """

    async def run() -> None:
        async with open_ijt(name, port=port, delay=delay, processes=processes) as device:
            device.points = points
            device.fault = IjtFault(fault)
            await wait_for_stop(f"{READY}joining system {name} accepts joinings at {device.device.url}")

    asyncio.run(run())
