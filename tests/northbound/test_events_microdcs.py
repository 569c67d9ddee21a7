"""A client written for MicroDCS decodes every message: its data classes, from the published interface, read them all.

All members are optional there, unknown ones are ignored, and identifiers within a path are texts.
"""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec
import pytest

from edge.config import MqttSettings
from edge.links.mqtt import Message
from edge.model.event_types import (
    JOB_ORDER_TYPE,
    JOB_RESPONSE_TYPE,
    STATE_INDEX_TYPE,
    STATUS_EVENT_TYPE,
)
from edge.model.isa95 import IdCall
from edge.model.job_state import Cause
from edge.store.client import Store
from tests.northbound.test_publisher import Bench, opened_bench, order

_T = TypeVar("_T")


def alias(field: str) -> str:
    words = {"id": "ID"}
    return "".join(words.get(word, word.capitalize()) for word in field.split("_"))


class ClientData(msgspec.Struct, kw_only=True, rename=alias):
    """A data class of the client; members have their alias on the wire."""


class ClientText(ClientData):
    locale: str | None = None
    text: str | None = None


class ClientPathElement(ClientData):
    reference_type_id: str | None = msgspec.field(default=None, name="ReferenceTypeId")
    is_inverse: bool | None = None
    include_subtypes: bool | None = None
    target_name: str | None = None


class ClientPath(ClientData):
    elements: list[ClientPathElement] | None = None


class ClientState(ClientData):
    browse_path: ClientPath | None = None
    state_text: ClientText | None = None
    state_number: int | None = None


class ClientParameter(ClientData):
    id: str | None = None
    value: Any | None = None
    description: list[ClientText] | None = None


class ClientWorkMaster(ClientData):
    id: str | None = None
    description: ClientText | None = None
    parameters: list[ClientParameter] | None = None


class ClientOrder(ClientData):
    job_order_id: str | None = None
    description: list[ClientText] | None = None
    work_master_id: list[ClientWorkMaster] | None = None
    start_time: str | None = None
    end_time: str | None = None
    priority: int | None = None
    job_order_parameters: list[ClientParameter] | None = None


class ClientOrderAndState(ClientData):
    job_order: ClientOrder | None = None
    state: list[ClientState] | None = None


class ClientResponse(ClientData):
    job_response_id: str | None = None
    description: ClientText | None = None
    job_order_id: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    job_state: list[ClientState] | None = None
    job_response_data: list[ClientParameter] | None = None


class ClientStatusEvent(ClientData):
    job_order: ClientOrder | None = None
    job_response: ClientResponse | None = None
    job_state: list[ClientState] | None = None


class ClientIndexEntry(msgspec.Struct):
    job_order_id: str
    state: list[ClientState]
    has_result: bool = False


class ClientIndex(msgspec.Struct):
    seq: int
    scope: str
    published_at: str
    jobs: list[ClientIndexEntry]


CLASSES: dict[str, type] = {
    STATUS_EVENT_TYPE: ClientStatusEvent,
    JOB_ORDER_TYPE: ClientOrderAndState,
    JOB_RESPONSE_TYPE: ClientResponse,
    STATE_INDEX_TYPE: ClientIndex,
}


@pytest.fixture
async def bench(store: Store, mqtt: MqttSettings, unique: str) -> AsyncIterator[Bench]:
    async with opened_bench(store, mqtt, unique) as bench:
        yield bench


def decoded(messages: list[Message], kind: type[_T]) -> list[_T]:
    return [
        msgspec.json.decode(message.payload, type=kind)
        for message in messages
        if message.payload and CLASSES[message.user_properties["type"]] is kind
    ]


async def test_every_message_of_a_job_decodes_in_a_microdcs_client(bench: Bench) -> None:
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await bench.call(Cause.START, IdCall(job_order_id="J1"))
        await bench.call(Cause.REVOKE_START, IdCall(job_order_id="J1"))
        await bench.call(Cause.ABORT, IdCall(job_order_id="J1"))
        await bench.all_events_published()
    messages = [message for message in bench.heard.messages if message.payload]
    assert {message.user_properties["type"] for message in messages} == set(CLASSES)
    events = decoded(messages, ClientStatusEvent)
    assert [[state.state_text.text for state in event.job_state or () if state.state_text] for event in events] == [
        ["AllowedToStart", "Ready"],
        ["NotAllowedToStart", "Ready"],
        ["Aborted"],
    ]
    top, sub_state = events[0].job_state or []
    assert top.browse_path is None
    assert sub_state.browse_path
    (element,) = sub_state.browse_path.elements or []
    assert element.target_name
    assert element.target_name.endswith(";AllowedToStartSubstates")
    assert decoded(messages, ClientResponse)[-1].job_order_id == "J1"
    assert decoded(messages, ClientOrderAndState)[0].job_order
    assert decoded(messages, ClientIndex)[-1].jobs[0].has_result
