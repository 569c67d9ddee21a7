"""MQTT equipment fulfils the equipment contract, with a device that uses plain CloudEvents."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import open_equipment
from edge.features.simulator.controller import ToolPermissions
from edge.links.mqtt import Message, MqttSession, open_session, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.station.equipment import LateResult, Repetition
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, WORK, Bench, Contract, Opener
from tests.equipment.recording_station import RecordingStation

pytestmark = pytest.mark.asyncio(loop_scope="module")


class MqttDevice:
    """A device that remembers its commands during its life; the broker keeps no session for it."""

    def __init__(self, mqtt: MqttSettings, client_id: str, topic: str) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self._mqtt = mqtt
        self._client_id = client_id
        self._topic = topic
        self._seen: set[tuple[str, str]] = set()
        self._last_report: CloudEvent | None = None
        self._unsent: list[CloudEvent] = []
        self._session: MqttSession | None = None
        self._line = AsyncExitStack()
        self._permissions = ToolPermissions()
        self.is_locked = False

    async def connect(self) -> None:
        opened = open_session(self._mqtt, self._client_id, session_expiry=0)
        self._session = await self._line.enter_async_context(opened)
        await self._session.follow(f"{self._topic}/enabled", self._permissions.take)
        await self._session.subscribe(f"{self._topic}/commands", self._take)
        await self._session.publish(f"{self._topic}/presence", b"online", retain=True)
        while self._unsent:
            await self._send(self._unsent.pop(0))

    async def disconnect(self) -> None:
        if self._session:
            await self._session.publish(f"{self._topic}/presence", b"offline", retain=True)
        self._session = None
        await self._line.aclose()

    async def finish(self) -> None:
        await self._report(CloudEvent(id=new_id(), source="/device", type=TYPE_ID, data={"torque": 85.2}))

    async def fail(self, reason: str) -> None:
        event = CloudEvent(id=new_id(), source="/device", type=TYPE_ID)
        await self._report(msgspec.structs.replace(event, mdcserrorkind="mechanical", mdcserrormessage=reason))

    async def report_again(self) -> None:
        assert self._last_report
        await self._send(self._last_report)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        self._seen.clear()
        async with self.cut_off():
            yield

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        await self.disconnect()
        yield
        await self.connect()

    async def _report(self, event: CloudEvent) -> None:
        self._last_report = msgspec.structs.replace(event, causationid=self.begun[-1])
        await self._send(self._last_report)

    async def _send(self, event: CloudEvent) -> None:
        if self._session is None:
            self._unsent.append(event)
        else:
            await self._session.send(to_message(event, f"{self._topic}/answers"))

    async def _take(self, message: Message) -> None:
        command = to_event(message)
        phase = command.extensions["phase"]
        if (command.id, phase) not in self._seen:
            self._seen.add((command.id, phase))
            match phase:
                case "start" if self.is_locked and (reason := self._permissions.missing(self._topic)):
                    pytest.fail(f"{command.id}: {reason}")
                case "start":
                    self.begun.append(command.id)
                case "stop":
                    self.stopped.append(command.id)
                case "reset":
                    self.stopped += self.begun[len(self.stopped) :]
                    answer = CloudEvent(id=new_id(), source="/device", type=TYPE_ID, causationid=command.id)
                    await self._send(answer)
                case _:
                    raise AssertionError(phase)


class TestMqttContract(Contract):
    repetition = Repetition.RECOGNISABLE
    lock = "off"

    @pytest.fixture
    def opener(self, mqtt: MqttSettings, unique: str) -> Opener:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Bench]:
            settings = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=unique)
            settings = msgspec.structs.replace(settings, repetition=self.repetition.value, lock=self.lock)
            station = RecordingStation()
            device = MqttDevice(mqtt, f"{unique}-device", f"{unique}/wrench")
            device.is_locked = self.lock == "on"
            async with open_session(mqtt, f"{unique}-edge") as edge:
                equipment = await open_equipment("wrench", settings, edge, station, SCOPES, "/edge")
                await device.connect()
                try:
                    yield Bench(equipment, station, device)
                finally:
                    await device.disconnect()

        return opened


class TestMqttLockedContract(TestMqttContract):
    """The device declines a start without the permission to work."""

    lock = "on"


class TestMqttOnceContract(TestMqttContract):
    """Equipment without a memory: a start that it may have received is never sent again."""

    repetition = Repetition.ONCE
    reports_loss = False


async def test_command_without_subscriber_is_a_problem(mqtt: MqttSettings, unique: str) -> None:
    settings = MqttEquipmentSettings(type_ids=(WORK.type_id,), topic_prefix=unique)
    async with open_session(mqtt, f"{unique}-edge") as edge:
        equipment = await open_equipment("wrench", settings, edge, RecordingStation(), ("station-1",), "/edge")
        assert equipment.problem == ""
        with capture_logs() as logs:
            await equipment.send(WORK)
        assert str(equipment.problem) == f"nothing subscribes to {unique}/wrench/commands"
        assert "command without subscriber" in {entry["event"] for entry in logs}


async def test_once_over_mqtt_sends_a_start_only_once(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    settings = MqttEquipmentSettings(type_ids=(WORK.type_id,), topic_prefix=unique, repetition="once")
    received: list[Message] = []

    async def note(message: Message) -> None:
        received.append(message)

    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        await device.subscribe(f"{unique}/wrench/commands", note)
        equipment = await open_equipment("wrench", settings, edge, RecordingStation(), ("station-1",), "/edge")
        for _ in range(3):
            await equipment.send(WORK)
        await equipment.stop(WORK)
        await wait_until(lambda: received and received[-1].user_properties["phase"] == "stop")
    assert [item.user_properties["phase"] for item in received] == ["start", "stop"]


@pytest.mark.parametrize("attributes", [{}, {"causationid": "by hand 7"}])
async def test_result_without_an_own_command_is_kept_as_late(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil, attributes: dict[str, str]
) -> None:
    settings, station = MqttEquipmentSettings(type_ids=(WORK.type_id,), topic_prefix=unique), RecordingStation()
    given = {"specversion": "1.0", "id": "7", "source": "/wrench", "type": WORK.type_id} | attributes
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        await open_equipment("wrench", settings, edge, station, SCOPES, "/edge")
        answers = f"{unique}/wrench/answers"
        await device.publish(answers, b'{"torque": 85.2}', content_type="application/json", user_properties=given)
        await wait_until(lambda: station.late_results)
    assert station.late_results == [LateResult("/wrench", "7", "station-1", {"torque": 85.2})]
    assert (station.answers, station.refused) == ([], [])
