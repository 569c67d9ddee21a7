"""The plant around a gateway under test: a MES that notes what it hears, and equipment that waits to be released."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import resources
from typing import Any

from edge.config import MqttSettings
from edge.features.simulator.camera import open_camera
from edge.features.simulator.mes import Mes, open_mes
from edge.links.mqtt import Message, MqttSession, open_session, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, OrderCall, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA

SCOPE = "station-1"
RECIPE = json.loads(resources.files("edge.features.simulator").joinpath("recipes/rear-axle.json").read_bytes())
PUSHED = {"qualifier": "N", "interaction": "push_command"}
STEPS = {step["name"] for step in RECIPE["steps"]} - {"Rejected"}
PUSHING = {
    "steps": [{"name": "Position", "initial": True}, {"name": "Tighten"}, {"name": "Done"}],
    "transitions": [
        {"source": "Position", "target": "Tighten", "condition": "always"},
        {"source": "Tighten", "target": "Done", "condition": "always"},
    ],
    "actions": [
        {"name": name, "step": name.capitalize(), "type_id": f"com.example.station.{name}.v1", **PUSHED}
        for name in ("position", "tighten")
    ],
}
"""A recipe in which nothing happens but the wrench's answers."""


def order(job_order_id: str) -> OrderCall:
    """Ask for the job of RECIPE."""
    return OrderCall(job_order=JobOrder(job_order_id=job_order_id, work_master_id=(WorkMaster(id="WM-1"),)))


class Heard:
    """What the MES heard of the jobs, in order; `retained` is what stands on the topics below the scope now."""

    def __init__(self) -> None:
        self.events: list[CloudEvent] = []
        self.retained: dict[str, Any] = {}
        self.emptied: list[str] = []

    async def listen(self, session: MqttSession, prefix: str) -> None:
        """Hear all that is published of the scope below a topic prefix, but for the index."""
        for below in ("events", "data", "order/+", "result/+"):
            await session.subscribe(f"{prefix}/{SCOPE}/{below}", self.take)

    async def take(self, message: Message) -> None:
        """Note a message."""
        below = "/".join(message.topic.split("/")[2:])
        if "/" not in below:
            event = to_event(message)
            # An event that is published again has the same id.
            if event.id not in {cloud_event.id for cloud_event in self.events}:
                self.events.append(event)
        elif message.payload:
            self.retained[below] = to_event(message).data
        else:
            self.retained.pop(below, None)
            self.emptied.append(below)

    def states(self, job_order_id: str = "J1") -> list[str]:
        """Return the states of a job in its status events, with the sub-state."""
        return [
            "/".join(state["StateText"]["Text"] for state in event.data["JobState"])
            for event in self.events
            if event.type == STATUS_EVENT_TYPE and event.data["JobOrder"]["JobOrderID"] == job_order_id
        ]

    def stands(self, below: str) -> str | None:
        """Return the state in a retained topic, `order/…` or `result/…`; None if it is empty."""
        document = self.retained.get(below, {})
        state = document.get("State") or document.get("JobState")
        return state[0]["StateText"]["Text"] if state else None

    def ended(self, job_order_id: str = "J1") -> bool:
        """Return whether the end of a job was published, and is retained on its topics."""
        topics = (f"result/{job_order_id}", f"order/{job_order_id}")
        reported = self.states(job_order_id)[-1:] == ["Ended/Completed"]
        return reported and all(self.stands(topic) == "Ended" for topic in topics)

    def activations(self, job_order_id: str = "J1") -> Counter[str]:
        """Count how often each step of a job became active."""
        return Counter(
            step["step"]
            for event in self.events
            if event.type == PROGRESS_TYPE and event.data["job_order_id"] == job_order_id
            for step in event.data["steps"]
            if step["active"]
        )


class Wrench:
    """Equipment that answers no command before it is released; a repeated one it answers again."""

    def __init__(self, session: MqttSession, topic: str) -> None:
        self.commands: list[CloudEvent] = []
        self.released = asyncio.Event()
        self._session = session
        self._topic = topic
        self._waiting: list[Message] = []

    async def take(self, message: Message) -> None:
        """Take a command."""
        self.commands.append(to_event(message))
        if self.released.is_set():
            await self._answer(message)
        else:
            self._waiting.append(message)

    async def release(self) -> None:
        """Answer what waits, and from now on at once."""
        self.released.set()
        for message in self._waiting:
            await self._answer(message)

    def ids(self) -> dict[str, set[str]]:
        """Return the command ids of each action."""
        actions = {command.data["action"] for command in self.commands}
        return {
            action: {cloud_event.id for cloud_event in self.commands if cloud_event.data["action"] == action}
            for action in sorted(actions)
        }

    async def _answer(self, message: Message) -> None:
        command = to_event(message)
        answer = CloudEvent(
            id=new_id(), source=f"/{self._topic}", type=command.type, causationid=command.id, data={"torque": 85.2}
        )
        assert message.response_topic
        await self._session.send(to_message(answer, message.response_topic))


class Plant:
    """MES and equipment on one broker, below one topic prefix."""

    def __init__(self, sessions: Sequence[MqttSession], mes: Mes, heard: Heard, wrench: Wrench) -> None:
        self._sessions = sessions
        self.mes = mes
        self.heard = heard
        self.wrench = wrench

    @property
    def connected(self) -> bool:
        """Return whether equipment and listener are connected to their brokers."""
        return all(session.connected for session in self._sessions)

    async def configure(self, recipe: dict[str, Any] = RECIPE) -> None:
        """Store a Work Master with a recipe."""
        master = WorkMaster(id="WM-1", data=recipe, dataschema=RECIPE_DATASCHEMA)
        await self.mes.configure(SCOPE, "workmaster", master)


@asynccontextmanager
async def opened_plant(mqtt: MqttSettings, prefix: str, equipment: MqttSettings | None = None) -> AsyncIterator[Plant]:
    """Open all that is not the gateway; the equipment is at a broker of its own if one is given."""
    equipment = equipment or mqtt
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        listener = await enter(open_session(mqtt, f"{prefix}-listener"))
        device = await enter(open_session(equipment, f"{prefix}-device"))
        camera = await enter(open_session(equipment, f"{prefix}-camera"))
        heard = Heard()
        await heard.listen(listener, prefix)
        wrench = Wrench(device, f"{prefix}/wrench")
        await device.subscribe(f"{prefix}/wrench/commands", wrench.take)
        await enter(open_camera(camera, "camera", SCOPE, topic_prefix=prefix, interval=0.05, patience=0.5))
        mes = await enter(open_mes(mqtt, f"{prefix}-mes", topic_prefix=prefix))
        yield Plant((listener, device, camera), mes, heard, wrench)
