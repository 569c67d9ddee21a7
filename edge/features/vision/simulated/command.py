"""`edge sim vision`: runs the simulated camera as a process."""

import asyncio
from pathlib import Path

import click

from edge.cli.terminal.output import READY, wait_for_stop
from edge.features.vision.simulated.camera import VisionFault, open_vision


@click.command(epilog="Example: edge sim vision --port 4850 --fault error-state")
@click.option("--name", default="camera", show_default=True, help="The BrowseName of its vision system.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=4850,
    show_default=True,
    help="Port on the loopback address.",
)
@click.option(
    "--delay",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help="Duration of a job in seconds.",
)
@click.option(
    "--fault",
    type=click.Choice([fault.value for fault in VisionFault]),
    default="none",
    show_default=True,
    help="Fault in every job; a restart happens once.",
)
@click.option(
    "--image",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Offer this file with each result.",
)
def vision(name: str, port: int, delay: float, fault: str, image: Path | None) -> None:
    """Run a Machine Vision camera (OPC 40100-1), an OPC UA server without security.

    It runs one job after the other, and ends each after a delay with a good result.
    """
    offered = image.read_bytes() if image else None

    async def run() -> None:
        async with open_vision(name, port=port, delay=delay, image=offered) as camera:
            camera.fault = VisionFault(fault)
            await wait_for_stop(f"{READY}vision {name} accepts jobs at {camera.device.url}")

    asyncio.run(run())
