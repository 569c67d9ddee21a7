"""The inbox answers every call and continues after any input."""

import asyncio
import uuid
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from structlog.testing import capture_logs

from edge.config import MqttSettings
from edge.foundation.text import Text
from edge.links.mqtt import Message, open_session, to_event
from edge.model.cloudevent import MSGPACK, STRUCTURED_JSON
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, REFUSED_TYPE
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import METHODS, JobState
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.northbound.inbox import UnsentAnswers, parse_call
from edge.northbound.topics import Topics
from edge.store import jobs, resources
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.northbound.calling import (
    SCOPE,
    WORK_MASTER,
    Caller,
    Station,
    binary_attributes,
    called,
    opened_inbox,
    order,
    status_of,
)
from tests.plain_mqtt import plain_client

STORE = METHOD_TYPE.format("Store")


async def state_of(store: Store, job_id: str) -> JobState | None:
    job = await jobs.load(store, job_id)
    return job.status.state if job else None


async def until_state(store: Store, job_id: str, state: JobState) -> None:
    """Wait for a state: at each change of any job, look again."""
    seen = "0-0"
    while await state_of(store, job_id) is not state:
        reply = await store.wait("XREAD", "BLOCK", 2000, "STREAMS", store.keys.joborder_changes(SCOPE), seen)
        assert reply, f"{job_id} does not become {state.name}"
        seen = next(iter(reply.values()))[0][-1][0]


async def still_works(mes: Caller) -> None:
    """Store a job: what came before has stopped nothing."""
    assert status_of(await mes.call("Store", order(f"after-{uuid.uuid4()}"))) == ReturnStatus.NO_ERROR


async def test_all_eleven_methods_move_a_job_and_answer_success(mes: Caller, store: Store, station: Station) -> None:
    called = set()

    async def call(method: str, data: dict[str, Any], leads_to: JobState | None) -> None:
        called.add(method)
        assert status_of(await mes.call(method, data)) == ReturnStatus.NO_ERROR, method
        assert await state_of(store, "J1") is leads_to, method

    named = {"JobOrderID": "J1"}
    await call("Store", order("J1"), JobState.NOT_ALLOWED_TO_START)
    await call("Update", order("J1", Priority=3), JobState.NOT_ALLOWED_TO_START)
    await call("Start", named, JobState.ALLOWED_TO_START)
    await call("RevokeStart", named, JobState.NOT_ALLOWED_TO_START)
    await call("Cancel", named, None)
    await call("StoreAndStart", order("J1"), JobState.ALLOWED_TO_START)
    async with station.at_work():
        await until_state(store, "J1", JobState.RUNNING)
        await call("Pause", named, JobState.INTERRUPTED)
        await call("Resume", named, JobState.RUNNING)
        await call("Stop", named, JobState.ENDED)
    await call("Clear", named, None)
    await call("Store", order("J1"), JobState.NOT_ALLOWED_TO_START)
    await call("Abort", named, JobState.ABORTED)
    assert called == set(METHODS)


@pytest.mark.parametrize(
    ("method", "data", "status", "reason"),
    [
        ("Start", {"JobOrderID": "unheard-of"}, ReturnStatus.UNKNOWN_JOB_ORDER_ID, "no such job order"),
        ("Update", order("unheard-of"), ReturnStatus.UNKNOWN_JOB_ORDER_ID, "no such job order"),
        ("Pause", {"JobOrderID": "stored"}, ReturnStatus.INVALID_JOB_ORDER_STATUS, "in state NotAllowedToStart"),
        ("Clear", {"JobOrderID": "stored"}, ReturnStatus.INVALID_JOB_ORDER_STATUS, "Clear is not allowed in state"),
        ("Store", order("stored"), ReturnStatus.INVALID_JOB_ORDER_STATUS, "stored already"),
        ("Store", order("J1", "WM-unknown"), ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, "'WM-unknown' is not known"),
        (
            "StoreAndStart",
            order("J1", EquipmentRequirements=[{"ID": "robot-9"}]),
            ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER,
            "equipment 'robot-9' is not known",
        ),
        ("Store", order(""), ReturnStatus.INVALID_REQUEST, "JobOrderID is empty"),
        ("Store", order("x" * 256), ReturnStatus.INVALID_REQUEST, "longer than 255"),
    ],
)
async def test_declined_call_has_status_and_reason(
    mes: Caller, method: str, data: dict[str, Any], status: ReturnStatus, reason: str
) -> None:
    await mes.call("Store", order("stored"))
    answer = await mes.call(method, data)
    assert status_of(answer) == status
    assert reason in answer.user_properties["mdcserrormessage"]
    assert "mdcserrorkind" not in answer.user_properties


async def test_an_answer_reports_which_call_it_answers(mes: Caller) -> None:
    correlation = uuid.uuid4()
    attributes = binary_attributes(STORE, correlationid=str(correlation))
    payload = msgspec.json.encode(order("J1"))
    answer = await mes.ask(payload, attributes, correlation_data=b"as the MES likes it")
    event = to_event(answer)
    assert answer.correlation_data == b"as the MES likes it"
    assert event.type == STORE
    assert event.causationid == attributes["id"]
    assert event.correlationid == str(correlation)
    assert event.source == "urn:edge"
    assert event.id != attributes["id"]
    assert event.data == {"ReturnStatus": 1}


async def test_a_call_in_messagepack_is_answered_in_messagepack(mes: Caller, store: Store) -> None:
    answer = await mes.ask(msgspec.msgpack.encode(order("J1")), binary_attributes(STORE), content_type=MSGPACK)
    assert answer.content_type == MSGPACK
    assert msgspec.msgpack.decode(answer.payload) == {"ReturnStatus": 1}
    assert await state_of(store, "J1") is JobState.NOT_ALLOWED_TO_START


async def test_structured_mode_is_accepted(mes: Caller, store: Store) -> None:
    envelope = {**binary_attributes(STORE, subject=SCOPE), "data": order("J1")}
    answer = await mes.ask(msgspec.json.encode(envelope), {}, content_type=STRUCTURED_JSON)
    assert to_event(answer).causationid == envelope["id"]
    assert status_of(answer) == ReturnStatus.NO_ERROR
    assert await state_of(store, "J1") is JobState.NOT_ALLOWED_TO_START


async def test_repeated_call_gets_the_same_answer_and_has_no_second_effect(mes: Caller, store: Store) -> None:
    attributes = binary_attributes(STORE)
    answers = [await mes.ask(msgspec.json.encode(order("J1")), attributes) for _ in range(2)]
    assert [status_of(answer) for answer in answers] == [ReturnStatus.NO_ERROR] * 2
    assert await store.execute("XLEN", store.keys.joborder_changes(SCOPE)) == 1


async def test_scope_is_taken_from_the_subject_or_else_from_the_topic(mes: Caller) -> None:
    payload = msgspec.json.encode(order("J1"))
    answer = await mes.ask(payload, binary_attributes(STORE, subject="elsewhere"))
    assert answer.user_properties["mdcserrorkind"] == "unknown_scope"
    assert "'elsewhere'" in answer.user_properties["mdcserrormessage"]
    assert status_of(await mes.ask(payload, binary_attributes(STORE))) == ReturnStatus.NO_ERROR


async def test_station_settings_are_accepted_on_either_topic_and_deleted(mes: Caller, store: Store) -> None:
    change = CONFIG_TYPE.format("equipment")
    for topic, payload in ((mes.topics.commands, b'{"ID": "E1"}'), (mes.topics.metadata, b'[{"ID": "E2"}]')):
        answer = await mes.ask(payload, binary_attributes(change), topic=topic)
        assert (answer.payload, answer.user_properties["type"]) == (b"", change)
        assert "mdcserrorkind" not in answer.user_properties
    await mes.ask(b'{"ID": "E1"}', binary_attributes(change, method="DELETE"))
    assert (await resources.load_allowed(store, SCOPE)).resources["equipment"] == {"E2"}  # type: ignore[index]


async def test_call_without_response_topic_is_accepted_without_an_answer(mes: Caller, store: Store) -> None:
    payload = msgspec.json.encode(order("J1"))
    await mes.session.publish(mes.topics.commands, payload, user_properties=binary_attributes(STORE))
    await mes.session.publish(mes.topics.commands, b"nobody wants to know what is wrong with this")
    await still_works(mes)
    assert await state_of(store, "J1") is JobState.NOT_ALLOWED_TO_START
    assert mes.unasked == []


def deep(levels: int) -> bytes:
    """Return an order whose parameters are nested so deep."""
    inner = b'{"ID": "p", "Subparameters": [' * levels + b'{"ID": "p"}' + b"]}" * levels
    return b'{"JobOrder": {"JobOrderID": "deep", "JobOrderParameters": [' + inner + b"]}}"


EXTENSION = msgspec.msgpack.encode({"JobOrder": {"JobOrderID": "J", "Value": msgspec.msgpack.Ext(5, b"x")}})
UNFIT_RECIPE = {"steps": [{"name": "A"}, {"name": "A"}], "transitions": [{"source": "A", "target": "B"}]}
UNFIT = msgspec.json.encode({"ID": "WM-2", "data": UNFIT_RECIPE, "dataschema": RECIPE_DATASCHEMA})

BAD_INPUT = {
    "bytes that are not JSON": (b"\xff\x00{", STORE, "application/json", "unreadable", "application/json"),
    "bytes that are not MessagePack": (b"\xc1", STORE, MSGPACK, "unreadable", "application/msgpack"),
    "a content type nobody reads": (b"<a/>", STORE, "text/xml", "unreadable", "text/xml"),
    "an envelope that is none": (b"[]", STORE, STRUCTURED_JSON, "unreadable", "not a CloudEvent"),
    "an unknown type": (b"{}", "com.example.Dance.v1", "application/json", "unknown_type", "com.example.Dance.v1"),
    "an unknown method": (b"{}", METHOD_TYPE.format("Dance"), "application/json", "unknown_type", "Dance"),
    "no arguments": (b"", STORE, "application/json", "invalid_payload", "does not have the arguments of"),
    "arguments of another method": (
        b'{"JobOrderID": "J"}',
        STORE,
        "application/json",
        "invalid_payload",
        "missing required field `JobOrder`",
    ),
    "an argument of another type": (
        b'{"JobOrder": {"JobOrderID": 7}}',
        STORE,
        "application/json",
        "invalid_payload",
        "$.JobOrder.JobOrderID",
    ),
    "nesting beyond all use": (deep(200), STORE, "application/json", "unreadable", "nested deeper than 36"),
    "nesting beyond the stack": (deep(50_000), STORE, "application/json", "unreadable", "application/json"),
    "a type that JSON does not have": (EXTENSION, STORE, MSGPACK, "unreadable", "extension type"),
    "a key that is not a text": (b"\x81\x91\x01\x02", STORE, MSGPACK, "unreadable", "a key that is not a text"),
    "a mebibyte of nothing": (b" " * 2**20, STORE, "application/json", "unreadable", "application/json"),
    "settings of another shape": (
        b'{"max_downloadable_job_orders": "many"}',
        CONFIG_TYPE.format("jobacceptance"),
        "application/json",
        "invalid_payload",
        "max_downloadable_job_orders",
    ),
    "two limits at once": (
        b'[{"max_downloadable_job_orders": 1}, {"max_downloadable_job_orders": 2}]',
        CONFIG_TYPE.format("jobacceptance"),
        "application/json",
        "invalid_payload",
        "not one JobAcceptance",
    ),
    "settings that name nothing": (
        b"{}",
        CONFIG_TYPE.format("materialclass"),
        "application/json",
        "invalid_payload",
        "names no materialclass",
    ),
}


@pytest.mark.parametrize(("payload", "event_type", "content_type", "kind", "words"), BAD_INPUT.values(), ids=BAD_INPUT)
async def test_invalid_input_is_answered_and_the_inbox_continues(
    mes: Caller, payload: bytes, event_type: str, content_type: str, kind: str, words: str
) -> None:
    attributes = binary_attributes(event_type)
    answer = await mes.ask(payload, attributes, content_type=content_type)
    assert answer.user_properties["mdcserrorkind"] == kind
    assert words in answer.user_properties["mdcserrormessage"]
    await still_works(mes)


async def test_answer_to_an_unreadable_call_references_the_call(mes: Caller) -> None:
    attributes = binary_attributes(STORE, subject=SCOPE, correlationid=str(uuid.uuid4()))
    answer = await mes.ask(b"{", attributes)
    answered = answer.user_properties
    assert (answered["type"], answered["causationid"], answered["subject"]) == (
        STORE,
        attributes["id"],
        SCOPE,
    )
    assert answered["correlationid"] == attributes["correlationid"]


@pytest.mark.parametrize("missing", ["id", "source", "type"])
async def test_message_without_a_cloudevent_attribute_is_refused_naming_it(mes: Caller, missing: str) -> None:
    attributes = binary_attributes(STORE)
    del attributes[missing]
    answer = await mes.ask(b"{}", attributes)
    assert answer.user_properties["mdcserrorkind"] == "unreadable"
    assert f"attribute {missing} missing" in answer.user_properties["mdcserrormessage"]
    assert answer.user_properties["type"] == (REFUSED_TYPE if missing == "type" else STORE)


async def test_a_refused_recipe_is_answered_with_all_its_faults(mes: Caller, store: Store) -> None:
    answer = await mes.ask(UNFIT, binary_attributes(CONFIG_TYPE.format("workmaster")))
    assert answer.user_properties["mdcserrorkind"] == "recipe"
    message_text = answer.user_properties["mdcserrormessage"]
    assert message_text.count("WM-2: ") >= 3
    assert "edge check recipe" in message_text
    assert (await resources.load_allowed(store, SCOPE)).work_masters == {WORK_MASTER.id}


@pytest.mark.parametrize("method", ["put", "PATCH", " "])
async def test_a_method_of_settings_that_is_neither_put_nor_delete_is_refused(mes: Caller, method: str) -> None:
    answer = await mes.ask(b'{"ID": "E1"}', binary_attributes(CONFIG_TYPE.format("equipment"), method=method))
    assert answer.user_properties["mdcserrorkind"] == "invalid_payload"


async def test_forbidden_response_topic_does_not_block_the_inbox(mes: Caller) -> None:
    await mes.session.send(Message(mes.topics.commands, b"{}", response_topic="$SYS/not-ours"))
    await still_works(mes)


@pytest.mark.parametrize("topic", ["a/+/b", "#"])
async def test_call_with_invalid_response_topic_does_not_block_the_inbox(
    mes: Caller, mqtt: MqttSettings, topic: str
) -> None:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.ResponseTopic = topic
    # Newer brokers refuse the message themselves and end the connection of its sender; older ones deliver it.
    with plain_client(urlsplit(mqtt.url).port or 0) as careless:
        careless.publish(mes.topics.commands, b"{}", qos=1, properties=properties)
        await still_works(mes)


async def test_large_valid_order_is_accepted(mes: Caller, store: Store) -> None:
    deep: dict[str, Any] = {"ID": "deepest", "Value": 1}
    for _ in range(15):
        deep = {"ID": "deep", "Subparameters": [deep]}
    parameters = [*({"ID": f"picture {n}", "Value": "x" * 60_000} for n in range(4)), deep]
    assert status_of(await mes.call("Store", order("J1", JobOrderParameters=parameters))) == ReturnStatus.NO_ERROR
    assert await state_of(store, "J1") is JobState.NOT_ALLOWED_TO_START


async def test_an_order_that_is_too_large_is_declined(mes: Caller, store: Store) -> None:
    parameters = [{"ID": "picture", "Value": "x" * 2**20}]
    assert (
        status_of(await mes.call("Store", order("J1", JobOrderParameters=parameters))) == ReturnStatus.INVALID_REQUEST
    )
    assert await state_of(store, "J1") is None


async def test_defect_is_answered_as_internal_error_and_the_inbox_continues(mes: Caller, station: Station) -> None:
    async def broken(_: str) -> None:
        raise ZeroDivisionError

    station.settings.listeners.append(broken)
    answer = await mes.ask(b'{"ID": "E1"}', binary_attributes(CONFIG_TYPE.format("equipment")))
    assert answer.user_properties["mdcserrorkind"] == "internal"
    assert "ZeroDivisionError" in answer.user_properties["mdcserrormessage"]
    station.settings.listeners.clear()
    answer = await mes.ask(b'{"ID": "E1"}', binary_attributes(CONFIG_TYPE.format("equipment")))
    assert "mdcserrorkind" not in answer.user_properties


async def test_no_answer_is_published_to_a_topic_of_equipment(
    mes: Caller, station: Station, mqtt: MqttSettings, unique: str
) -> None:
    queue: asyncio.Queue[Message] = asyncio.Queue()
    foreign = f"{unique}-equipment/wrench/commands"

    async def take(message: Message) -> None:
        queue.put_nowait(message)

    async with open_session(mqtt, f"{unique}-wrench", session_expiry=0) as session:
        await session.subscribe(foreign, take)
        call = Message(
            mes.topics.commands,
            msgspec.json.encode(order("J1")),
            content_type="application/json",
            user_properties=binary_attributes(STORE),
            response_topic=foreign,
        )
        await mes.session.send(call)
        # Answered in order: the answer of the first would have come before that of the second.
        assert status_of(await mes.call("Start", {"JobOrderID": "J1"})) == ReturnStatus.NO_ERROR
        await session.send(Message(foreign, b"last"))
        first = await asyncio.wait_for(queue.get(), 60)
    assert (first.payload, queue.empty()) == (b"last", True)
    assert await state_of(station.store, "J1") is JobState.ALLOWED_TO_START


async def test_call_and_setting_with_the_same_id_are_refused_as_repeated_id(mes: Caller) -> None:
    method, setting = METHOD_TYPE.format("Store"), CONFIG_TYPE.format("workmaster")
    call, master = msgspec.json.encode(order("J1")), msgspec.json.encode({"ID": "plain"})
    assert status_of(await mes.ask(call, binary_attributes(method, id="1"))) == ReturnStatus.NO_ERROR
    answer = await mes.ask(master, binary_attributes(setting, id="1"))
    assert answer.user_properties["mdcserrorkind"] == "repeated_id"
    assert "mdcserrorkind" not in (await mes.ask(master, binary_attributes(setting, id="2"))).user_properties
    answer = await mes.ask(call, binary_attributes(method, id="2"))
    assert answer.user_properties["mdcserrorkind"] == "repeated_id"


async def test_call_that_the_broker_had_retained_is_refused(
    store: Store, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    topics = Topics(unique, SCOPE)
    attributes = binary_attributes(METHOD_TYPE.format("StoreAndStart"))
    async with called(mqtt, unique) as mes:
        await mes.session.publish(
            topics.commands,
            msgspec.json.encode(order("J1")),
            retain=True,
            content_type="application/json",
            user_properties=attributes,
            response_topic=mes.answers_topic,
        )
        async with opened_inbox(store, mqtt, unique):
            await wait_until(lambda: mes.unasked)
            assert mes.unasked[0].user_properties["mdcserrorkind"] == "retained"
            assert await state_of(store, "J1") is None
            await still_works(mes)


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def test_unsent_answer_is_a_problem_for_an_hour(clock: _Clock) -> None:
    unsent = UnsentAnswers(clock)
    assert unsent.problems() == []
    with capture_logs() as logs:
        for _ in range(3):
            unsent.add("app/answers/me", Text("not authorized"), "app/jobs/station-1/commands")
    assert list(map(str, unsent.problems())) == ["answers to app/answers/me are not sent: not authorized"]
    assert [entry["event"] for entry in logs] == ["answer dropped"]
    clock.now += 3599
    assert unsent.problems() != []
    clock.now += 2
    assert unsent.problems() == []


def test_answer_that_passes_ends_the_problem_of_its_topic(clock: _Clock) -> None:
    unsent = UnsentAnswers(clock)
    unsent.add("a", Text("not authorized"), "commands")
    unsent.add("b", Text("not authorized"), "commands")
    unsent.remove("a")
    assert list(map(str, unsent.problems())) == ["answers to b are not sent: not authorized"]


def test_topics_that_callers_choose_take_bounded_room(clock: _Clock) -> None:
    unsent = UnsentAnswers(clock)
    for number in range(1000):
        unsent.add(f"{number} {'x' * 60_000}", Text("not allowed"), "commands")
    found = list(map(str, unsent.problems()))
    assert len(found) == 3
    assert "999 " in found[-1]
    assert max(map(len, found)) < 300


@pytest.mark.parametrize("ahead_ms", [0, 120_000, -120_000])
def test_expiry_of_a_message_is_counted_by_the_clock_of_the_stores_host(ahead_ms: int) -> None:
    """Message Expiry Interval runs from the arrival, which this machine dates."""
    interval = {"specversion": "1.0", "id": "1", "source": "/mes", "type": "t", "expiryinterval": "60"}
    message = Message("app/jobs/s/commands", b"{}", user_properties=interval, expiry=10, received_at=1_000_000)
    call = parse_call("s", message, ahead_ms)
    assert call.expires_at == 1_010_000 + ahead_ms
    assert call.sent_at == 950_000 + ahead_ms
