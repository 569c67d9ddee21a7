"""The devices of a campaign: equipment, each with a log of its own of what it has started and finished."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.features.joining.settings import IjtSettings
from edge.features.joining.simulated.controller import JoiningController, open_ijt
from edge.features.openprotocol.conversion import VIN_LENGTH
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.simulator.controller import ToolPermissions
from edge.features.vision.settings import VisionSettings
from edge.features.vision.simulated.camera import VisionCamera, open_vision
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, open_session, to_event
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_tool import Habits

TYPE_ID, PREFIX = "chaos.device.v1", "chaos"
WORK_S = 0.3


class Device(Protocol):
    """A simulated device with its own log of what it has started and finished, by job id."""

    settings: Any
    repeatable: bool
    """Whether its work may be done again after the device has lost it."""

    def lock_faults(self) -> list[str]:
        """Return why the tool could move without a command, and the commands that came without the permission."""

    def started(self, job_id: str) -> int:
        """Return how often it has started the work of a job."""

    def order(self) -> list[str]:
        """Return the jobs as it has begun their works, one entry for each work."""

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
        url = controller.device.url
        self.settings = IjtSettings(kind="ijt", type_ids=(TYPE_ID,), url=url, security="none", lock="on")

    def lock_faults(self) -> list[str]:
        return ["the tool is enabled"] if self._controller.enabled else []

    def started(self, job_id: str) -> int:
        return self._controller.begun.count(f"{job_id} 85Nm")

    def order(self) -> list[str]:
        return [text.removesuffix(" 85Nm") for text in self._controller.begun]

    def results(self) -> set[str]:
        return {text.removesuffix(" 85Nm") for text in self._controller.finished}

    async def disconnect(self, seconds: float) -> None:
        async with self._controller.device.unplugged():
            await asyncio.sleep(seconds)

    async def power_cut(self, seconds: float) -> None:
        async with self._controller.device.unplugged():
            self._controller.forget()
            await asyncio.sleep(seconds)


class Nutrunner:
    """A strict controller with Open Protocol, written from its specification; the log of its tool counts by VIN."""

    repeatable = False

    def __init__(self, controller: StrictController) -> None:
        self._controller = controller
        url = f"tcp://127.0.0.1:{controller.port}"
        self.settings = OpenProtocolSettings(kind="openprotocol", type_ids=(TYPE_ID,), url=url)

    def lock_faults(self) -> list[str]:
        violations = [f"the specification is violated: {violation}" for violation in self._controller.violations]
        return violations + (["the tool is enabled"] if self._controller.tool.enabled else [])

    def started(self, job_id: str) -> int:
        return self.order().count(job_id)

    def order(self) -> list[str]:
        return [_vin(entry.vin) for entry in self._controller.tool.entries("pulled")]

    def results(self) -> set[str]:
        return {_vin(str(values["vin"])) for values in self._controller.tool.results}

    async def disconnect(self, seconds: float) -> None:
        async with self._controller.unplugged():
            await asyncio.sleep(seconds)

    async def power_cut(self, seconds: float) -> None:
        async with self._controller.unplugged():
            self._controller.tool.lose_power()
            await asyncio.sleep(seconds)


def _vin(identifier: str) -> str:
    return identifier[:VIN_LENGTH].strip()


class Lens:
    """A camera; its MeasIds are the ids of commands."""

    repeatable = True

    def __init__(self, camera: VisionCamera) -> None:
        self._camera = camera
        self.settings = VisionSettings(kind="vision", type_ids=(TYPE_ID,), url=camera.device.url, security="none")

    def lock_faults(self) -> list[str]:
        return []

    def started(self, job_id: str) -> int:
        return sum(text.startswith(f"{job_id}/") for text in self._camera.begun)

    def order(self) -> list[str]:
        return [text.partition("/")[0] for text in self._camera.begun]

    def results(self) -> set[str]:
        return {text.partition("/")[0] for text in self._camera.finished}

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
        self.settings = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=PREFIX, lock="on")
        self._mqtt = MqttSettings(url=broker_url)
        self._topic = f"{PREFIX}/device"
        self._log: list[str] = []
        self._begun: set[str] = set()
        self._answers: dict[str, bool] = {}
        self._locked_out: list[str] = []
        self._permissions = ToolPermissions()
        self._has_lost_memory = False
        self._session: MqttSession | None = None
        self._up = asyncio.Event()
        self._up.set()
        self._down = asyncio.Event()
        self._is_new_connection = asyncio.Event()
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

    def lock_faults(self) -> list[str]:
        return self._locked_out + ([] if self._permissions.missing(self._topic) else ["the tool is enabled"])

    def started(self, job_id: str) -> int:
        return sum(text.startswith(f"{job_id}/") for text in self._log)

    def order(self) -> list[str]:
        return [text.partition("/")[0] for text in self._log]

    def results(self) -> set[str]:
        return {answer.partition("/")[0] for answer in self._answers}

    async def disconnect(self, seconds: float) -> None:
        self._up.clear()
        self._down.set()
        await asyncio.sleep(seconds)
        self._up.set()

    async def power_cut(self, seconds: float) -> None:
        self._begun.clear()
        self._answers.clear()
        self._has_lost_memory = True
        await self.disconnect(seconds)

    async def _keep_connected(self) -> None:
        while True:
            await self._up.wait()
            self._down.clear()
            with suppress(Unavailable):
                async with open_session(self._mqtt, "chaos-device", session_expiry=0) as session:
                    await session.follow(f"{self._topic}/enabled", self._permissions.take)
                    await session.subscribe(f"{self._topic}/commands", self._take)
                    self._session = session
                    session.listeners.append(self._on_change)
                    self._on_change(True)
                    async with background_task(self._greet(session), "birth"):
                        await self._down.wait()
            self._session = None

    def _on_change(self, connected: bool) -> None:  # noqa: FBT001 - the argument of a listener
        if connected:
            self._is_new_connection.set()

    async def _greet(self, session: MqttSession) -> None:
        """Repeat the answers and publish the presence on each connection: the broker may have lost both."""
        while True:
            await self._is_new_connection.wait()
            self._is_new_connection.clear()
            with suppress(Unavailable):
                for command_id in tuple(self._answers):
                    await self._answer(command_id)
                await session.publish(f"{self._topic}/presence", b"online", retain=True)

    async def _take(self, message: Message) -> None:
        command = to_event(message)
        if command.extensions["phase"] != "start":
            await self._answer(command.id)
        elif command.id in self._begun:
            if command.id in self._answers:
                await self._answer(command.id)
        elif "offeredagain" in command.extensions and self._has_lost_memory:
            await self._answer(command.id, mdcserrorkind="unknown")
        elif reason := self._permissions.missing(self._topic):
            self._locked_out.append(command.id)
            await self._answer(command.id, mdcserrorkind="disabled", mdcserrormessage=reason)
        else:
            self._log.append(command.id)
            self._begun.add(command.id)
            self._to_do.put_nowait(command.id)

    async def _answer(self, command_id: str, **error: str) -> None:
        if self._session is not None:
            with suppress(Unavailable):
                properties = {"causationid": command_id} | error
                await self._session.publish(f"{self._topic}/answers", b'{"done": true}', user_properties=properties)


@asynccontextmanager
async def open_device(kind: str, broker_url: str) -> AsyncIterator[Device]:
    """Open the device of a kind: `opcua` and `openprotocol` are controllers, `vision` a camera, `mqtt` a wrench."""
    match kind:
        case "opcua":
            async with open_ijt("device", delay=WORK_S) as controller:
                yield Spindle(controller)
        case "openprotocol":
            async with open_strict_controller(habits=Habits(work=WORK_S)) as nutrunner:
                yield Nutrunner(nutrunner)
        case "vision":
            async with open_vision("device", delay=WORK_S) as camera:
                yield Lens(camera)
        case _:
            wrench = Wrench(broker_url)
            async with background_task(wrench.run(), "wrench"):
                yield wrench
