"""Does again what passed between a gateway and equipment that it connects to, as a recording has it.

Line by line: what the station did is done, what happened at the equipment happens, and each question of the kind has to
come as it came then, and gets the answer that it got.
"""

import asyncio
import pkgutil
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from edge.app.features import equipment_kinds
from edge.config import OpcuaEquipmentSettings
from edge.equipment.connected_equipment import ConnectedEquipment
from edge.equipment.device import DeviceEvent, DeviceEvents
from edge.features.admin.recording import ExchangeRecord, RecordingHeader
from edge.features.lamps.lines import FakeLines, Lines
from edge.features.lamps.settings import StackLightSettings
from edge.foundation.errors import Refused, Unavailable
from edge.links.opcua import ClientSession, EventField, Node, TypeName
from edge.links.opcua_requests import RequestListener
from edge.model.equipment_traffic import EquipmentRequest, TrafficKind
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES
from tests.equipment.recording_station import RecordingStation

# After this many turns of the event loop without an answer, all requests have been sent.
_TURNS = 100


@dataclass(eq=False)
class Question:
    """What a kind wants to know, and waits for."""

    words: bytes
    answer: asyncio.Future[Any]


class Happened:
    """What happens at the equipment on one connection, until that is lost."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[DeviceEvent | Refused | Unavailable] = asyncio.Queue()
        self.begins = True
        """Whether the equipment is not yet connected."""

    def put(self, entry: DeviceEvent | Refused | Unavailable) -> None:
        self._queue.put_nowait(entry)

    async def next(self) -> DeviceEvent | Refused:
        message = await self._queue.get()
        if isinstance(message, Unavailable):
            raise message
        return message


class Recalled:
    """The equipment as the recording remembers it; `happened` is that of the connection there is."""

    def __init__(self) -> None:
        self.happened: Happened | None = None
        self.outstanding: Sequence[Any] = ()
        """The commands that wait for an answer when the equipment connects next."""
        self._questions: list[Question] = []

    async def ask(self, question: str, *arguments: Any) -> Any:
        """Ask, and wait until the recording comes to that question."""
        asked = Question(words(question, arguments), asyncio.get_running_loop().create_future())
        self._questions.append(asked)
        try:
            return await asked.answer
        finally:
            self._questions.remove(asked)

    def waiting(self, question: bytes) -> Question | None:
        """Return such a request when one waits for its answer."""
        return next((item for item in self._questions if item.words == question and not item.answer.done()), None)

    def asks(self) -> str:
        """Return the requests that wait for their answers."""
        return ", ".join(question.words.decode() for question in self._questions)

    def connect(self) -> Happened:
        """Begin a connection."""
        self.happened = Happened()
        return self.happened

    @asynccontextmanager
    async def open_session(
        self, settings: OpcuaEquipmentSettings, _on_request: RequestListener
    ) -> AsyncIterator[ClientSession]:
        """Stand in for a server, in whose place the recording answers."""
        await self.ask("open")
        yield RecalledSession(self, settings.url, self.connect())

    @contextmanager
    def open_lines(self, chip: str, lamps: Mapping[str, int], buttons: Mapping[str, int]) -> Iterator[Lines]:
        """Stand in for a chip, whose buttons the recording presses."""
        yield RecalledLines(lamps, self.connect())


class RecalledLines(FakeLines):
    def __init__(self, lamps: Mapping[str, int], happened: Happened) -> None:
        super().__init__(lamps)
        self._happened = happened

    async def pressed(self) -> str:
        happening = await self._happened.next()
        assert not isinstance(happening, Refused)
        return str(happening["button"])


class RecalledSession(ClientSession):
    def __init__(self, recalled: Recalled, url: str, happened: Happened) -> None:
        self.url = url
        self.answer_count = 0
        self._recalled = recalled
        self._happened = happened

    async def find(self, *names: str) -> Node:
        return Node(**await self._recalled.ask("find", *names))

    async def read(self, node: Node) -> Any:
        return await self._recalled.ask("read", node)

    async def children(self, node: Node) -> dict[str, Node]:
        return {name: Node(**value) for name, value in (await self._recalled.ask("children", node)).items()}

    async def instances(self, of: TypeName, depth: int = 4, most: int = 0) -> list[Node]:
        return [Node(**value) for value in await self._recalled.ask("instances", of)]

    async def call(self, owner: Node, name: str, *arguments: Any) -> list[Any]:
        outputs: list[Any] = await self._recalled.ask("call", owner, name, *arguments)
        return outputs

    async def is_a(self, type_id: Any, of: TypeName) -> bool:
        return bool(await self._recalled.ask("is_a", type_id, of))

    @asynccontextmanager
    async def watch(
        self, source: Node | None, fields: Sequence[EventField], values: Mapping[str, Node]
    ) -> AsyncIterator[DeviceEvents]:
        await self._recalled.ask("watch", source, fields, values)
        yield self._happen()

    async def _happen(self) -> DeviceEvents:
        while True:
            yield await self._happened.next()


class RecallingStation(RecordingStation):
    """The station, in whose place the recording says which commands wait for an answer at the begin of a connection."""

    def __init__(self, recalled: Recalled) -> None:
        super().__init__()
        self._recalled = recalled

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> Sequence[Command]:
        happened = self._recalled.happened
        if happened is None or not happened.begins:
            return await super().outstanding(scopes, type_ids)
        return msgspec.convert(self._recalled.outstanding, list[Command])


def words(question: str, arguments: Sequence[Any]) -> bytes:
    return msgspec.json.encode([question, *arguments], order="sorted")


class Replay:
    """Plays lines of a recording, one after the other."""

    def __init__(self, beginning: RecordingHeader, wait_until: WaitUntil) -> None:
        self.recalled = Recalled()
        self.station = RecallingStation(self.recalled)
        self._name = beginning.equipment
        kind = equipment_kinds()[beginning.settings["kind"]]
        self._opening = pkgutil.resolve_name(kind.opener)
        self._section = msgspec.convert(beginning.settings, type=pkgutil.resolve_name(kind.settings))
        self._wait_until = wait_until
        self.process = AsyncExitStack()
        self._stopping: list[asyncio.Task[None]] = []
        self._equipment: ConnectedEquipment | None = None

    def _open(self) -> AbstractAsyncContextManager[ConnectedEquipment]:
        recalled = self.recalled
        if isinstance(self._section, StackLightSettings):
            opening = partial(self._opening, lines_factory=recalled.open_lines)
        else:
            opening = partial(self._opening, session_factory=recalled.open_session)
        opened: AbstractAsyncContextManager[ConnectedEquipment] = opening(
            self._name, self._section, self.station, SCOPES
        )
        return opened

    async def play(self, line: ExchangeRecord) -> None:
        match line.what:
            case TrafficKind.BEGUN:
                await self.process.aclose()
                self.recalled.happened = None
                self._equipment = await self.process.enter_async_context(self._open())
            case TrafficKind.CONNECTED:
                await self._connect()
                await self._wait_until(lambda: self._equipment and self._equipment.connected)
                if self.recalled.happened:
                    self.recalled.happened.begins = False
            case TrafficKind.LOST:
                await self._lose(Unavailable(line.data))
            case TrafficKind.COMMAND:
                assert self._equipment
                await self._equipment.send(msgspec.convert(line.data, Command))
            case TrafficKind.STOP:
                self._stop(msgspec.convert(line.data, Command))
            case TrafficKind.ASKED:
                await self._connect()
                await self._answer(msgspec.convert(line.data, EquipmentRequest))
            case TrafficKind.HAPPENING:
                assert self.recalled.happened
                refused = line.data.get("refused")
                self.recalled.happened.put(Refused("unreadable", refused) if refused else line.data)
            case TrafficKind.ANSWER:
                await self._wait_until(lambda: line.data["command_id"] in self.station.outcomes())
                self.station.stopped_meanwhile.add(line.data["command_id"])
            case TrafficKind.MISSED:
                pytest.fail("what is not whole cannot be played")

    async def end(self) -> None:
        await asyncio.gather(*self._stopping)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        assert not self.recalled.asks(), f"the kind asks more than was recorded: {self.recalled.asks()}"

    async def _connect(self) -> None:
        opener = words("open", ())
        await self._wait_until(lambda: self.recalled.happened or self.recalled.waiting(opener))
        if not self.recalled.happened:
            await self._answer(EquipmentRequest("open", ()))
            await self._wait_until(lambda: self.recalled.happened)

    async def _lose(self, error: Unavailable) -> None:
        if self.recalled.happened:
            self.recalled.happened.put(error)
            self.recalled.happened = None
        else:
            await self._answer(EquipmentRequest("open", (), error=error.message))

    async def _answer(self, asked: EquipmentRequest) -> None:
        question = words(asked.question, asked.arguments)
        try:
            await self._wait_until(lambda: self.recalled.waiting(question))
        except AssertionError:
            pytest.fail(f"the kind does not ask {question.decode()} but {self.recalled.asks() or 'nothing'}")
        waiting = self.recalled.waiting(question)
        assert waiting
        if asked.error is None:
            waiting.answer.set_result(asked.found)
        elif asked.kind:
            waiting.answer.set_exception(Refused(asked.kind, asked.error))
        else:
            waiting.answer.set_exception(Unavailable(asked.error))

    def _stop(self, command: Command) -> None:
        assert self._equipment
        self.station.stopped_meanwhile.add(command.command_id)
        stop = self._equipment.stop(command)
        self._stopping.append(asyncio.create_task(stop, name=f"stop {command.command_id}"))


async def play(beginning: RecordingHeader, lines: Sequence[ExchangeRecord], wait_until: WaitUntil) -> RecordingStation:
    """Replay a recording; return what the station received."""
    replay = Replay(beginning, wait_until)
    async with replay.process:
        for number, line in enumerate(lines):
            connections = (later.data for later in lines[number:] if later.what is TrafficKind.CONNECTED)
            replay.recalled.outstanding = next(connections, ())
            await replay.play(line)
        await replay.end()
    # The id of an event is chance.
    replay.station.events = [replace(event, event_id="") for event in replay.station.events]
    return replay.station
