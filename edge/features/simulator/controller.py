"""A simulated tightening controller: accepts commands over MQTT 5 and answers with torque and angle after a delay."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import structlog

from edge.features.simulator.presence import announce_presence
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import TaskGroup, background_task
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent

TOPIC_PREFIX = "app/equipment"
WORK_SECONDS = 0.2
# Number of commands that the controller remembers to recognize a repeated one.
MEMORY = 10_000
RETRY_SECONDS = 0.5

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_controller(
    session: MqttSession,
    name: str,
    *,
    topic_prefix: str = TOPIC_PREFIX,
    delay: float = WORK_SECONDS,
    failing: Collection[str] = (),
    forgetful: bool = False,
    locked: bool = False,
) -> AsyncIterator["SimulatedController"]:
    """Start a controller that accepts commands on `{topic_prefix}/{name}/commands` and answers after `delay` seconds.

    It answers commands whose type is in `failing` with an error. A `forgetful` controller simulates lost memory: it
    answers a start that is offered again with the error `unknown`. A `locked` one declines a start without permission.
    """
    permissions = ToolPermissions() if locked else None
    controller = SimulatedController(
        session, f"{topic_prefix}/{name}", delay, failing, forgetful=forgetful, permissions=permissions
    )
    async with background_task(controller.run(), f"controller {name}"):
        if permissions:
            await session.follow(f"{controller.topic}/enabled/#", permissions.take)
        await session.subscribe(f"{controller.topic}/commands", controller.take)
        async with announce_presence(session, controller.topic):
            yield controller


class ToolPermissions:
    """The retained permissions of a tool: `enabled` of the gateway, and those of other systems below it."""

    def __init__(self) -> None:
        self._given: dict[str, bool] = {}

    async def take(self, message: Message) -> None:
        """Keep a permission; an empty message removes it."""
        if message.payload:
            self._given[message.topic] = message.payload == b"true"
        else:
            self._given.pop(message.topic, None)

    def missing(self, topic: str) -> str:
        """Return why the tool of a topic must not work; empty with every permission."""
        own = f"{topic}/enabled"
        withdrawn = sorted(name for name, is_given in ({own: False} | self._given).items() if not is_given)
        return f"the tool is disabled by {withdrawn[0]}" if withdrawn else ""


class _KnownCommand:
    """A command that the controller has received, and its answer; a repeated one has the same type and data."""

    def __init__(self, command: CloudEvent) -> None:
        self._content = command.type, command.data
        self.answer: Message | None = None

    def is_same(self, command: CloudEvent) -> bool:
        """Return whether a command of the same id asks for the same work."""
        return self._content == (command.type, command.data)


class SimulatedController:
    """A simulated controller; it records `commands`, dropped `duplicates` and ids of `stopped` commands, in order.

    `conflicts` are commands with the id of another one: it declines them.
    """

    def __init__(
        self,
        session: MqttSession,
        topic: str,
        delay: float,
        failing: Collection[str],
        *,
        forgetful: bool = False,
        permissions: ToolPermissions | None = None,
    ) -> None:
        self.topic = topic
        self.commands: deque[CloudEvent] = deque(maxlen=MEMORY)
        self.duplicates: deque[CloudEvent] = deque(maxlen=MEMORY)
        self.conflicts: deque[CloudEvent] = deque(maxlen=MEMORY)
        self.stopped: deque[str] = deque(maxlen=MEMORY)
        self._session = session
        self._delay = delay
        self._failing = failing
        self._forgetful = forgetful
        self._permissions = permissions
        self._known: dict[tuple[str, str], _KnownCommand] = {}
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._accepted: asyncio.Queue[tuple[CloudEvent, str]] = asyncio.Queue()

    async def run(self) -> None:
        """Execute the accepted commands concurrently until cancelled."""
        async with TaskGroup() as tasks:
            while True:
                command, answers_topic = await self._accepted.get()
                task = tasks.create_task(self._work(command, answers_topic), name=f"command {command.id}")
                self._at_work[command.id] = task

    async def take(self, message: Message) -> None:
        """Handle a command message: accept, drop or stop the command."""
        answers_topic = message.response_topic or f"{self.topic}/answers"
        if message.retain:
            _log.warning("retained command dropped", topic=message.topic)
            return
        try:
            command = to_event(message)
        except Refused as refusal:
            _log.warning("command unreadable", reason=refusal.message)
            return
        phase = command.extensions.get("phase", "start")
        if known_command := self._known.get((command.id, phase)):
            await self._repeat(known_command, command, answers_topic)
            return
        self._remember(command, phase)
        self.commands.append(command)
        _log.info("command", action=_member(command.data, "action"), phase=phase, type=command.type, id=command.id)
        match phase:
            case "start" if self._forgetful and "offeredagain" in command.extensions:
                reason = "the controller has lost its memory"
                await self._answer(command, answers_topic, None, kind="unknown", reason=reason)
            case "start" if self._permissions and (reason := self._permissions.missing(self.topic)):
                await self._answer(command, answers_topic, None, kind="disabled", reason=reason)
            case "start" | "reset":
                self._accepted.put_nowait((command, answers_topic))
            case "stop":
                self._stop(command.id)
                await self._answer(command, answers_topic, None, kind="stopped", reason="the command was stopped")
            case _:
                _log.warning("command of an unknown phase", phase=phase, id=command.id)

    async def _repeat(self, known: _KnownCommand, command: CloudEvent, answers_topic: str) -> None:
        """Drop a repeated command, and send its answer again, which the broker may have lost; decline another one."""
        if not known.is_same(command):
            self.conflicts.append(command)
            reason = "another command had this id"
            await self._send(_answer_event(command, self.topic, None, "repeated_id", reason), answers_topic)
            return
        if known.answer:
            await self._session.send(known.answer)
        self.duplicates.append(command)

    def _remember(self, command: CloudEvent, phase: str) -> None:
        self._known[command.id, phase] = _KnownCommand(command)
        if len(self._known) > MEMORY:
            del self._known[next(iter(self._known))]

    def _stop(self, command_id: str) -> None:
        task = self._at_work.pop(command_id, None)
        if task is not None:
            task.cancel()
            self.stopped.append(command_id)

    async def _work(self, command: CloudEvent, answers_topic: str) -> None:
        await asyncio.sleep(self._delay)
        # From here on, a stop has no effect.
        self._at_work.pop(command.id, None)
        if command.type in self._failing:
            reason = "the simulated controller fails on request"
            await self._answer(command, answers_topic, None, kind="simulated", reason=reason)
        else:
            await self._answer(command, answers_topic, result_of(command))

    async def _answer(
        self, command: CloudEvent, answers_topic: str, data: object, *, kind: str | None = None, reason: str = ""
    ) -> None:
        """Send the answer to a command, retry until the broker accepts it, and remember it."""
        answer = _answer_event(command, self.topic, data, kind, reason)
        phase = command.extensions.get("phase", "start")
        if known_command := self._known.get((command.id, phase)):
            known_command.answer = to_message(answer, answers_topic)
        await self._send(answer, answers_topic)

    async def _send(self, answer: CloudEvent, answers_topic: str) -> None:
        message = to_message(answer, answers_topic)
        while True:
            try:
                await self._session.send(message)
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return


def _answer_event(command: CloudEvent, topic: str, data: object, kind: str | None, reason: str) -> CloudEvent:
    return CloudEvent(
        id=f"{command.id}/answer",
        source=f"/{topic}",
        type=command.type,
        subject=command.subject,
        correlationid=command.correlationid,
        causationid=command.id,
        data=data,
        mdcserrorkind=kind,
        mdcserrormessage=reason or None,
    )


def result_of(command: CloudEvent) -> dict[str, Any]:
    """Return a simulated result: for tightening a torque near `torque_spec` (Nm), for any other command `done`."""
    if command.extensions.get("phase") == "reset":
        return {"reset": True}
    if "tighten" not in command.type:
        return {"done": True}
    number = re.match(r"\d+(?:\.\d+)?", str(_member(_member(command.data, "parameters"), "torque_spec")))
    target = float(number.group()) if number else 10.0
    return {"torque": round(target * 1.0024, 1), "angle": 41.5}


def _member(data: object, name: str) -> object:
    return data.get(name) if isinstance(data, dict) else None
