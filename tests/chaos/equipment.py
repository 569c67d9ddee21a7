"""Equipment that notes every command it gets, works on each once, and answers again what it is asked again."""

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass

from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, MqttSession, to_event, to_message
from edge.model.cloudevent import CloudEvent
from tests.chaos.recipes import MEASURE, SEEN, SILENT, is_good

RETRY_S = 0.2
ASK_AGAIN_S = 1.0


def number_of(job_id: str) -> int:
    """Return the number of a job."""
    return int(job_id.removeprefix("J"))


async def send_surely(session: MqttSession, message: Message) -> None:
    """Send until the broker has it."""
    while True:
        try:
            await session.send(message)
        except Unavailable:
            await asyncio.sleep(RETRY_S)
        else:
            return


@dataclass(frozen=True, slots=True)
class Received:
    """A command as it came for the first time."""

    at: float
    command_id: str
    job_id: str
    action: str
    attempt: int
    phase: str


class Controller:
    """Takes commands; `received` are the distinct ones in order, `answered` when each was answered first.

    While `there` is cleared it neither takes nor answers anything.
    """

    def __init__(self, session: MqttSession, topic: str, chance: random.Random, work_s: float = 0.1) -> None:
        self.received: list[Received] = []
        self.answered: dict[str, float] = {}
        self.repeated: Counter[str] = Counter()
        self.there = asyncio.Event()
        self.there.set()
        self._session = session
        self._topic = topic
        self._chance = chance
        self._work_s = work_s
        self._known: dict[tuple[str, str], Message | None] = {}
        self._to_do: asyncio.Queue[CloudEvent] = asyncio.Queue()

    async def run(self) -> None:
        """Work side by side until cancelled."""
        await self._session.subscribe(f"{self._topic}/commands", self._take)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_presence())
            while True:
                tasks.create_task(self._work(await self._to_do.get()))

    async def _publish_presence(self) -> None:
        """Publish presence on each connection: then the gateway sends again what the broker lost."""
        reported = 0
        while True:
            if self._session.connected and (connection := self._session.connection_count) != reported:
                with contextlib.suppress(Unavailable):
                    await self._session.publish(f"{self._topic}/presence", b"online", retain=True)
                    reported = connection
            await asyncio.sleep(0.05)

    async def _take(self, message: Message) -> None:
        await self.there.wait()
        command = to_event(message)
        phase = command.extensions["phase"]
        key = (command.id, phase)
        if key in self._known:
            self.repeated[phase] += 1
            if answer := self._known[key]:
                await send_surely(self._session, answer)
            return
        self._known[key] = None
        data = command.data
        self.received.append(
            Received(time.monotonic(), command.id, data["job_id"], data["action"], data["attempt"], phase)
        )
        if phase == "stop":
            await self._confirm_stop(command)
        elif phase == "start" and command.type != SILENT:
            self._to_do.put_nowait(command)

    async def _confirm_stop(self, command: CloudEvent) -> None:
        """Answer a stop, as the gateway expects: it repeats one that is not confirmed."""
        confirmation = CloudEvent(
            id=f"{command.id}/stopped", source=f"/{self._topic}", type=command.type, causationid=command.id
        )
        message = self._known[command.id, "stop"] = to_message(confirmation, f"{self._topic}/answers")
        await send_surely(self._session, message)

    async def _work(self, command: CloudEvent) -> None:
        await asyncio.sleep(self._chance.uniform(0, 2 * self._work_s))
        await self.there.wait()
        good = is_good(number_of(command.data["job_id"]), command.data["attempt"])
        answer = CloudEvent(
            id=f"{command.id}/answer",
            source=f"/{self._topic}",
            type=command.type,
            causationid=command.id,
            data={"good": good} if command.type == MEASURE else {"done": True},
        )
        message = to_message(answer, f"{self._topic}/answers")
        self._known[command.id, "start"] = message
        self.answered[command.id] = time.monotonic()
        await send_surely(self._session, message)


class Camera:
    """Requests work for a picture: with the same id until it has an answer, then for the next picture.

    `assigned` counts by picture and job how often the station assigned it.
    """

    def __init__(self, session: MqttSession, topic: str, scope: str) -> None:
        self.reported: Counter[tuple[str, str]] = Counter()
        self._session = session
        self._topic = topic
        self._scope = scope
        self._answers: dict[str, asyncio.Future[bool]] = {}

    @property
    def source(self) -> str:
        """The source of its events."""
        return f"/{self._topic}"

    async def run(self) -> None:
        """Offer pictures until cancelled."""
        await self._session.subscribe(f"{self._topic}/tasks", self._take)
        for number in itertools.count():
            await self._offer(f"picture-{number}")
            await asyncio.sleep(0.05)

    async def _offer(self, picture: str) -> None:
        question = CloudEvent(id=picture, source=self.source, type=SEEN, subject=self._scope, data={"picture": picture})
        message = to_message(question, f"{self._topic}/events", response_topic=f"{self._topic}/tasks")
        answer = self._answers[picture] = asyncio.get_running_loop().create_future()
        while not answer.done():
            await send_surely(self._session, message)
            await asyncio.wait((answer,), timeout=ASK_AGAIN_S)

    async def _take(self, message: Message) -> None:
        answer = to_event(message)
        picture = answer.causationid or ""
        if answer.mdcserrorkind is None:
            self.reported[picture, answer.data["job_id"]] += 1
        waiting = self._answers.get(picture)
        if waiting and not waiting.done():
            waiting.set_result(True)
