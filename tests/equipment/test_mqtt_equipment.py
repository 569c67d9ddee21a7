"""Messages to and from MQTT equipment, on a real broker."""

import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import MqttEquipment, open_equipment
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import now_ms
from edge.links.mqtt import Message, MqttSession, open_session
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer, EquipmentEvent, OutcomeUnknown, Task
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.local_broker import open_broker
from tests.plain_mqtt import plain_client

CORRELATION = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
COMMAND = Command(
    command_id="J1/R/tighten/1",
    phase=Phase.START,
    type_id="com.example.station.tighten.v1",
    scope="station-1",
    job_id="J1",
    correlation_id=CORRELATION,
    action="tighten",
    attempt=1,
    parameters={"torque_spec": "85Nm"},
)
QUESTION = {
    "id": "q-1",
    "source": "/camera",
    "type": "com.example.station.qa_result.v1",
    "subject": "station-1",
}


@dataclass
class Bench:
    """The gateway side with its station, and the device side as plain messages."""

    equipment: MqttEquipment
    station: RecordingStation
    device: MqttSession
    topic: str
    received: list[Message] = field(default_factory=list)

    async def note(self, message: Message) -> None:
        self.received.append(message)


@pytest.fixture
async def bench(mqtt: MqttSettings, unique: str) -> AsyncIterator[Bench]:
    settings = MqttEquipmentSettings(type_ids=(COMMAND.type_id,), topic_prefix=unique)
    station = RecordingStation()
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        equipment = await open_equipment("wrench", settings, edge, station, ("station-1",), "/edge")
        assert isinstance(equipment, MqttEquipment)
        bench = Bench(equipment, station, device, f"{unique}/wrench")
        await device.subscribe(f"{bench.topic}/commands", bench.note)
        await device.subscribe(f"{bench.topic}/replies", bench.note)
        yield bench


def _tightened(**further: str) -> dict[str, str]:
    attributes = {
        "id": "a-1",
        "source": "/wrench",
        "type": COMMAND.type_id,
        "causationid": COMMAND.command_id,
    }
    return attributes | further


async def test_command_is_published_with_payload_and_attributes(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.equipment.send(COMMAND)
    await wait_until(lambda: bench.received)
    assert bench.received == [
        Message(
            topic=f"{bench.topic}/commands",
            payload=b'{"job_id":"J1","action":"tighten","attempt":1,"parameters":{"torque_spec":"85Nm"}}',
            content_type="application/json",
            user_properties={
                "specversion": "1.0",
                "id": "J1/R/tighten/1",
                "source": "/edge",
                "type": "com.example.station.tighten.v1",
                "subject": "station-1",
                "correlationid": CORRELATION,
                "phase": "start",
            },
            response_topic=f"{bench.topic}/answers",
            correlation_data=bytes.fromhex(CORRELATION.replace("-", "")),
        )
    ]


async def test_the_same_command_sent_again_is_the_same_message(bench: Bench, wait_until: WaitUntil) -> None:
    again = replace(COMMAND, offered_again=True)
    await bench.equipment.send(again)
    await bench.equipment.send(again)
    await wait_until(lambda: len(bench.received) == 2)
    assert bench.received[0] == bench.received[1]


async def test_command_already_at_the_broker_is_not_sent_twice(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.equipment.send(COMMAND)
    await bench.equipment.send(COMMAND)
    await bench.equipment.stop(COMMAND)
    await wait_until(lambda: len(bench.received) == 2)
    assert [message.user_properties["phase"] for message in bench.received] == ["start", "stop"]


async def test_stop_has_the_id_of_its_command(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.equipment.stop(COMMAND)
    await wait_until(lambda: bench.received)
    properties = bench.received[0].user_properties
    assert (properties["id"], properties["phase"]) == (COMMAND.command_id, "stop")


async def test_an_answer_reaches_the_station_with_its_data(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.device.publish(
        f"{bench.topic}/answers",
        b'{"torque":85.2}',
        content_type="application/json",
        user_properties=_tightened(),
    )
    await wait_until(lambda: bench.station.answers)
    assert bench.station.answers == [EquipmentAnswer(COMMAND.command_id, {"torque": 85.2})]


@pytest.mark.parametrize(("message", "error"), [("the spindle is jammed", "the spindle is jammed"), ("", "mechanical")])
async def test_answer_with_an_error_kind_is_a_failure(
    bench: Bench, wait_until: WaitUntil, message: str, error: str
) -> None:
    properties = _tightened(mdcserrorkind="mechanical", mdcserrormessage=message)
    await bench.device.publish(f"{bench.topic}/answers", user_properties=properties)
    await wait_until(lambda: bench.station.answers)
    assert bench.station.answers == [EquipmentAnswer(COMMAND.command_id, error=error)]


async def test_late_and_foreign_answers_are_passed_to_the_station(bench: Bench, wait_until: WaitUntil) -> None:
    for command_id in (COMMAND.command_id, COMMAND.command_id, "nobody's"):
        await bench.device.publish(f"{bench.topic}/answers", user_properties=_tightened(causationid=command_id))
    await wait_until(lambda: len(bench.station.answers) == 3)
    assert [answer.command_id for answer in bench.station.answers][1:] == [COMMAND.command_id, "nobody's"]


async def test_answer_is_retried_until_the_station_accepts_it(bench: Bench, wait_until: WaitUntil) -> None:
    bench.station.failures = [Unavailable("the store is away")]
    await bench.device.publish(f"{bench.topic}/answers", user_properties=_tightened())
    await wait_until(lambda: bench.station.answers)
    assert len(bench.station.answers) == 1


@pytest.mark.parametrize("topic", ["events", "data"])
async def test_event_without_response_topic_reaches_the_station_unanswered(
    bench: Bench, wait_until: WaitUntil, topic: str
) -> None:
    await bench.device.publish(
        f"{bench.topic}/{topic}",
        b'{"pass":true}',
        content_type="application/json",
        user_properties=QUESTION | {"joborderid": "J1"},
        correlation_data=bytes.fromhex(CORRELATION.replace("-", "")),
    )
    await wait_until(lambda: bench.station.events)
    assert bench.station.events == [
        EquipmentEvent(
            source="/camera",
            event_id="q-1",
            type_id=QUESTION["type"],
            scope="station-1",
            data={"pass": True},
            job_id="J1",
            correlation_id=CORRELATION,
        )
    ]
    assert bench.received == []


async def test_device_that_requests_work_receives_its_task(bench: Bench, wait_until: WaitUntil) -> None:
    bench.station.task = Task("J1", "camera_qa", {"exposure": 4})
    await bench.device.publish(
        f"{bench.topic}/events",
        user_properties=QUESTION,
        response_topic=f"{bench.topic}/replies",
        correlation_data=b"0123456789abcdef",
    )
    await wait_until(lambda: bench.received)
    answer = bench.received[0]
    assert answer.payload == b'{"job_id":"J1","action":"camera_qa","parameters":{"exposure":4}}'
    assert answer.correlation_data == b"0123456789abcdef"
    assert (answer.user_properties["type"], answer.user_properties["causationid"]) == (
        QUESTION["type"],
        "q-1",
    )
    assert "mdcserrorkind" not in answer.user_properties
    assert bench.station.events[0].correlation_id is None


async def test_repeated_work_request_gets_the_same_answer(bench: Bench, wait_until: WaitUntil) -> None:
    bench.station.task = Task("J1", "camera_qa", {})
    for _ in range(2):
        await bench.device.publish(
            f"{bench.topic}/events", user_properties=QUESTION, response_topic=f"{bench.topic}/replies"
        )
    await wait_until(lambda: len(bench.received) == 2)
    assert bench.received[0] == bench.received[1]


async def test_work_request_without_a_waiting_job_is_refused(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.device.publish(
        f"{bench.topic}/events", user_properties=QUESTION, response_topic=f"{bench.topic}/replies"
    )
    await wait_until(lambda: bench.received)
    properties = bench.received[0].user_properties
    assert properties["mdcserrorkind"] == "nothing_waiting"
    assert "com.example.station.qa_result.v1" in properties["mdcserrormessage"]


@pytest.mark.parametrize(
    ("topic", "payload", "properties"),
    [
        ("answers", b"{}", {"id": "a-1", "source": "/wrench", "type": "t"}),
        ("answers", b"{", _tightened()),
        ("answers", b"hello", {}),
        ("events", b"{}", {"id": "e-1", "source": "/wrench", "type": "t"}),
        ("events", b"", {}),
        ("data", b"\xff", QUESTION),
    ],
)
async def test_unreadable_message_is_answered_stored_and_skipped(
    bench: Bench, wait_until: WaitUntil, topic: str, payload: bytes, properties: dict[str, str]
) -> None:
    await bench.device.publish(
        f"{bench.topic}/{topic}", payload, user_properties=properties, response_topic=f"{bench.topic}/replies"
    )
    await wait_until(lambda: bench.received)
    assert bench.received[0].user_properties["mdcserrorkind"] == "unreadable"
    assert bench.received[0].user_properties["mdcserrormessage"]
    assert [refused.payload for refused in bench.station.refused] == [payload]
    await bench.device.publish(f"{bench.topic}/answers", user_properties=_tightened())
    await wait_until(lambda: bench.station.answers)
    assert bench.station.events == []


async def test_event_refused_by_the_station_is_answered_and_stored(bench: Bench, wait_until: WaitUntil) -> None:
    bench.station.failures.append(Refused("too_large", "far too large"))
    await bench.device.publish(
        f"{bench.topic}/events", b"1", user_properties=QUESTION, response_topic=f"{bench.topic}/replies"
    )
    await wait_until(lambda: bench.received)
    assert bench.received[0].user_properties["mdcserrorkind"] == "too_large"
    assert [refused.kind for refused in bench.station.refused] == ["too_large"]


async def test_unreadable_answer_leaves_the_outcome_unknown(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.device.publish(f"{bench.topic}/answers", b"{", user_properties=_tightened())
    await wait_until(lambda: bench.station.unknown)
    (unknown,) = bench.station.unknown
    assert unknown.command_id == COMMAND.command_id
    assert str(unknown.reason).startswith("its answer cannot be read: ")


async def test_answer_with_only_its_command_id_is_accepted(bench: Bench, wait_until: WaitUntil) -> None:
    only = {"causationid": COMMAND.command_id}
    await bench.device.publish(f"{bench.topic}/answers", b'{"torque": 85.2}', user_properties=only)
    await wait_until(lambda: bench.station.answers)
    assert bench.station.answers == [EquipmentAnswer(COMMAND.command_id, {"torque": 85.2})]


async def test_device_without_memory_of_a_command_answers_unknown(bench: Bench, wait_until: WaitUntil) -> None:
    lost = _tightened(mdcserrorkind="unknown", mdcserrormessage="restarted")
    await bench.device.publish(f"{bench.topic}/answers", user_properties=lost)
    await wait_until(lambda: bench.station.unknown)
    assert bench.station.unknown == [OutcomeUnknown(COMMAND.command_id, "restarted")]
    assert bench.station.answers == []


async def test_start_expires_with_its_action_and_a_stop_does_not(bench: Bench, wait_until: WaitUntil) -> None:
    soon = replace(COMMAND, expires_at=now_ms() + 60_000)
    await bench.equipment.send(soon)
    await bench.equipment.stop(soon)
    await wait_until(lambda: len(bench.received) == 2)
    start, stop = bench.received
    assert start.expiry is not None
    assert 0 < start.expiry <= 60
    assert stop.expiry is None


async def test_a_start_is_not_delivered_after_the_time_limit_of_its_action(bench: Bench, wait_until: WaitUntil) -> None:
    """A broker counts whole seconds: one of 60 s may come after 60.9 s."""
    await bench.equipment.send(replace(COMMAND, expires_at=now_ms() + 59_999))
    await wait_until(lambda: bench.received)
    assert bench.received[0].expiry in range(1, 60)


async def test_start_expires_by_the_clock_of_the_jobs(bench: Bench, wait_until: WaitUntil) -> None:
    """After a step of the clock that jobs keep, a start expired at once, or long after its time limit."""
    bench.station.clock_ahead_ms = -3_600_000
    await bench.equipment.send(replace(COMMAND, expires_at=bench.station.now() + 59_999))
    await wait_until(lambda: bench.received)
    assert bench.received[0].expiry in range(30, 60)


async def test_repeated_command_is_marked_as_offered_again(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.equipment.send(COMMAND)
    await bench.equipment.send(replace(COMMAND, offered_again=True))
    await wait_until(lambda: len(bench.received) == 2)
    assert [message.user_properties.get("offeredagain") for message in bench.received] == [None, "true"]


async def test_request_is_not_answered_on_a_topic_of_other_equipment(bench: Bench, wait_until: WaitUntil) -> None:
    foreign = bench.topic.replace("wrench", "press") + "/commands"
    await bench.device.subscribe(foreign, bench.note)
    await bench.device.publish(f"{bench.topic}/events", b"1", user_properties=QUESTION, response_topic=foreign)
    await wait_until(lambda: bench.station.refused)
    assert [refused.kind for refused in bench.station.refused] == ["forbidden_topic"]
    assert (bench.station.events, bench.received) == ([], [])


async def test_gateway_defect_on_an_answer_leaves_the_outcome_unknown(bench: Bench, wait_until: WaitUntil) -> None:
    bench.station.failures = [KeyError("a slip of ours")]
    await bench.device.publish(f"{bench.topic}/answers", b"{}", user_properties=_tightened())
    await wait_until(lambda: bench.station.refused)
    error = "the answer met a defect of this software: KeyError"
    assert bench.station.unknown == [OutcomeUnknown(COMMAND.command_id, error)]
    assert [(refused.kind, refused.payload) for refused in bench.station.refused] == [("internal", b"{}")]


async def test_device_coming_online_gets_unanswered_commands_again(bench: Bench, wait_until: WaitUntil) -> None:
    elsewhere = replace(COMMAND, command_id="J2/R/tighten/1", scope="station-2")
    bench.station.unanswered = [COMMAND, elsewhere, replace(COMMAND, command_id="J1:look:1", type_id="look")]
    await bench.equipment.send(COMMAND)
    await bench.device.publish(f"{bench.topic}/presence", b"online", retain=True)
    await wait_until(lambda: bench.equipment.connected)
    await wait_until(lambda: len(bench.received) == 2)
    first, again = bench.received
    assert again.user_properties == {**first.user_properties, "offeredagain": "true"}
    assert again.payload == first.payload


async def test_restarted_gateway_reads_the_retained_presence(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    section = MqttEquipmentSettings(type_ids=("tighten",), topic_prefix=unique)
    async with open_session(mqtt, f"{unique}-device") as device:
        await device.publish(f"{unique}/wrench/presence", b"online", retain=True)
        for _ in range(2):
            async with open_session(mqtt, f"{unique}-edge") as edge:
                equipment = await open_equipment("wrench", section, edge, RecordingStation(), {"station-1"}, "/edge")
                await wait_until(lambda wrench=equipment: wrench.connected)


async def test_stopped_command_is_not_sent_again_after_its_stop(bench: Bench, wait_until: WaitUntil) -> None:
    other = replace(COMMAND, command_id="J2/R/tighten/1")
    bench.station.unanswered = [COMMAND, other]
    bench.station.stopped_meanwhile = {COMMAND.command_id}
    await bench.device.publish(f"{bench.topic}/presence", b"online", retain=True)
    await wait_until(lambda: bench.received)
    assert [message.user_properties["id"] for message in bench.received] == [other.command_id]


async def test_resend_is_retried_until_the_store_is_available(bench: Bench, wait_until: WaitUntil) -> None:
    bench.station.unanswered = [COMMAND]
    bench.station.failures = [Unavailable("the store is away")]
    await bench.device.publish(f"{bench.topic}/presence", b"online", retain=True)
    await wait_until(lambda: bench.received)


async def test_last_will_marks_the_device_as_disconnected(
    bench: Bench, mqtt: MqttSettings, wait_until: WaitUntil
) -> None:
    port = urlsplit(mqtt.url).port or 0
    with plain_client(port, will_topic=f"{bench.topic}/presence", will=b"offline") as device:
        device.publish(f"{bench.topic}/presence", b"online", qos=1, retain=True)
        await wait_until(lambda: bench.equipment.connected)
        line = device.socket()
        assert isinstance(line, socket.socket)
        line.shutdown(socket.SHUT_RDWR)
        await wait_until(lambda: bench.equipment.connected is False)


async def test_invalid_presence_is_refused_and_stored(bench: Bench, wait_until: WaitUntil) -> None:
    await bench.device.publish(f"{bench.topic}/presence", b"here I am")
    await wait_until(lambda: bench.station.refused)
    assert [(refused.kind, refused.payload) for refused in bench.station.refused] == [("unreadable", b"here I am")]
    assert bench.equipment.connected is None


async def test_equipment_is_disconnected_without_its_broker(unique: str, wait_until: WaitUntil) -> None:
    settings = MqttEquipmentSettings(type_ids=(COMMAND.type_id,), topic_prefix=unique)
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        wrench = await open_equipment("wrench", settings, session, RecordingStation(), ("station-1",), "/edge")
        await session.publish(f"{unique}/wrench/presence", b"online")
        await wait_until(lambda: wrench.connected)
        await broker.stop()
        await wait_until(lambda: wrench.connected is False)
