"""`edge demo`: one whole job on this machine, with a real broker, store, gateway and OPC UA client."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click


@click.command(epilog="Example: edge demo --keep")
@click.option("--keep", is_flag=True, help="Leave everything running for an OPC UA client, until Ctrl-C.")
@click.option(
    "--devices",
    type=click.Choice(["mqtt", "opcua"]),
    default="mqtt",
    show_default=True,
    help="Protocol of the devices.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Address of the OPC UA server; 0.0.0.0 lets clients on other machines read it. [default: 127.0.0.1]",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of the OPC UA server. [default: 4840 with --listen, else a free one]",
)
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    default="edge-demo.svg",
    show_default=True,
    help="Write the chart of the job, as SVG.",
)
def demo(*, keep: bool, devices: str, listen: str | None, port: int | None, chart: Path) -> None:
    """Run one whole job on this machine: broker, gateway, equipment and MES.

    It starts a broker, a gateway with its own store, simulated equipment and a MES, runs the example recipe (rear
    axle), reads the job back as an OPC UA client and draws its chart. It needs the Debian packages mosquitto and
    redis-tools, and no running service. All but the chart is removed at the end. The exit status is 0 on success,
    else 1 with the reason.
    """
    from rich.console import Console

    from edge.app.logs import set_up
    from edge.config import LoggingSettings
    from edge.sim.demo import open_demo
    from edge.sim.demo_address import DEFAULT_PORT, OpcuaAddress
    from edge.sim.demo_view import view_on

    view = view_on(Console())
    set_up(LoggingSettings(level="error"))
    address = OpcuaAddress(listen or "127.0.0.1", port or (DEFAULT_PORT if listen else 0))
    file = chart.absolute()
    shown = False

    async def run() -> None:
        nonlocal shown
        async with open_demo(view, devices, address, file) as addresses:
            shown = True
            if keep:
                view.tell("kept", f"open {addresses.opcua_remote} in UaExpert (security None, anonymous)")
                view.tell("", f"broker at {addresses.broker}", f"logs in {addresses.directory}", "Ctrl-C ends it")
                await asyncio.Event().wait()

    number = asyncio.run(_run_until_signal(run()))
    if number and not shown:
        raise SystemExit(128 + number)


async def _run_until_signal(work: Coroutine[Any, Any, None]) -> int:
    """Run the work to its end or until a signal; return the number of the signal, or 0.

    Further signals are ignored during the cleanup, which ends by itself.
    """
    received = 0
    task = asyncio.current_task()

    def stop(number: int) -> None:
        nonlocal received
        if not received and task:
            received = number
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        await work
    except asyncio.CancelledError:
        if not received:
            raise
    return received
