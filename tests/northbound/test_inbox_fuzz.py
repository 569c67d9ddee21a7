"""The inbox answers any input once, never with an internal error, and continues."""

import asyncio
import json
import os
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.app.features import settings_kinds
from edge.links.mqtt import Message
from edge.model.cloudevent import MSGPACK, STRUCTURED_JSON
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import METHODS
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.settings import KINDS
from edge.store import dead_letters
from edge.store.client import Store
from tests.examples import examples
from tests.northbound.calling import SCOPE, WORK_MASTER, Caller, binary_attributes, order, status_of

CALLS = int(os.environ.get("EDGE_FUZZ", examples(3000)))
AT_A_TIME = 10

Sent = tuple[bytes, str, dict[str, str]]
"""Payload, content type and attributes."""


class Doubled(dict[str, str]):
    """Attributes of which each is sent twice, first with another value."""

    def items(self) -> list[tuple[str, str]]:  # type: ignore[override]
        return [pair for name, value in super().items() for pair in ((name, f"not {value}"), (name, value))]


FIELDS = st.sampled_from(
    [
        *("JobOrder", "JobOrderID", "Comment", "WorkMasterID", "ID", "Priority", "StartTime", "JobOrderParameters"),
        *("Value", "Subparameters", "EngineeringUnits", "EquipmentRequirements", "data", "dataschema", "steps"),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["J1", WORK_MASTER.id, RECIPE_DATASCHEMA, "list:station-1", "2026-01-02T03:04:05Z", "x" * 300]),
)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS | st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)
NEAR_ORDERS = st.one_of(
    st.builds(order, st.text(max_size=10)),
    st.builds(lambda further: order("J2", **further), st.dictionaries(FIELDS, JSON_VALUES, max_size=3)),
    st.builds(lambda value: order(f"{uuid.uuid4()}", JobOrderParameters=[{"ID": "p", "Value": value}]), JSON_VALUES),
)
NEAR_ITEMS = st.fixed_dictionaries(
    {"ID": st.text(max_size=5)}, optional={"data": JSON_VALUES, "dataschema": st.just(RECIPE_DATASCHEMA)}
)
METHOD_TYPES = st.sampled_from([METHOD_TYPE.format(method) for method in (*METHODS, "RequestJobResponseByJobOrderID")])
CONFIG_TYPES = st.sampled_from([CONFIG_TYPE.format(kind) for kind in (*KINDS, *settings_kinds())])
NEAR_CALLS = st.one_of(
    st.tuples(METHOD_TYPES, NEAR_ORDERS),
    st.tuples(METHOD_TYPES, st.fixed_dictionaries({"JobOrderID": st.sampled_from(["J1", "J2"]) | SCALARS})),
    st.tuples(CONFIG_TYPES, NEAR_ITEMS | st.lists(NEAR_ITEMS, max_size=3)),
    st.tuples(METHOD_TYPES | CONFIG_TYPES | st.text(max_size=20), JSON_VALUES),
)
FURTHER = st.dictionaries(
    st.sampled_from(
        ["subject", "correlationid", "expiryinterval", "method", "data", "extensions", "time", "id", "type"]
    )
    | st.text(max_size=10),
    st.sampled_from([SCOPE, "DELETE", ""]) | st.text(max_size=20),
    max_size=2,
)


def sent(call: tuple[str, object], further: dict[str, str], way: str, noise: bytes) -> Sent:
    """Send a call one of the ways it may come, or not quite."""
    event_type, data = call
    attributes = binary_attributes(event_type)
    match way:
        case "binary":
            return json.dumps(data).encode(), "application/json", attributes
        case "messagepack":
            return msgspec.msgpack.encode(json.loads(json.dumps(data), parse_int=float)), MSGPACK, attributes
        case "structured":
            return json.dumps(attributes | further | {"data": data}).encode(), STRUCTURED_JSON, {}
        case "odd attributes":
            return json.dumps(data).encode(), "application/json", attributes | further
        case "attributes twice":
            return json.dumps(data).encode(), "application/json", Doubled(attributes | further)
        case "deep":
            depth = 10 * len(noise) + 1
            return b"[" * depth + b"]" * depth, "application/json", attributes
        case "huge":
            return json.dumps({"JobOrder": {"JobOrderID": "x" * 5000 * len(noise)}}).encode(), "", attributes
        case _:
            return noise, MSGPACK if noise[:1] < b"\x80" else "application/json", attributes


MESSAGES = st.builds(
    sent,
    NEAR_CALLS,
    FURTHER,
    st.sampled_from(
        ["binary", "messagepack", "structured", "odd attributes", "noise", "attributes twice", "deep", "huge"]
    ),
    st.binary(max_size=60),
)


CORRELATIONS = st.sampled_from([b"", b"no uuid ", b"\xff\xfe", bytes(16), b"x" * 200])
"""What stands before the number that makes correlation data unique; nothing: a UUID."""


@pytest.mark.timeout(60 + CALLS // 50)
@settings(max_examples=CALLS // AT_A_TIME, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(st.tuples(MESSAGES, CORRELATIONS), min_size=AT_A_TIME, max_size=AT_A_TIME), unasked=MESSAGES)
async def test_any_message_is_answered_once(mes: Caller, batch: list[tuple[Sent, bytes]], unasked: Sent) -> None:
    payload, content_type, attributes = unasked
    await mes.session.send(Message(mes.topics.commands, payload, content_type=content_type, user_properties=attributes))
    answers = await asyncio.gather(*(ask(mes, message, correlation) for message, correlation in batch))
    for answer in answers:
        kind = answer.user_properties.get("mdcserrorkind")
        assert kind != "internal", answer.user_properties["mdcserrormessage"]
        if kind is None and answer.payload:
            assert ReturnStatus(return_status(answer))
    assert mes.unasked == []


async def ask(mes: Caller, message: Sent, correlation: bytes) -> Message:
    payload, content_type, attributes = message
    number = uuid.uuid4().bytes
    correlation_data = correlation + number if correlation else number
    return await mes.ask(payload, attributes, content_type=content_type, correlation_data=correlation_data)


def return_status(answer: Message) -> int:
    decode = msgspec.msgpack.decode if answer.content_type == MSGPACK else msgspec.json.decode
    status: int = decode(answer.payload)["ReturnStatus"]
    return status


async def test_refused_messages_are_counted_and_the_next_call_is_accepted(mes: Caller, store: Store) -> None:
    answers = [await mes.ask(b"\xff" * number, {}, correlation_data=b"%d" % number) for number in range(1, 20)]
    assert {answer.user_properties["mdcserrorkind"] for answer in answers} == {"unreadable"}
    assert await dead_letters.count_refused(store) == 19
    assert status_of(await mes.call("Store", order("J1"))) == ReturnStatus.NO_ERROR
