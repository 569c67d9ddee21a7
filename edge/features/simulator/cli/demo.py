"""`edge demo`: a scene on this machine with a real broker, store and gateway: a job, an alarm, or flows."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from edge.app.logs import set_up
from edge.config import LoggingSettings
from edge.features.simulator.demo import open_demo
from edge.features.simulator.demo_parts import DEFAULT_PORT, NAME, DemoPage, OpcuaAddress
from edge.features.simulator.demo_view import DemoView, view_on
from edge.features.simulator.flows_demo import open_flows_demo
from edge.features.simulator.telemetry_demo import open_telemetry_demo


@click.command(epilog="Example: edge demo --scene telemetry")
@click.option(
    "--scene",
    type=click.Choice(["job", "telemetry", "flows"]),
    default="job",
    show_default=True,
    help="What is shown: a whole job, an alarm from its sensor to the MES, or flows.",
)
@click.option("--keep", is_flag=True, help="Leave everything running for an OPC UA client, until Ctrl-C.")
@click.option(
    "--devices",
    type=click.Choice(["mqtt", "opcua", "openprotocol"]),
    default="mqtt",
    show_default=True,
    help="Protocol of the devices of a job.",
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
@click.option("--page", is_flag=True, help="Serve the station page, and keep the station at work until Ctrl-C.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    default="edge-demo.svg",
    show_default=True,
    help="Write the chart of the job, or of the last flow, as SVG.",
)
def demo(
    *, scene: str, keep: bool, devices: str, listen: str | None, port: int | None, chart: Path, page: bool
) -> None:
    """Run a scene on this machine: a whole job, an alarm, or flows.

    A job: a broker, a gateway with its own store, simulated equipment and a MES run the example recipe (rear axle); an
    OPC UA client reads the job back, and its chart is drawn. Telemetry: a sensor becomes hot, a rule raises and
    escalates an alarm, the MES acknowledges it, and it clears. Flows: the mean of a sensor is published, a shift report
    computes Cmk from job results and raises an alarm, and a flow is stopped in part. With --page a job comes every 20
    seconds after the first one: some ask you, one is not OK, an alarm stands; the other scenes are repeated. It needs
    mosquitto and a Redis or Valkey, and no running service. All but the chart is removed at the end. The
    exit status is 0 on success, else 1 with the reason.
    """
    set_up(LoggingSettings(level="error"))
    console, event, served, stays = Console(), asyncio.Event(), DemoPage() if page else None, keep or page
    address = OpcuaAddress(listen or "127.0.0.1", port or (DEFAULT_PORT if listen else 0))
    if scene == "telemetry":
        work = _show_alarm(console, event, address, served, keep=stays)
    elif scene == "flows":
        work = _show_flows(console, event, address, chart.absolute(), served, keep=stays)
    else:
        work = _show_job(console, event, devices, address, chart.absolute(), served, keep=stays)
    number = asyncio.run(_run_until_signal(work))
    if number and not event.is_set():
        raise SystemExit(128 + number)


_CLICKS = (
    ("", "answer whether the seal ring is flush"),
    ("tag?name=press.oil_temperature", "see the oil of the press warm and cool"),
    ("results", "see which parts are not OK, and why"),
)


async def _show_job(
    console: Console,
    shown: asyncio.Event,
    devices: str,
    address: OpcuaAddress,
    chart: Path,
    served: DemoPage | None,
    *,
    keep: bool,
) -> None:
    """Run a job; set `shown` at its end, and keep the demo running if asked."""
    view = view_on(console)
    async with open_demo(view, devices, address, chart, served) as addresses:
        shown.set()
        _report_page(view, served, *_CLICKS)
        if keep:
            _report_opcua(view, addresses.opcua_remote)
            view.report("", f"broker at {addresses.broker}", f"logs in {addresses.directory}", "Ctrl-C ends it")
            await asyncio.Event().wait()


def _report_page(view: DemoView, served: DemoPage | None, *clicks: tuple[str, str]) -> None:
    if served:
        lines = [f"{served.address}{path}  {what}" for path, what in clicks]
        view.report("page", f"open {served.address}", f"log in as {NAME}, password {served.password}", *lines)


def _report_opcua(view: DemoView, url: str) -> None:
    view.report("kept", f"open {url} in UaExpert (security None, anonymous)")


async def _show_alarm(
    console: Console, shown: asyncio.Event, address: OpcuaAddress, served: DemoPage | None, *, keep: bool
) -> None:
    """Show an alarm; set `shown` at its end, and keep the demo running if asked."""
    view = view_on(console)
    async with open_telemetry_demo(console, served, address) as addresses:
        shown.set()
        _report_page(view, served)
        if keep:
            _, _, port = addresses.broker.rpartition(":")
            _report_opcua(view, addresses.opcua)
            view.report("", f"mosquitto_pub -p {port} -t {addresses.topic} -m '{{\"celsius\": 99}}'")
            view.report("", f"edge alarms list --settings {addresses.settings}", "Ctrl-C ends it")
            await asyncio.Event().wait()


async def _show_flows(
    console: Console, shown: asyncio.Event, address: OpcuaAddress, chart: Path, served: DemoPage | None, *, keep: bool
) -> None:
    """Show flows; set `shown` at the end, and keep the demo running if asked."""
    view = view_on(console)
    async with open_flows_demo(view, chart, served, address) as addresses:
        shown.set()
        _report_page(view, served)
        if keep:
            _report_opcua(view, addresses.opcua)
            view.report("", f"edge flows list --settings {addresses.settings}", f"broker at {addresses.broker}")
            view.report("", "Ctrl-C ends it")
            await asyncio.Event().wait()


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
