"""Tests of the simulated controller with the equipment port of the gateway."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import open_equipment
from edge.features.simulator.controller import SimulatedController, open_controller, result_of
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.links.mqtt import open_session
from edge.model.cloudevent import CloudEvent
from edge.model.equipment_traffic import TrafficKind
from edge.sfc.signal import Phase
from edge.station.equipment import (
    Begin,
    Command,
    EquipmentAnswer,
    EquipmentEvent,
    EquipmentPort,
    LateResult,
    OutcomeUnknown,
    Task,
)
from edge.store.dead_letters import RefusedMessage
from tests.conftest import WaitUntil

TIGHTEN = Command(
    command_id="J1/R/tighten/1",
    phase=Phase.START,
    type_id="com.example.station.tighten.v1",
    scope="station-1",
    job_id="J1",
    correlation_id="7d444840-9dc0-11d1-b245-5ffdce74fad2",
    action="tighten",
    attempt=1,
    parameters={"torque_spec": "85Nm"},
)


class Answers(list[EquipmentAnswer]):
    """A station that records the answers, and the reasons of unknown outcomes."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: list[str] = []

    async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        if isinstance(answer, OutcomeUnknown):
            self.unknown.append(str(answer.reason))
        else:
            self.append(answer)

    async def begin(self, command_id: str) -> Begin:
        pytest.fail(f"a command with a recognised id was begun: {command_id}")

    def now(self) -> int:
        """Return the instant of this machine."""
        return now_ms()

    def withhold(self, command_id: str) -> None:
        """Ignore a start without a mark."""

    async def permit_start(self) -> None:
        """Permit every start."""

    async def stopped(self, command_id: str, error: str | Text | None, *, is_answer: bool = True) -> None:
        pytest.fail(f"the controller confirmed a stop: {command_id} {error}")

    async def late(self, result: LateResult) -> None:
        pytest.fail(f"the controller sent a late result: {result}")

    async def event(self, event: EquipmentEvent) -> Task | None:
        pytest.fail(f"the controller sent an event: {event}")

    async def record_refusal(self, message: RefusedMessage) -> None:
        pytest.fail(f"the controller sent what cannot be taken: {message}")

    def report_traffic(self, what: TrafficKind, data: object) -> None:
        pytest.fail(f"what goes over a broker is listened to there: {what}")

    async def outstanding(self, scopes: Collection[str], type_ids: Collection[str]) -> list[Command]:
        return []

    async def store_file(self, command_id: str, parts: AsyncGenerator[bytes, None]) -> Mapping[str, Any]:
        return {}

    def record_repeated_start(self) -> None:
        """Ignore a start that is offered again."""

    async def is_disabled_elsewhere(self, place: str) -> bool:
        return not place

    async def keep_disabled(self, place: str, *, disabled: bool) -> None:
        pytest.fail(f"equipment over MQTT keeps no tool as disabled: {place} {disabled}")

    @property
    def gateway(self) -> str:
        return "edge"

    async def recall(self, equipment: str) -> Mapping[str, str]:
        return {equipment: ""}

    async def remember(self, equipment: str, texts: Mapping[str, str]) -> None:
        pytest.fail(f"equipment over MQTT remembers nothing: {equipment} {texts}")

    async def has_result(self, command_id: str, result_id: str) -> bool:
        return False

    async def has_open_stop(self, command_id: str) -> bool:
        return not command_id

    async def is_outstanding(self, command_id: str) -> bool:
        return bool(command_id)

    async def admits(self, command_id: str | None) -> bool:
        return bool(command_id)


@asynccontextmanager
async def bench(
    mqtt: MqttSettings, prefix: str, delay: float = 0.0, failing: Collection[str] = ()
) -> AsyncIterator[tuple[EquipmentPort, Answers, SimulatedController]]:
    answers = Answers()
    settings = MqttEquipmentSettings(type_ids=(TIGHTEN.type_id,), topic_prefix=prefix)
    async with (
        open_session(mqtt, f"{prefix}-edge") as edge,
        open_session(mqtt, f"{prefix}-device") as device,
        open_controller(device, "wrench", topic_prefix=prefix, delay=delay, failing=failing) as controller,
    ):
        yield await open_equipment("wrench", settings, edge, answers, ("station-1",), "/edge"), answers, controller


async def test_controller_tightens_to_the_requested_torque(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique) as (equipment, answers, _):
        await equipment.send(TIGHTEN)
        await wait_until(lambda: answers)
    assert answers == [EquipmentAnswer(TIGHTEN.command_id, {"torque": 85.2, "angle": 41.5})]


async def test_controller_declines_a_known_command_id_with_other_parameters(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique) as (equipment, answers, controller):
        await equipment.send(TIGHTEN)
        await wait_until(lambda: answers)
        await equipment.send(replace(TIGHTEN, parameters={"torque_spec": "12Nm"}))
        await wait_until(lambda: answers.unknown)
        await equipment.send(replace(TIGHTEN, offered_again=True))
        await wait_until(lambda: len(answers) == 2)
    assert answers.unknown == ["another command had this id"]
    assert (answers[0].error, answers[1]) == (None, answers[0])
    assert [command.id for command in controller.commands] == [TIGHTEN.command_id]
    assert [len(controller.conflicts), len(controller.duplicates)] == [1, 1]


async def test_controller_drops_a_repeated_command_while_executing(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique, delay=0.2) as (equipment, answers, controller):
        await equipment.send(TIGHTEN)
        for _ in range(2):
            await equipment.send(replace(TIGHTEN, offered_again=True))
        await wait_until(lambda: len(controller.duplicates) == 2)
        await equipment.send(replace(TIGHTEN, command_id="J1/R/tighten/2", attempt=2))
        await wait_until(lambda: len(answers) == 2)
    assert [answer.command_id for answer in answers] == ["J1/R/tighten/1", "J1/R/tighten/2"]


async def test_controller_repeats_its_answer_to_a_repeated_command(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique) as (equipment, answers, controller):
        await equipment.send(TIGHTEN)
        await wait_until(lambda: answers)
        await equipment.send(TIGHTEN)
        await wait_until(lambda: len(answers) == 2)
    assert answers[0] == answers[1]
    assert len(controller.commands) == 1


async def test_controller_confirms_the_stop_of_a_command(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique, delay=60.0) as (equipment, answers, controller):
        await equipment.send(TIGHTEN)
        await wait_until(lambda: controller.commands)
        await equipment.stop(TIGHTEN)
        await wait_until(lambda: controller.stopped and answers)
    assert list(controller.stopped) == [TIGHTEN.command_id]
    assert answers == [EquipmentAnswer(TIGHTEN.command_id, error="the command was stopped")]


async def test_controller_fails_the_configured_command_types(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique, failing={TIGHTEN.type_id}) as (equipment, answers, _):
        await equipment.send(TIGHTEN)
        await wait_until(lambda: answers)
    assert answers == [EquipmentAnswer(TIGHTEN.command_id, error="the simulated controller fails on request")]


async def test_controller_executes_many_commands_concurrently(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    async with bench(mqtt, unique, delay=0.2) as (equipment, answers, _):
        for number in range(50):
            await equipment.send(replace(TIGHTEN, command_id=f"J{number}/R/tighten/1"))
        await wait_until(lambda: len(answers) == 50)


@pytest.mark.parametrize(
    ("type_id", "phase", "data", "result"),
    [
        ("com.example.station.tighten.v1", "start", {"parameters": {"torque_spec": "85Nm"}}, 85.2),
        ("com.example.station.tighten.v1", "start", {"parameters": {"torque_spec": 12.5}}, 12.5),
        ("com.example.station.tighten.v1", "start", None, 10.0),
        ("com.example.station.position.v1", "start", {"parameters": {}}, None),
    ],
)
def test_result_depends_on_the_command_and_its_parameters(
    type_id: str, phase: str, data: object, result: float | None
) -> None:
    command = CloudEvent(id="1", source="s", type=type_id, extensions={"phase": phase}, data=data)
    assert result_of(command) == ({"done": True} if result is None else {"torque": result, "angle": 41.5})


def test_reset_is_confirmed_without_a_tightening_result() -> None:
    data = {"parameters": {"torque_spec": "85Nm"}}
    reset = CloudEvent(
        id="1", source="s", type="com.example.station.tighten.v1", extensions={"phase": "reset"}, data=data
    )
    assert result_of(reset) == {"reset": True}


async def test_locked_tool_works_only_if_every_lock_topic_enables_it(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    settings = MqttEquipmentSettings(type_ids=(TIGHTEN.type_id,), topic_prefix=unique)
    locking = msgspec.structs.replace(settings, lock="on")
    answers, topic = Answers(), f"{unique}/wrench/enabled"

    async def asked(equipment: EquipmentPort, number: int) -> str:
        await equipment.send(replace(TIGHTEN, command_id=f"J1/R/tighten/{number}", attempt=number))
        await wait_until(lambda: len(answers) == number)
        return str(answers[-1].error or "done")

    async with (
        open_session(mqtt, f"{unique}-edge") as edge,
        open_session(mqtt, f"{unique}-device") as device,
        open_controller(device, "wrench", topic_prefix=unique, delay=0.0, locked=True),
    ):
        without = await open_equipment("wrench", settings, edge, answers, ("station-1",), "/edge")
        assert await asked(without, 1) == f"the tool is disabled by {topic}"
    async with (
        open_session(mqtt, f"{unique}-edge") as edge,
        open_session(mqtt, f"{unique}-device") as device,
        open_controller(device, "wrench", topic_prefix=unique, delay=0.0, locked=True),
    ):
        tool = await open_equipment("wrench", locking, edge, answers, ("station-1",), "/edge")
        assert await asked(tool, 2) == "done"
        await edge.publish(f"{topic}/plc", b"false", retain=True)
        assert await asked(tool, 3) == f"the tool is disabled by {topic}/plc"
        await edge.publish(f"{topic}/plc", b"true", retain=True)
        assert await asked(tool, 4) == "done"


async def test_retained_command_is_dropped(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    attributes = {"specversion": "1.0", "source": "/edge", "type": TIGHTEN.type_id, "phase": "start"}
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        commands = f"{unique}/wrench/commands"
        await edge.publish(commands, b"{}", retain=True, user_properties=attributes | {"id": "old"})
        async with open_controller(device, "wrench", topic_prefix=unique, delay=0.0) as controller:
            await edge.publish(commands, b"{}", user_properties=attributes | {"id": "new"})
            await wait_until(lambda: controller.commands)
            assert [command.id for command in controller.commands] == ["new"]
