"""Every order accepted by the station, also over MQTT, can be read over OPC UA; the lists stay readable (W13)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import msgspec
import pytest
import pytest_asyncio
from asyncua import Client, ua
from asyncua.ua.ua_binary import struct_to_binary

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.acceptance import MAX_BYTES, MAX_NESTING, MAX_TEXT_LENGTH
from edge.model.isa95 import JobOrder, JobOrderAndState, OrderCall, Parameter, ReturnStatus, WorkMaster
from edge.model.job_state import Cause
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import JobService
from edge.station.runs import Runs
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.client import Store
from edge.store.open_store import open_store
from edge.uaserver.encoding import ENCODING_ID, decode_structure
from edge.uaserver.job_feed import show_jobs
from edge.uaserver.server import UaServer
from tests.uaserver.running import Space

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCOPE = "station-1"


def order_with(*parameters: Parameter) -> JobOrder:
    return JobOrder(
        job_order_id="job-1",
        work_master_id=(WorkMaster(id="rear-axle"),),
        start_time=datetime(2026, 1, 2, tzinfo=UTC),
        job_order_parameters=parameters,
    )


def nested(levels: int) -> Parameter:
    parameter = Parameter(id="p", value=1)
    for _ in range(levels - 1):
        parameter = Parameter(id="p", subparameters=(parameter,))
    return parameter


def texts(size: int) -> JobOrder:
    """Return an order of `size` bytes of JSON, mostly texts."""
    parts = [Parameter(id="p", value="x" * 40_000)] * (size // 40_000 - 1)
    missing = size - len(msgspec.json.encode(order_with(*parts, Parameter(id="p", value=""))))
    return order_with(*parts, Parameter(id="p", value="x" * missing))


def json_of(levels: int) -> dict[str, object]:
    """Return JSON without a matching OPC UA type, nested `levels` deep."""
    value: dict[str, object] = {"a": [1, 10**30, None, 1.5]}
    for _ in range(levels - 2):
        value = {"a": value}
    return value


class Listener:
    """A subscription handler that collects every received list."""

    def __init__(self) -> None:
        self.lists = asyncio.Queue[list[object]]()

    def datachange_notification(self, _node: object, value: list[object], _data: object) -> None:
        self.lists.put_nowait(value)


async def store_over_mqtt(store: Store, order: JobOrder) -> CallAnswer:
    """Store an order at the station, as its MQTT interface does; return the answer."""
    await StationSettings(store).apply(SCOPE, "workmaster", SettingsMethod.PUT, {"ID": "rear-axle"})
    jobs = JobService(store, Runs(store, lambda: 1_000_000, keep_ended_ms=60_000), 100, 60_000)
    return await jobs.call(JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order), "/mes", "1"))


SendOrder = Callable[[JobOrder], Awaitable[list[JobOrder]]]


@pytest_asyncio.fixture(loop_scope="module")
async def publish_and_read(
    redis: RedisSettings, jobs: UaServer, client: Client, space: Space
) -> AsyncIterator[SendOrder]:
    """A function that stores an order over MQTT and returns it as a subscriber and a reader of the list receive it."""
    async with open_store(redis, "edge") as store, background_task(show_jobs(store, jobs, (SCOPE,)), "feed"):

        async def through(order: JobOrder) -> list[JobOrder]:
            heard = Listener()
            node = await space.job_order_list()
            subscription = await client.create_subscription(50, heard)
            await subscription.subscribe_data_change(node)
            assert (await store_over_mqtt(store, order)).status is ReturnStatus.NO_ERROR
            async with asyncio.timeout(60):
                while not (notified := await heard.lists.get()):
                    pass
            read = await node.read_value()
            await subscription.delete()
            return [order_of(entry) for entry in (*notified, *read)]

        yield through


def order_of(entry: object) -> JobOrder:
    """Return the order of an entry of the list, decoded by the server's own table."""
    written = ua.ExtensionObject(TypeId=ENCODING_ID[JobOrderAndState], Body=struct_to_binary(entry))
    return decode_structure(JobOrderAndState, written).job_order


@pytest.mark.parametrize(
    "order",
    [
        order_with(nested(MAX_NESTING)),
        order_with(Parameter(id="p", value="x" * MAX_TEXT_LENGTH)),
        order_with(Parameter(id="p", value="\N{NUT AND BOLT}" * 60_000)),
        order_with(*(Parameter(id="p", value=n) for n in range(5000))),
        texts(MAX_BYTES),
    ],
    ids=["deep", "a long text", "a text of many bytes", "many parameters", "largest"],
)
async def test_order_at_a_limit_is_reported_and_read_as_stored(publish_and_read: SendOrder, order: JobOrder) -> None:
    assert await publish_and_read(order) == [order, order]


async def test_json_value_without_an_opc_ua_type_is_read_as_text(publish_and_read: SendOrder) -> None:
    value = json_of(MAX_NESTING - 3)
    job_order = order_with(Parameter(id="p", value=msgspec.json.encode(value).decode()))
    assert await publish_and_read(order_with(Parameter(id="p", value=value))) == [job_order, job_order]


@pytest.mark.parametrize(
    "order",
    [
        order_with(nested(MAX_NESTING + 1)),
        order_with(Parameter(id="p", value="x" * (MAX_TEXT_LENGTH + 1))),
        texts(MAX_BYTES + 1),
    ],
    ids=["too deep", "too long a text", "too large"],
)
async def test_an_order_beyond_a_limit_is_refused(redis: RedisSettings, order: JobOrder) -> None:
    async with open_store(redis, "edge") as store:
        answer = await store_over_mqtt(store, order)
    assert answer.status is ReturnStatus.INVALID_REQUEST
    assert len(answer.reasons) == 1
