"""The flows scene of the demo: a report of a sensor, one of job results, and a flow that is stopped in part."""

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import isclose
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from msgspec import Struct, field

from edge.config import MqttSettings
from edge.features.simulator.controller import open_controller
from edge.features.simulator.demo_parts import (
    DemoPage,
    OpcuaAddress,
    edge_command,
    limit_demo,
    open_demo_gateway,
    page_section,
    quoting_last_lines,
    repeated,
    scene_settings,
    wait_until,
)
from edge.features.simulator.demo_view import DemoView
from edge.features.simulator.mes import Mes, open_mes
from edge.features.simulator.process import run_process
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.links.local_broker import open_broker
from edge.links.mqtt import Message, MqttSession, open_session
from edge.model.isa95 import Equipment, JobOrder, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.ports.alarm import AlarmChangeKind, PublicAlarmChange

PRESS_TAG: Final = "press.pressure"
PRESS_TOPIC: Final = "plant/press/mean"
SHIFT_TOPIC: Final = "plant/shift/cmk"
LEAST_CMK: Final = 1.33
_SHIFT_SECONDS: Final = 8 * 3600


def press_report() -> dict[str, Any]:
    """Return a flow that publishes the mean of a tag each second."""
    nodes = [
        _node("pressure", "tag.window", tag=PRESS_TAG, seconds=60),
        _node("mean", "aggregate", of="mean"),
        _node("publish", "mqtt.publish", topic=PRESS_TOPIC),
    ]
    edges = [["pressure", "mean"], ["mean", "publish"]]
    return {"id": "press-report", "interval_seconds": 1, "nodes": nodes, "edges": edges}


def shift_report(limits: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return a flow that publishes Cmk of the torque of each action, with its limits, and raises an alarm below 1.33.

    It runs once; in a plant it has `shifts` in place of the interval.
    """
    nodes = [_node("report", "merge"), _node("publish", "mqtt.publish", topic=SHIFT_TOPIC)]
    edges = [["report", "publish"]]
    for action, (lsl, usl) in limits.items():
        torques, low, alarm = f"{action} torques", f"{action} is low", f"{action} alarm"
        message = f"Cmk of {action} is below {LEAST_CMK}"
        nodes += [
            _node(torques, "job.results", member="torque", action=action, seconds=_SHIFT_SECONDS),
            _node(action, "capability", lsl=lsl, usl=usl),
            _node(low, "switch", when=f"input.cmk < {LEAST_CMK}"),
            _node(alarm, "alarm.raise", alarm=f"cmk.{action}", severity=600, message=message),
        ]
        edges += [[torques, action], [action, "report"], [action, low], [low, alarm]]
    return {"id": "shift-report", "interval_seconds": 0, "nodes": nodes, "edges": edges}


def two_components(soak_seconds: float) -> dict[str, Any]:
    """Return a flow whose components a person stops and terminates, and one node of which fails."""
    nodes = [
        _node("heat", "constant", value=180),
        _node("soak", "delay", seconds=soak_seconds),
        _node("unload", "mqtt.publish", topic="plant/oven/unload"),
        _node("order", "constant", value="4711"),
        _node("ask ERP", "fail", message="status 503"),
        _node("book", "mqtt.publish", topic="plant/erp/book"),
        _node("wait for release", "delay", seconds=3600),
        _node("ship", "mqtt.publish", topic="plant/erp/ship"),
    ]
    edges = [
        *(["heat", "soak"], ["soak", "unload"]),
        *(["order", "ask ERP"], ["ask ERP", "book"], ["order", "wait for release"], ["wait for release", "ship"]),
    ]
    return {"id": "two-components", "interval_seconds": 0, "nodes": nodes, "edges": edges}


def _node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "config": config}


_SCOPE: Final = "station-1"
_EQUIPMENT: Final = "wrench"
_TIGHTEN: Final = "com.example.station.tighten.v1"
_WORK_MASTER: Final = "WM-TWO-BOLTS"
_SENSOR_TOPIC: Final = "sensors/press/pressure"
_PRESSURES: Final = (4.2, 4.6, 4.4, 5.0, 4.8)
_TORQUES: Final = (84.6, 85.0, 85.2, 85.0, 84.8)
_LIMITS: Final = {"front_bolt": (84.4, 86.0), "rear_bolt": (83.0, 87.0)}
"""The lower and the upper limit of the torque of each joining process, in Nm."""
_SOAK_SECONDS: Final = 12.0
_WITHIN_S: Final = 60.0


class FlowAddresses(Struct, frozen=True):
    """Where a kept scene is reached: broker, settings for other commands, OPC UA server."""

    broker: str
    settings: Path
    opcua: str
    """For a client on another machine, where the server listens for them."""


class _FlowScene(Struct, frozen=True):
    view: DemoView
    directory: Path
    settings: Path
    bystander: MqttSession
    mes: Mes
    received: dict[str, list[Any]] = field(default_factory=dict)
    alarms: list[PublicAlarmChange] = field(default_factory=list)

    async def edge_flows(self, *arguments: str) -> str:
        """Run a command of `edge flows` on the store of the gateway."""
        return await run_process(edge_command("flows", *arguments, "--settings", str(self.settings)))

    async def put(self, document: dict[str, Any]) -> None:
        """Register and start a flow."""
        file = self.directory / f"{document['id']}.json"
        file.write_text(json.dumps(document))
        self.view.report("flow", (await self.edge_flows("put", str(file), "--start")).strip())

    async def status(self, flow: str) -> dict[str, Any]:
        """Return the last cycle of a flow; one without end before the first."""
        shown = json.loads(await self.edge_flows("show", flow, "--json"))
        return shown["cycle"] or {"nodes": [], "ended_at": None}


@asynccontextmanager
async def open_flows_demo(
    view: DemoView, chart: Path, page: DemoPage | None = None, opcua: OpcuaAddress | None = None
) -> AsyncIterator[FlowAddresses]:
    """Show three flows; keep the parts running for the block, then remove them. The last flow is drawn to `chart`.

    Raises Unavailable with the reason when a part ends early, also inside the block, or when a flow does something else
    than it should.
    """
    view.title("microdcs-edge demo: flows next to the jobs, on real parts")
    async with AsyncExitStack() as stack:
        limit = await stack.enter_async_context(limit_demo())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edge-demo-")))
        broker = await stack.enter_async_context(open_broker())
        opcua = (opcua or OpcuaAddress()).with_free_port()
        view.report("broker", f"mosquitto at {broker.url}")
        settings = _settings(directory, broker.url, opcua.endpoint) + page_section(page, directory)
        gateway = await stack.enter_async_context(open_demo_gateway(directory, settings, limit.give_up))
        view.report(
            "gateway", "edge run with [flows] and [telemetry], with a store of its own", f"OPC UA at {opcua.remote}"
        )
        mqtt = MqttSettings(url=broker.url)
        mes = await stack.enter_async_context(open_mes(mqtt, "mes"))
        tool = await stack.enter_async_context(open_session(mqtt, _EQUIPMENT))
        await stack.enter_async_context(open_controller(tool, _EQUIPMENT, delay=0.05))
        bystander = await stack.enter_async_context(open_session(mqtt, "bystander"))
        scene = _FlowScene(view, directory, directory / "edge.toml", bystander, mes)
        with quoting_last_lines(gateway):
            await _listen(scene)
            await _show_press_report(scene)
            await _show_shift_report(scene)
            await _show_components(scene, chart)
        view.verdict(f"DEMO OK  3 flows, {len(scene.received[PRESS_TOPIC])} means published, 1 alarm of a shift report")
        limit.lift()
        async with repeated(page, partial(_repeat_work, scene)):
            yield FlowAddresses(broker.url, scene.settings, opcua.remote)


async def _listen(scene: _FlowScene) -> None:
    async def take(message: Message) -> None:
        scene.received.setdefault(message.topic, []).append(json.loads(message.payload))

    async def take_alarm(change: PublicAlarmChange) -> None:
        scene.alarms.append(change)

    for topic in (PRESS_TOPIC, SHIFT_TOPIC):
        await scene.bystander.subscribe(topic, take)
    await scene.mes.watch_alarms(_SCOPE, take_alarm)


async def _show_press_report(scene: _FlowScene) -> None:
    """Publish pressures as a sensor, and wait until the flow publishes their mean."""
    await scene.put(press_report())
    means = scene.received.setdefault(PRESS_TOPIC, [])
    await _require(lambda: None in means, "the flow did not run without samples")
    for value in _PRESSURES:
        await scene.bystander.send(Message(_SENSOR_TOPIC, json.dumps({"bar": value}).encode()))
    scene.view.report("sensor", f"{', '.join(map(str, _PRESSURES))} bar on {_SENSOR_TOPIC}")
    expected = fmean(_PRESSURES)
    await _require(
        lambda: isclose(means[-1] or 0, expected), Text.of("the mean {expected:g} was not published", expected=expected)
    )
    scene.view.report("broker", f"{PRESS_TOPIC} = {means[-1]:g}")


async def _show_shift_report(scene: _FlowScene) -> None:
    """Run jobs, and wait for Cmk of each joining process and for the alarm of the one that is too low."""
    await _configure(scene.mes)
    for number, torque in enumerate(_TORQUES, 1):
        await _run_job(scene.mes, f"BOLTS-{number}", torque)
    await _require(lambda: _has_ended(scene, len(_TORQUES)), "the jobs did not end")
    scene.view.report("MES", f"{len(_TORQUES)} jobs of {_WORK_MASTER} have tightened two bolts each")
    await scene.put(shift_report(_LIMITS))
    reports = scene.received.setdefault(SHIFT_TOPIC, [])
    await _require(lambda: bool(reports), "the shift report was not published")
    for action, report in reports[-1].items():
        lsl, usl = _LIMITS[action]
        figures = (
            f"n = {report['n']}  mean = {report['mean']:.2f} Nm  Cm = {report['cm']:.2f}  Cmk = {report['cmk']:.2f}"
        )
        scene.view.report("report", f"{action:<10}  {lsl:g} to {usl:g} Nm  {figures}")
    low = {f"cmk.{action}" for action, value in reports[-1].items() if value["cmk"] < LEAST_CMK}

    def raised() -> set[str]:
        return {change.alarm.rule for change in scene.alarms if change.kind is AlarmChangeKind.RAISED}

    problem = Text.of("the alarms are {raised}, and {expected} were expected", raised=raised(), expected=low)
    await _require(lambda: raised() == low == {"cmk.front_bolt"}, problem)
    scene.view.report("alarm", scene.alarms[0].alarm.message)


async def _show_components(scene: _FlowScene, chart: Path) -> None:
    """Stop a component in mid-cycle and terminate a node by hand, while another node fails."""
    document = two_components(_SOAK_SECONDS)
    await scene.put(document)
    scene.view.report("person", (await scene.edge_flows("stop", document["id"], "--component", "1")).strip())
    reason = ("--node", "wait for release", "--reason", "released by phone")
    scene.view.report("person", (await scene.edge_flows("terminate", document["id"], *reason)).strip())

    async def has_ended() -> bool:
        return (await scene.status(document["id"]))["ended_at"] is not None

    await _require(has_ended, "the cycle did not end")
    cycle = await scene.status(document["id"])
    found = {task["node"]: task["reason"] or task["status"] for task in cycle["nodes"]}
    expected = {
        **dict.fromkeys(("heat", "soak", "order"), "completed"),
        "unload": "component_stopped",
        "ask ERP": "status 503",
        "book": "dependency_failed",
        "wait for release": "released by phone",
        "ship": "dependency_failed",
    }
    if found != expected:
        raise Unavailable(Text.of("the nodes ended as {found}", found=found))
    scene.view.quote(*(await scene.edge_flows("draw", "--flow", document["id"])).rstrip().split("\n"))
    try:
        await scene.edge_flows("draw", "--flow", document["id"], "-o", str(chart))
    except Unavailable as error:
        # An error, such as a folder without write access, does not fail the demo.
        scene.view.report("chart", *error.message.splitlines())
    else:
        scene.view.report("chart", f"the flow as a graph: {chart}")


async def _repeat_work(scene: _FlowScene) -> None:
    """Send pressures each second, and run a job every ten seconds."""
    for number, value in enumerate(itertools.cycle(_PRESSURES)):
        await scene.bystander.send(Message(_SENSOR_TOPIC, json.dumps({"bar": value}).encode()))
        if not number % 10:
            job = len(_TORQUES) + 1 + number // 10
            await _run_job(scene.mes, f"BOLTS-{job}", _TORQUES[job % len(_TORQUES)])
        await asyncio.sleep(1)


async def _configure(mes: Mes) -> None:
    actions = [
        {"name": name, "step": name, "qualifier": "N", "interaction": "push_command", "type_id": _TIGHTEN}
        for name in _LIMITS
    ]
    front, rear = _LIMITS
    recipe = {
        "steps": [{"name": front, "initial": True}, {"name": rear}],
        "transitions": [{"source": front, "target": rear, "condition": "true"}],
        "actions": actions,
    }
    await mes.configure(_SCOPE, "equipment", [Equipment(id=_EQUIPMENT)])
    await mes.configure(_SCOPE, "workmaster", WorkMaster(id=_WORK_MASTER, data=recipe, dataschema=RECIPE_DATASCHEMA))


async def _run_job(mes: Mes, job_id: str, torque: float) -> None:
    order = JobOrder(
        job_order_id=job_id,
        work_master_id=(WorkMaster(id=_WORK_MASTER),),
        equipment_requirements=(Equipment(id=_EQUIPMENT),),
        job_order_parameters=(Parameter(id="torque_spec", value=f"{torque} Nm"),),
    )
    answer = await mes.call(_SCOPE, "StoreAndStart", OrderCall(job_order=order))
    if answer.status is not ReturnStatus.NO_ERROR:
        raise Unavailable(
            Text.of(
                "the station did not take job {job_id}: {reasons}",
                job_id=job_id,
                reasons=repr(answer.reasons or answer.status),
            )
        )


async def _has_ended(scene: _FlowScene, count: int) -> bool:
    """Return whether so many jobs have ended."""
    command = edge_command("jobs", "list", "--json", "--settings", str(scene.settings))
    return (await run_process(command)).count('"Ended"') >= count


async def _require(condition: Any, otherwise: str | Text) -> None:
    """Wait for a condition; raises Unavailable when it does not become true."""
    if not await wait_until(condition, _WITHIN_S):
        raise Unavailable(otherwise)


def _settings(directory: Path, broker: str, endpoint: str) -> str:
    """Return the settings of the gateway; strings are the same in JSON and in TOML."""
    text = partial(json.dumps, ensure_ascii=False)
    return f"""\
{scene_settings(directory, broker, _SCOPE, endpoint)}
[flows]
run = "on"
directory = {text(str(directory / "flows"))}

[telemetry]
mode = "on"

[source.press]
topic = {text(_SENSOR_TOPIC)}
pointer = "/bar"
tag = {text(PRESS_TAG)}

[southbound.{_EQUIPMENT}]
type_ids = [{text(_TIGHTEN)}]

[logging]
format = "console"
"""
