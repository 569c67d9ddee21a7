"""Kill the gateway and disconnect a device at random instants; the device's own log shows each work at most once.

A picture may be taken again, but only after the camera has lost the job in a power cut.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from edge.config import (
    GatewaySettings,
    IjtSettings,
    MqttEquipmentSettings,
    MqttSettings,
    NorthboundSettings,
    RedisSettings,
    Settings,
    VisionSettings,
)
from edge.errors import Refused, Unavailable
from edge.links.background_task import background_task
from edge.links.mqtt import Message, MqttSession, open_session, to_event
from edge.model.isa95 import JobOrder, OrderCall, Parameter, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sim.broker import open_broker
from edge.sim.ijt import JoiningController, open_ijt
from edge.sim.mes import Mes, open_mes
from edge.sim.vision import VisionCamera, open_vision
from edge.store import dead_letters, runs
from edge.store.client import Store
from edge.store.opening import open_store
from tests.app.running import NO_OPCUA, Gateway, edge_run, written
from tests.store.servers import own_server

TYPE_ID, SCOPE, PREFIX = "chaos.device.v1", "station-1", "chaos"
WORK_S = 0.3
JOB_ENDS_WITHIN_S = 60.0
ENDED = "Ended"


class Device(Protocol):
    """A simulated device with its own log of what it has started and finished, by job id."""

    settings: Any
    repeatable: bool
    """Whether its work may be done again after the device has lost it."""

    def started(self, job_id: str) -> int:
        """Return how often it has started the work of a job."""

    def results(self) -> set[str]:
        """Return the jobs of which it holds a result."""

    async def disconnect(self, seconds: float) -> None:
        """Close the network for a while; the device continues to work."""

    async def power_cut(self, seconds: float) -> None:
        """Close the network for a while, and lose what is not durable."""


class Spindle:
    """A tightening controller; its spindle counts by the name of the joining process."""

    repeatable = False

    def __init__(self, controller: JoiningController) -> None:
        self._controller = controller
        self.settings = IjtSettings(kind="ijt", type_ids=(TYPE_ID,), url=controller.device.url, security="none")

    def started(self, job_id: str) -> int:
        return self._controller.begun.count(f"{job_id} 85Nm")

    def results(self) -> set[str]:
        return {each.removesuffix(" 85Nm") for each in self._controller.finished}

    async def disconnect(self, seconds: float) -> None:
        async with self._controller.device.unplugged():
            await asyncio.sleep(seconds)

    async def power_cut(self, seconds: float) -> None:
        async with self._controller.device.unplugged():
            self._controller.forget()
            await asyncio.sleep(seconds)


class Lens:
    """A camera; its MeasIds are the ids of commands."""

    repeatable = True

    def __init__(self, camera: VisionCamera) -> None:
        self._camera = camera
        self.settings = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none")

    def started(self, job_id: str) -> int:
        return sum(each.startswith(f"{job_id}/") for each in self._camera.begun)

    def results(self) -> set[str]:
        return {each.partition("/")[0] for each in self._camera.finished}

    async def disconnect(self, seconds: float) -> None:
        async with self._camera.device.unplugged():
            await asyncio.sleep(seconds)

    async def power_cut(self, seconds: float) -> None:
        async with self._camera.device.unplugged():
            await self._camera.forget()
            await asyncio.sleep(seconds)


class Wrench:
    """A device over MQTT that keeps the ids of its commands, and its answers, as on flash.

    A power cut takes that memory too: it answers a command that is offered again by `unknown`. `_log` is what its
    motor has done; no command reads it.
    """

    repeatable = False

    def __init__(self, broker_url: str) -> None:
        self.settings = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=PREFIX)
        self._mqtt = MqttSettings(url=broker_url)
        self._topic = f"{PREFIX}/device"
        self._log: list[str] = []
        self._begun: set[str] = set()
        self._answers: dict[str, bool] = {}
        self._session: MqttSession | None = None
        self._up = asyncio.Event()
        self._up.set()
        self._down = asyncio.Event()
        self._to_do: asyncio.Queue[str] = asyncio.Queue()

    async def run(self) -> None:
        """Connect, work and answer until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_connected())
            while True:
                command_id = await self._to_do.get()
                await asyncio.sleep(WORK_S)
                if command_id in self._begun:
                    self._answers[command_id] = True
                    await self._answer(command_id)

    def started(self, job_id: str) -> int:
        return sum(each.startswith(f"{job_id}/") for each in self._log)

    def results(self) -> set[str]:
        return {each.partition("/")[0] for each in self._answers}

    async def disconnect(self, seconds: float) -> None:
        self._up.clear()
        self._down.set()
        await asyncio.sleep(seconds)
        self._up.set()

    async def power_cut(self, seconds: float) -> None:
        self._begun.clear()
        self._answers.clear()
        await self.disconnect(seconds)

    async def _keep_connected(self) -> None:
        while True:
            await self._up.wait()
            self._down.clear()
            with suppress(Unavailable):
                async with open_session(self._mqtt, "chaos-device", session_expiry=0) as session:
                    await session.subscribe(f"{self._topic}/commands", self._take)
                    self._session = session
                    for command_id in tuple(self._answers):
                        await self._answer(command_id)
                    await session.publish(f"{self._topic}/presence", b"online", retain=True)
                    await self._down.wait()
            self._session = None

    async def _take(self, message: Message) -> None:
        command = to_event(message)
        if command.extensions["phase"] != "start":
            await self._answer(command.id)
        elif command.id in self._begun:
            if command.id in self._answers:
                await self._answer(command.id)
        elif "offeredagain" in command.extensions:
            await self._answer(command.id, mdcserrorkind="unknown")
        else:
            self._log.append(command.id)
            self._begun.add(command.id)
            self._to_do.put_nowait(command.id)

    async def _answer(self, command_id: str, **error: str) -> None:
        if self._session is not None:
            with suppress(Unavailable):
                properties = {"causationid": command_id} | error
                await self._session.publish(f"{self._topic}/answers", b'{"done": true}', user_properties=properties)


@dataclass
class Figures:
    """What a campaign has counted.

    `allowed` are the repetitions of work that the device may do again, because it had lost the work.
    """

    disturbances: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    allowed: int = 0
    power_cuts: set[str] = field(default_factory=set)
    repeated: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def faults(self) -> list[str]:
        """Return what must not be."""
        return [f"{what}: {', '.join(jobs)}" for what, jobs in vars(self).items() if isinstance(jobs, list) and jobs]


class RestartedGateway:
    """`edge run`, started again whenever it was killed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._gateway: Gateway | None = None
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Keep it running until cancelled."""
        while True:
            async with edge_run("--settings", self._file) as gateway:
                self._gateway = gateway
                with suppress(AssertionError, TimeoutError):
                    await gateway.until("ready")
                    self.ready.set()
                await gateway.ended(deadline=3600.0)
                self.ready.clear()

    async def kill(self, _seconds: float) -> None:
        """Kill it without warning."""
        if self._gateway:
            with suppress(ProcessLookupError):
                self._gateway.send(signal.SIGKILL)


@asynccontextmanager
async def open_device(kind: str, broker_url: str) -> AsyncIterator[Device]:
    """Open the device of a kind: `opcua` is a tightening controller, `vision` a camera, `mqtt` a wrench."""
    match kind:
        case "opcua":
            async with open_ijt("device", delay=WORK_S) as controller:
                yield Spindle(controller)
        case "vision":
            async with open_vision("device", delay=WORK_S) as camera:
                yield Lens(camera)
        case _:
            wrench = Wrench(broker_url)
            async with background_task(wrench.run(), "wrench"):
                yield wrench


async def carry_out(kind: str, number: int, directory: Path, seed: int, publish_text: Callable[[str], None]) -> Figures:
    """Run jobs one by one, each disturbed at a random instant, and compare the device's log with the store."""
    figures, chance, began = Figures(), random.Random(seed), time.monotonic()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        redis = RedisSettings(url=(await enter(own_server(directory))).url)
        broker = await enter(open_broker("autosave_interval 1"))
        device = await enter(open_device(kind, broker.url))
        settings = Settings(
            gateway=GatewaySettings(name="edge"),
            redis=redis,
            mqtt=MqttSettings(url=broker.url, client_id="edge"),
            northbound=NorthboundSettings(topic_prefix=PREFIX),
            southbound={"device": device.settings},
            opcua=NO_OPCUA,
        )
        gateway = RestartedGateway(written(settings, directory))
        await enter(background_task(gateway.run(), "gateway"))
        store = await enter(open_store(redis, None))
        mes = await enter(open_mes(MqttSettings(url=broker.url), "chaos-mes", topic_prefix=PREFIX))
        await gateway.ready.wait()
        await mes.configure(SCOPE, "workmaster", WorkMaster(id="WM", data=RECIPE, dataschema=RECIPE_DATASCHEMA))
        acts = {
            "gateway killed": gateway.kill,
            "device cut off": device.disconnect,
            "device power cut": device.power_cut,
        }
        for n in range(number):
            what, act = chance.choice(list(acts.items()))
            figures.disturbances[what] += 1
            if act == device.power_cut:
                figures.power_cuts.add(f"J{n}")
            await _run_job(f"J{n}", mes, store, gateway, figures, partial(act, chance.uniform(0.05, 1.0)), chance)
            if n % 10 == 9:
                publish_text(f"  {n + 1} jobs: {dict(figures.outcomes)}")
        await asyncio.sleep(2.0)
        await _compare(number, device, store, figures)
    figures.seconds = time.monotonic() - began
    return figures


async def _run_job(
    job_id: str,
    mes: Mes,
    store: Store,
    gateway: RestartedGateway,
    figures: Figures,
    act: Callable[[], Any],
    chance: random.Random,
) -> None:
    parameters = (
        Parameter(id="joining_process_id", value=f"{job_id} 85Nm"),
        Parameter(id="recipe_id", value="P1"),
    )
    order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),), job_order_parameters=parameters)
    await gateway.ready.wait()
    with suppress(Unavailable, Refused):
        await mes.call(SCOPE, "StoreAndStart", OrderCall(job_order=order))
    await asyncio.sleep(chance.uniform(0.0, 2.5 * WORK_S))
    await act()
    end = time.monotonic() + JOB_ENDS_WITHIN_S
    while time.monotonic() < end:
        with suppress(Unavailable):
            stored = await runs.load(store, job_id)
            if stored is not None and stored.run.ended:
                (work,) = [each for key, each in stored.run.associations.items() if each.action == "work"]
                figures.outcomes[work.state.value] += 1
                return
        await asyncio.sleep(0.05)
    figures.stuck.append(job_id)


async def _compare(number: int, device: Device, store: Store, figures: Figures) -> None:
    """Compare the log of the device with what reached the store."""
    letters = {each.job_id for each in (await dead_letters.load_all(store)).values()}
    for n in range(number):
        job_id = f"J{n}"
        stored = await runs.load(store, job_id)
        attempts = max([each.attempt for each in stored.run.associations.values()] or [1]) if stored else 1
        if device.started(job_id) > attempts:
            if device.repeatable and job_id in figures.power_cuts:
                figures.allowed += 1
            else:
                figures.repeated.append(job_id)
        reached = stored is not None and any(each.result is not None for each in stored.run.associations.values())
        if job_id in device.results() and not reached and job_id not in letters:
            figures.lost.append(job_id)


RECIPE = {
    "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
    "transitions": [
        {
            "source": "Work",
            "target": "Done",
            "condition": "actions.work.done or actions.work.failed or actions.work.timed_out or actions.work.unknown",
        }
    ],
    "actions": [
        {
            "name": "work",
            "step": "Work",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": TYPE_ID,
            "timeout_seconds": 30,
        }
    ],
}
"""Work that may come to any end; its joining process comes with the order."""
