"""Tests of the simulated MES against a simulated station, message by message."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from edge.config import MqttSettings
from edge.features.simulator.mes import Mes, MethodReply, correlation_of, open_mes
from edge.foundation.errors import Refused, Unavailable
from edge.links.mqtt import Message, MqttSession, open_session, to_event, to_message
from edge.model.cloudevent import CloudEvent
from edge.model.isa95 import IdCall, JobOrder, OrderCall, ReturnStatus
from tests.conftest import WaitUntil


class PlayedStation:
    """A station that answers every call with the same data and records the calls."""

    def __init__(self, session: MqttSession) -> None:
        self.session = session
        self.received: list[Message] = []
        self.answer_fields: dict[str, object] | None = {"data": {"ReturnStatus": 1}}

    async def take(self, message: Message) -> None:
        self.received.append(message)
        if self.answer_fields is None or message.response_topic is None:
            return
        event = to_event(message)
        answer = CloudEvent(id="a", source="/edge", type=event.type, causationid=event.id)
        answer = msgspec.structs.replace(answer, **self.answer_fields)
        await self.session.send(to_message(answer, message.response_topic))


@pytest.fixture
async def station(mqtt: MqttSettings, unique: str) -> AsyncIterator[PlayedStation]:
    async with open_session(mqtt, f"{unique}-edge") as session:
        station = PlayedStation(session)
        await session.subscribe(f"{unique}/station-1/commands", station.take)
        yield station


@pytest.fixture
async def mes(mqtt: MqttSettings, unique: str, station: PlayedStation) -> AsyncIterator[Mes]:  # noqa: ARG001 - is first
    async with open_mes(mqtt, f"{unique}-mes", topic_prefix=unique) as mes:
        yield mes


async def test_call_has_opc_ua_spelling_and_returns_the_return_status(mes: Mes, station: PlayedStation) -> None:
    order = JobOrder(job_order_id="J1")
    answer = await mes.call("station-1", "StoreAndStart", OrderCall(job_order=order))
    assert answer == MethodReply(ReturnStatus.NO_ERROR)
    call = station.received[0]
    assert call.payload == b'{"JobOrder":{"JobOrderID":"J1"}}'
    assert call.content_type == "application/json"
    assert call.user_properties["type"] == "org.opcfoundation.ISA95-JOBCONTROL_V2.StoreAndStart.v2"
    assert call.user_properties["subject"] == "station-1"
    assert call.user_properties["correlationid"] == correlation_of("J1")
    assert call.correlation_data is not None


async def test_a_declined_call_reports_why(mes: Mes, station: PlayedStation) -> None:
    station.answer_fields = {"data": {"ReturnStatus": 8}, "mdcserrormessage": "the job is running"}
    answer = await mes.call("station-1", "Start", IdCall(job_order_id="J1"))
    assert answer == MethodReply(ReturnStatus.INVALID_JOB_ORDER_STATUS, "the job is running")


async def test_all_calls_for_one_job_have_the_same_correlation_id(mes: Mes, station: PlayedStation) -> None:
    await mes.call("station-1", "Store", OrderCall(job_order=JobOrder(job_order_id="J1")))
    await mes.call("station-1", "Start", IdCall(job_order_id="J1"))
    assert station.received[0].correlation_data == station.received[1].correlation_data


async def test_error_answer_is_raised_with_its_message(mes: Mes, station: PlayedStation) -> None:
    station.answer_fields = {"mdcserrorkind": "unknown_type", "mdcserrormessage": "no method Dance"}
    with pytest.raises(Refused, match="no method Dance") as refusal:
        await mes.call("station-1", "Dance", IdCall(job_order_id="J1"))
    assert refusal.value.kind == "unknown_type"


async def test_a_call_without_an_answer_ends_at_its_deadline(mes: Mes, station: PlayedStation) -> None:
    station.answer_fields = None
    with pytest.raises(Unavailable, match=r"Stop.v2 in scope 'station-1'"):
        await mes.call("station-1", "Stop", IdCall(job_order_id="J1"), deadline=0.05)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_station_settings_are_pushed(mes: Mes, station: PlayedStation, method: str) -> None:
    station.answer_fields = {}
    await mes.configure("station-1", "jobacceptance", {"max_downloadable_job_orders": 5}, method=method)
    pushed = station.received[0]
    assert pushed.payload == b'{"max_downloadable_job_orders":5}'
    assert pushed.user_properties["type"] == ("com.github.aschamberger.ISA95-JOBCONTROL_V2.config.jobacceptance.v1")
    assert (pushed.user_properties["subject"], pushed.user_properties["method"]) == ("station-1", method)


async def test_mes_receives_events_orders_and_results_of_the_station(
    mes: Mes, station: PlayedStation, unique: str, wait_until: WaitUntil
) -> None:
    seen: list[tuple[str, object]] = []

    async def note(topic: str, event: CloudEvent) -> None:
        seen.append((topic, event.data))

    event = CloudEvent(id="1", source="/edge", type="t", data={"n": 1})
    await station.session.send(to_message(event, f"{unique}/station-1/order/J1", retain=True))
    await mes.watch("station-1", note)
    await station.session.send(to_message(event, f"{unique}/station-1/events"))
    await station.session.publish(f"{unique}/station-1/order/J1", retain=True)
    await station.session.publish(f"{unique}/station-1/data", b"unreadable")
    await station.session.send(to_message(event, f"{unique}/station-1/result/J1"))
    await wait_until(lambda: len(seen) == 3)
    assert sorted(topic for topic, _ in seen) == ["events", "order/J1", "result/J1"]
