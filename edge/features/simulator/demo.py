"""The demo: a MES stores and starts one job on real parts; the demo checks the result from outside."""

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from edge.cli.terminal.output import READY
from edge.config import MqttSettings
from edge.features.simulator.demo_parts import (
    DemoPage,
    GiveUp,
    OpcuaAddress,
    edge_command,
    limit_demo,
    opcua_section,
    page_section,
    quoting_last_lines,
    repeated,
    wait_until,
)
from edge.features.simulator.demo_view import DemoView
from edge.features.simulator.living_station import PRESS, WORK_S, live, living_settings, press_arguments
from edge.features.simulator.mes import Mes, open_mes
from edge.features.simulator.observed_job import COMPLETED, ObservedJob, apply_station_report, plain_text
from edge.features.simulator.process import Process, open_process, run_process
from edge.foundation.errors import Defect, Refused, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.links.host_addresses import free_port
from edge.links.local_broker import open_broker
from edge.links.mqtt import Message, open_session, to_event
from edge.links.opcua import ClientSession as OpcuaSession
from edge.links.opcua import open_client
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import Equipment, JobOrder, LocalizedText, OrderCall, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA, Recipe, parse_recipe

CONTROLLER = "wrench"
CAMERA = "camera"
_WORK_S = 0.6
_TIGHTENINGS = (
    "com.example.station.position.v1",
    "com.example.station.tighten.v1",
    "com.example.station.verify_torque.v1",
)


class DemoDevice(Struct, frozen=True):
    """A device with its name at the station.

    `what` is its description for people, `arguments` are those of `edge sim`. The device handles the actions of
    `type_ids`; `keys` are the other keys of its settings section, as TOML.
    """

    name: str
    what: str
    arguments: tuple[str, ...]
    type_ids: tuple[str, ...]
    keys: str

    def section(self) -> str:
        """Return the settings section of the device; strings and lists of strings are the same in JSON and in TOML."""
        return f"[southbound.{self.name}]\ntype_ids = {json.dumps(self.type_ids)}\n{self.keys}\n"


class DemoDevices(Struct, frozen=True):
    """The devices of a demo and their recipe; `early` devices start before the gateway, `late` devices after it.

    `unheard` maps each `type_id` to its device, for devices whose commands are not visible on the broker.
    """

    recipe: str
    early: tuple[DemoDevice, ...] = ()
    late: tuple[DemoDevice, ...] = ()
    unheard: Mapping[str, str] = field(default_factory=dict)

    @property
    def every(self) -> tuple[DemoDevice, ...]:
        """Return all devices, the early ones first."""
        return self.early + self.late


def over_mqtt(broker: str, scope: str, work_s: float) -> DemoDevices:
    """Return devices at a broker: the controller executes commands within `work_s`, the camera sends events."""
    device = ("--url", broker, "--name")
    controller = DemoDevice(
        CONTROLLER,
        "a simulated tightening controller, a process of its own",
        ("controller", *device, CONTROLLER, *_work(work_s)),
        ("com.example.station.position.v1", "com.example.station.tighten.v1"),
        'kind = "mqtt"',
    )
    camera = DemoDevice(
        CAMERA,
        "a simulated inspection camera, a process of its own",
        ("camera", *device, CAMERA, "--scope", scope),
        ("com.example.station.qa_result.v1", "com.example.station.torque_result.v1"),
        'kind = "mqtt"',
    )
    # Both start after the gateway: a camera repeats an unanswered event only after seconds.
    return DemoDevices("rear-axle.json", late=(controller, camera))


def over_opcua(_broker: str, _scope: str, work_s: float) -> DemoDevices:
    """Return devices with OPC UA servers: a joining system and a vision system; both execute commands only."""
    controller_port, camera_port = free_port(), free_port()
    controller = DemoDevice(
        CONTROLLER,
        f"a simulated joining system (OPC 40450-1), a process of its own, {_url(controller_port)}",
        ("ijt", "--name", CONTROLLER, "--port", str(controller_port), *_work(work_s)),
        _TIGHTENINGS,
        f'kind = "ijt"\nurl = "{_url(controller_port)}"\nsecurity = "none"',
    )
    return _executing("rear-axle-opcua.json", controller, _vision_camera(camera_port, work_s))


def over_openprotocol(_broker: str, _scope: str, work_s: float) -> DemoDevices:
    """Return a controller with Open Protocol and a camera that is an OPC UA server; both execute commands only."""
    controller_port, camera_port = free_port(), free_port()
    address = f"tcp://127.0.0.1:{controller_port}"
    controller = DemoDevice(
        CONTROLLER,
        f"a simulated tightening controller (Open Protocol), a process of its own, {address}",
        ("openprotocol", "--name", CONTROLLER, "--port", str(controller_port), *_work(work_s)),
        _TIGHTENINGS,
        f'kind = "openprotocol"\nurl = "{address}"',
    )
    return _executing("rear-axle-openprotocol.json", controller, _vision_camera(camera_port, work_s))


def _work(work_s: float) -> tuple[str, str]:
    return "--delay", f"{work_s:g}"


def _vision_camera(port: int, work_s: float) -> DemoDevice:
    return DemoDevice(
        CAMERA,
        f"a simulated vision system (OPC 40100-1), a process of its own, {_url(port)}",
        ("vision", "--name", CAMERA, "--port", str(port), *_work(work_s)),
        ("com.example.station.inspect.v1",),
        f'kind = "vision"\nurl = "{_url(port)}"\nsecurity = "none"',
    )


def _executing(recipe: str, controller: DemoDevice, camera: DemoDevice) -> DemoDevices:
    takers = {type_id: demo_device.name for demo_device in (controller, camera) for type_id in demo_device.type_ids}
    # Both start before the gateway: after a failed connection, the gateway retries only after seconds.
    return DemoDevices(recipe, early=(controller, camera), unheard=takers)


DEVICES: Mapping[str, Callable[[str, str, float], DemoDevices]] = MappingProxyType(
    {"mqtt": over_mqtt, "opcua": over_opcua, "openprotocol": over_openprotocol}
)
"""Protocol → function that returns its devices, for the URL of the broker, the scope, and the seconds of their work."""


def _url(port: int) -> str:
    return f"opc.tcp://127.0.0.1:{port}"


_JOB_SECONDS = 60.0
# Messages of different topics arrive in any order: some arrive after the end of the job.
_SETTLE_SECONDS = 20.0
_CHANNELS = ("commands", "answers", "events", "tasks")
_SCOPE = "station-1"
_JOB_ORDER_ID = "AXLE-0001"
_WORK_MASTER_ID = "WM-AXLE-FIT-001"
_JOB_MANAGEMENT = ("Machines", _SCOPE, "MachineryBuildingBlocks", "JobManagement")


class Addresses(Struct, frozen=True):
    """The addresses of a running demo and the directory of its logs; `opcua_remote` is for other machines."""

    opcua: str
    opcua_remote: str
    broker: str
    directory: Path


@asynccontextmanager
async def open_demo(
    view: DemoView,
    over: str = "mqtt",
    opcua: OpcuaAddress | None = None,
    chart: Path | None = None,
    page: DemoPage | None = None,
) -> AsyncIterator[Addresses]:
    """Run the job on a new broker, gateway and devices; keep them running for the block, then stop and remove them.

    `over` is the protocol of the devices, a key of DEVICES. The OPC UA server listens at `opcua`, by default at a free
    port of this host. The demo writes the chart of the job to the file `chart`, and serves the station page `page`.
    Raises Unavailable with the reason when a part ends early, also inside the block, or when a check of the demo
    fails.
    """
    async with (
        limit_demo() as limit,
        _open_parts(view, DEVICES[over], opcua or OpcuaAddress(), limit.give_up, page) as parts,
        open_mes(MqttSettings(url=parts.addresses.broker), "mes") as mes,
    ):
        await _demonstrate(parts, mes, view, chart)
        limit.lift()
        tools = [device.name for device in parts.devices.every]
        work = partial(live, mes, view, parts.addresses.broker, _SCOPE, parts.recipe_data, tools)
        async with repeated(page, work):
            yield parts.addresses


class _Parts(Struct, frozen=True):
    addresses: Addresses
    settings: Path
    recipe: Recipe
    recipe_data: dict[str, Any]
    gateway: Process
    devices: DemoDevices
    late: dict[str, Process]


@asynccontextmanager
async def _open_parts(
    view: DemoView,
    choose: Callable[[str, str, float], DemoDevices],
    opcua: OpcuaAddress,
    on_end: GiveUp,
    page: DemoPage | None,
) -> AsyncIterator[_Parts]:
    """Start the broker, the gateway and the devices; late devices may not be ready yet."""
    view.title("microdcs-edge demo: one job, from the MES to the tools and back, on real parts")
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edge-demo-")))
        opcua = opcua.with_free_port()
        broker = await stack.enter_async_context(open_broker())
        addresses = Addresses(opcua.local, opcua.remote, broker.url, directory)
        view.report("broker", f"mosquitto at {broker.url}")
        devices = choose(broker.url, _SCOPE, WORK_S if page else _WORK_S)
        settings = directory / "edge.toml"
        living = living_settings(directory) if page else ""
        settings.write_text(_settings(addresses, opcua.endpoint, devices) + page_section(page, directory) + living)

        async def start(name: str, ready: str, *arguments: str) -> Process:
            log = directory / f"{name}.log"
            return await stack.enter_async_context(open_process(name, edge_command(*arguments), log, ready, on_end))

        async def start_all(some: tuple[DemoDevice, ...]) -> dict[str, Process]:
            return {
                demo_device.name: await start(demo_device.name, READY, "sim", *demo_device.arguments)
                for demo_device in some
            }

        early = await start_all(devices.early)
        await _until_ready(view, early, devices)
        gateway = await start("gateway", "serving=", "run", "--settings", str(settings))
        await gateway.wait_until_ready()
        view.report("gateway", "edge run, with a store of its own", f"OPC UA at {addresses.opcua_remote}")
        recipe, data = _recipe(devices.recipe)
        late = await start_all(devices.late)
        if page:
            press = await start(PRESS, READY, "sim", *press_arguments(broker.url))
            await press.wait_until_ready()
        yield _Parts(addresses, settings, recipe, data, gateway, devices, late)


async def _until_ready(view: DemoView, started: Mapping[str, Process], devices: DemoDevices) -> None:
    for device in devices.every:
        if device.name in started:
            await started[device.name].wait_until_ready()
            view.report(device.name, device.what)


def _recipe(file: str) -> tuple[Recipe, dict[str, Any]]:
    data = json.loads(resources.files("edge.features.simulator").joinpath("recipes", file).read_bytes())
    recipe, faults = parse_recipe(data)
    if recipe is None or faults:
        raise Defect(Text.of("the example recipe has faults: {faults}", faults="; ".join(map(str, faults))))
    return recipe, data


async def _demonstrate(parts: _Parts, mes: Mes, view: DemoView, chart: Path | None) -> None:
    with quoting_last_lines(parts.gateway):
        job = await _run_job(parts, mes, view)
        async with open_client(parts.addresses.opcua) as client:
            await _read_back(client, view)
        if chart is not None:
            await _draw(parts.settings, chart, view)
    steps, sent, took = job.active_steps, job.commands, job.milliseconds
    view.verdict(f"DEMO OK  {job.status}, {steps} steps, {sent} commands, {took} ms")


async def _run_job(parts: _Parts, mes: Mes, view: DemoView) -> ObservedJob:
    """Push the station settings, run the job and observe it; raises Unavailable when it deviates from the recipe."""
    async with open_session(MqttSettings(url=parts.addresses.broker), "bystander") as bystander:
        job = ObservedJob(_SCOPE, _JOB_ORDER_ID, parts.recipe)

        async def take_job(_topic: str, event: CloudEvent) -> None:
            job.take_job_message(event, now_ms())
            apply_station_report(job, event, parts.devices.unheard, now_ms())
            view.refresh(job)

        async def take_equipment(message: Message) -> None:
            *_, equipment, channel = message.topic.split("/")
            job.take_equipment_message(equipment, channel, to_event(message), now_ms())
            view.refresh(job)

        await mes.watch(_SCOPE, take_job)
        for channel in _CHANNELS:
            await bystander.subscribe(f"app/equipment/+/{channel}", take_equipment)
        await _configure(mes, parts)
        await _until_ready(view, parts.late, parts.devices)
        view.report("MES", f"pushed station settings and Work Master {_WORK_MASTER_ID}")
        with view.follow(job):
            await _store_and_start(mes, view)
            if await wait_until(lambda: job.has_ended, _JOB_SECONDS):
                await wait_until(lambda: not job.faults(), _SETTLE_SECONDS)
        if faults := job.faults():
            raise Unavailable("; ".join(map(str, faults)))
        return job


async def _configure(mes: Mes, parts: _Parts) -> None:
    master = WorkMaster(
        id=_WORK_MASTER_ID,
        description=LocalizedText(text="Fit the rear axle", locale="en"),
        data=parts.recipe_data,
        dataschema=RECIPE_DATASCHEMA,
    )
    await mes.configure(_SCOPE, "jobacceptance", {"max_downloadable_job_orders": 10})
    await mes.configure(_SCOPE, "equipment", [Equipment(id=CONTROLLER), Equipment(id=CAMERA)])
    await mes.configure(_SCOPE, "workmaster", master)


async def _store_and_start(mes: Mes, view: DemoView) -> None:
    order = JobOrder(
        job_order_id=_JOB_ORDER_ID,
        description=(LocalizedText(text="Rear axle of the first car today", locale="en"),),
        work_master_id=(WorkMaster(id=_WORK_MASTER_ID),),
        equipment_requirements=(Equipment(id=CONTROLLER), Equipment(id=CAMERA)),
    )
    answer = await mes.call(_SCOPE, "StoreAndStart", OrderCall(job_order=order))
    view.report("", f"called StoreAndStart for {_JOB_ORDER_ID}; the station answered {answer.status.name}")
    if answer.status is not ReturnStatus.NO_ERROR:
        raise Refused(
            "job", Text.of("the station did not take the job: {reasons}", reasons=repr(answer.reasons or answer.status))
        )


async def _read_back(client: OpcuaSession, view: DemoView) -> None:
    """Read the job as any OPC UA client does; raises Unavailable unless it shows as completed there."""
    management = await client.find(*_JOB_MANAGEMENT)
    orders = await client.find(*_JOB_MANAGEMENT, "JobOrderControl", "JobOrderList")
    responses = await client.find(*_JOB_MANAGEMENT, "JobOrderResults", "JobOrderResponseList")
    shown: list[list[dict[str, Any]]] = []

    async def agree() -> bool:
        shown[:] = [await client.read(orders), await client.read(responses)]
        states = [(entry["JobOrder"]["JobOrderID"], _status(entry["State"])) for entry in shown[0]]
        states += [(entry["JobOrderID"], _status(entry["JobState"])) for entry in shown[1]]
        return states == [(_JOB_ORDER_ID, COMPLETED)] * 2

    # The lists show a commit of the store with a short delay.
    if not await wait_until(agree, _SETTLE_SECONDS):
        raise Unavailable(
            Text.of("over OPC UA the job does not show as {completed}: {shown}", completed=COMPLETED, shown=shown)
        )
    (order,), (response,) = shown
    masters = ", ".join(master["ID"] for master in order["JobOrder"]["WorkMasterID"])
    view.report("OPC UA", "what a client reads:")
    view.quote(
        management.path,
        f"…{orders.path.removeprefix(management.path)}",
        f"    {order['JobOrder']['JobOrderID']}  {_status(order['State'])}  {masters}",
        f"…{responses.path.removeprefix(management.path)}",
        f"    {response['JobOrderID']}  {_status(response['JobState'])}",
        *(f"      {_result(value)}" for value in response["JobResponseData"]),
    )


def _status(states: list[dict[str, Any]]) -> str:
    top, *below = [state["StateText"] for state in states]
    return f"{top} ({below[0]})" if below else str(top)


def _result(parameter: dict[str, Any]) -> str:
    parts = parameter.get("Subparameters", ())
    values = {part["ID"]: _value(part) for part in parts if part["Value"] is not None}
    shown = values or parameter["Value"]
    # Subparameters without values, such as those of Attempts, are counted.
    return f"{parameter['ID']:<15}{len(parts) if shown is None else plain_text(shown)}"


def _value(parameter: dict[str, Any]) -> Any:
    unit = parameter.get("EngineeringUnits", {}).get("DisplayName")
    return f"{parameter['Value']} {unit}" if unit else parameter["Value"]


async def _draw(settings: Path, chart: Path, view: DemoView) -> None:
    """Draw the chart of the job; an error, such as a folder without write access, does not fail the demo."""
    command = edge_command("draw", "--job", _JOB_ORDER_ID, "--settings", str(settings), "--output", str(chart))
    try:
        await run_process(command)
    except Unavailable as error:
        view.report("chart", *error.message.splitlines())
    else:
        view.report("chart", f"the job as a sequential function chart: {chart}")


def _settings(addresses: Addresses, endpoint: str, devices: DemoDevices) -> str:
    """Return the settings of the gateway; strings and lists of strings are the same in JSON and in TOML."""
    text = partial(json.dumps, ensure_ascii=False)
    southbound = "".join(f"\n{device.section()}" for device in devices.every)
    return f"""\
[gateway]
name = "demo"
scopes = [{text(_SCOPE)}]

[redis]
url = {text(f"embedded:{addresses.directory / 'store'}")}

# The station files of this machine, if there are any, belong to its gateway.
[station]
files = ""

[mqtt]
url = {text(addresses.broker)}

{opcua_section(addresses.directory, endpoint)}
[logging]
format = "console"
{southbound}"""
