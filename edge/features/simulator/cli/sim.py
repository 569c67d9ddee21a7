"""`edge sim`: runs simulated equipment, each as its own process."""

import asyncio
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from edge.cli.terminal.command_group import OpenGroup
from edge.cli.terminal.output import READY, print_json, print_text, printable, wait_for_stop
from edge.cli.terminal.store_access import json_option, log_to_stderr
from edge.config import MqttSettings
from edge.features.simulator.camera import open_camera
from edge.features.simulator.controller import open_controller
from edge.features.simulator.device_check import CheckFinding, DeviceCheck, has_passed
from edge.features.simulator.presence import last_will
from edge.links.mqtt import open_session


def parse_parameters(text: str) -> dict[str, Any]:
    """Parse the parameters of a command from JSON."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"--parameters is not a JSON object: {error}") from None


def print_report(name: str, findings: Sequence[CheckFinding], *, passed: bool, as_json: bool) -> None:
    """Print one line for each finding, and the verdict."""
    if as_json:
        print_json(
            {"device": name, "passed": passed, "findings": [msgspec.to_builtins(finding) for finding in findings]}
        )
        return
    width = max(len(finding.check) for finding in findings)
    for check_finding in findings:
        print_text(f"{check_finding.grade.value:<6}  {check_finding.check:<{width}}  {printable(check_finding.detail)}")
    print_text(f"{name} {'passed' if passed else 'failed'}")


_url = click.option("--url", default="mqtt://127.0.0.1:1883", show_default=True, help="The broker.")
_name = click.option("--name", required=True, help="Name of the equipment: that of [southbound.NAME] in the settings.")
_seconds = click.FloatRange(min=0)
_prefix = click.option("--prefix", default="app/equipment", show_default=True, help="Its topic_prefix.")


@click.group(cls=OpenGroup)
def sim() -> None:
    """Run simulated equipment.

    It runs until Ctrl-C or SIGTERM. `controller` and `camera` need a broker; the others are servers.
    `device` is the other side: it tests a real device over MQTT.
    """


@sim.command(epilog="Example: edge sim controller --name wrench --delay 2")
@_url
@_name
@_prefix
@click.option("--delay", type=_seconds, default=0.2, show_default=True, help="Duration of a command in seconds.")
@click.option("--fail", "failing", multiple=True, metavar="TYPE_ID", help="Answer this type with an error.")
@click.option("--forgetful", is_flag=True, help="Answer a start that is offered again by `unknown`.")
@click.option("--locked", is_flag=True, help="Decline a start without the permission on PREFIX/NAME/enabled.")
def controller(
    url: str, name: str, prefix: str, delay: float, failing: tuple[str, ...], *, forgetful: bool, locked: bool
) -> None:
    """Run a tightening controller.

    It receives commands on PREFIX/NAME/commands and answers each after a delay with torque and angle. It publishes
    its presence on PREFIX/NAME/presence. With --forgetful it behaves as a controller that has lost its memory.
    With --locked it needs the retained message `true` on PREFIX/NAME/enabled, and no `false` of another system below
    it, such as PREFIX/NAME/enabled/plc.
    """

    async def run() -> None:
        async with (
            open_session(MqttSettings(url=url), f"edge-sim-{name}", will=last_will(f"{prefix}/{name}")) as session,
            open_controller(
                session,
                name,
                topic_prefix=prefix,
                delay=delay,
                failing=failing,
                forgetful=forgetful,
                locked=locked,
            ) as device,
        ):
            await wait_for_stop(f"{READY}controller {name} receives commands on {device.topic}/commands")

    asyncio.run(run())


@sim.command(epilog="Example: edge sim camera --name camera --scope station-1")
@_url
@_name
@_prefix
@click.option("--scope", default="station-1", show_default=True, help="The scope of its station.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01),
    default=0.5,
    show_default=True,
    help="Interval between results in seconds.",
)
def camera(url: str, name: str, prefix: str, scope: str, interval: float) -> None:
    """Run an inspection camera.

    It publishes results on PREFIX/NAME/events at each interval, for one job after the other. It publishes its presence
    on PREFIX/NAME/presence.
    """

    async def run() -> None:
        async with (
            open_session(MqttSettings(url=url), f"edge-sim-{name}", will=last_will(f"{prefix}/{name}")) as session,
            open_camera(session, name, scope, topic_prefix=prefix, interval=interval) as device,
        ):
            await wait_for_stop(f"{READY}camera {name} publishes results on {device.topic}/events")

    asyncio.run(run())


@sim.command(epilog="Example: edge sim device --name wrench --type com.example.station.tighten.v1 --strict")
@_url
@_name
@_prefix
@click.option("--type", "type_id", required=True, metavar="TYPE_ID", help="A type of command that it takes.")
@click.option("--scope", default="station-1", show_default=True, help="The scope of its station.")
@click.option("--parameters", default="{}", show_default=True, help="Parameters of the commands, a JSON object.")
@click.option("--answer-within", type=_seconds, default=10.0, show_default=True, help="Seconds it may take to answer.")
@click.option("--lock", is_flag=True, help="Test also that it works only with the permission on PREFIX/NAME/enabled.")
@click.option("--strict", is_flag=True, help="Fail also on what the gateway tolerates.")
@json_option
def device(
    url: str,
    name: str,
    prefix: str,
    type_id: str,
    scope: str,
    parameters: str,
    answer_within: float,
    *,
    lock: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Test a device over MQTT against what the gateway expects, and print a report.

    The device starts work: stop the gateway first, and clear the working area. The test sends a start and the same
    start again, after its answer and at work, a start with its stop in the middle of the work, a reset, and a start
    that is marked as offered again. Meanwhile it grants the permission on PREFIX/NAME/enabled; with --lock it sends a
    start without it, too. Work of half a second or more is timed best. The exit status is 1 when the gateway could not
    work with the device.
    """
    given = parse_parameters(parameters)
    log_to_stderr("critical")

    async def run() -> list[CheckFinding]:
        async with open_session(MqttSettings(url=url), f"edge-check-{name}", session_expiry=0) as session:
            topic = f"{prefix}/{name}"
            return await DeviceCheck(session, topic, type_id, scope, answer_within, given, lock=lock).run()

    findings = asyncio.run(run())
    passed = has_passed(findings, strict=strict)
    print_report(name, findings, passed=passed, as_json=as_json)
    raise SystemExit(0 if passed else 1)
