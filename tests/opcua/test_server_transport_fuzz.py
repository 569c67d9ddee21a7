"""Malformed calls to a running server: each is answered, other clients are not affected, accepted orders are shown.

`make fuzz` sends 100,000 of them, `make test` a few.
"""

import asyncio
import logging
import os
import random
import resource
import time
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec
import pytest
import pytest_asyncio
from asyncua import Client, ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import nodeid_from_binary, nodeid_to_binary, struct_from_binary, struct_to_binary

from edge.model.isa95 import JobOrder, JobOrderAndState, OrderCall, ReturnStatus
from edge.model.job_state import METHODS, RESPONSE_METHODS, JobState, JobStatus, state_entries
from edge.model.user import Role
from edge.uaserver.encoding import extension_object
from edge.uaserver.namespaces import Namespace
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.running import Station, served
from tests.uaserver.test_encoding import nested
from tests.uaserver.test_methods import COMMENT, JOB, TAKES_ORDER, order_argument

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

CALLS = int(os.environ.get("EDGE_FUZZ", "3000"))
AT_A_TIME = 50
PATH = "station-1/MachineryBuildingBlocks/JobManagement"
EXPECTED = {
    ua.StatusCodes.Good,  # status of the request; each call in it has its own status
    ua.StatusCodes.BadDecodingError,
    ua.StatusCodes.BadNothingToDo,
    ua.StatusCodes.BadTooManyOperations,
}
EXTREMES = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\1\0", b"\1\0\0\0", b"\0\0\0\0")


@pytest.fixture(autouse=True)
def _unrecorded() -> Iterator[None]:
    """Disable the audit records, as pytest would collect all of them and falsify the measured memory."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def station() -> Station:
    return Station()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(station: Station) -> AsyncIterator[UaServer]:
    async with served(station=station, role=Role.ENGINEER) as running:
        yield running


def body_of(name: str, *arguments: ua.Variant) -> bytes:
    part = "JobOrderResults" if name in RESPONSE_METHODS else "JobOrderControl"
    call = ua.CallMethodRequest(
        ObjectId=ua.NodeId(f"{PATH}/{part}", Namespace.MACHINES),
        MethodId=ua.NodeId(f"{PATH}/{part}/{name}", Namespace.MACHINES),
        InputArguments=list(arguments),
    )
    packed: bytes = struct_to_binary(ua.CallParameters(MethodsToCall=[call]))
    return packed


def sound_bodies() -> list[bytes]:
    states = [extension_object(entry) for entry in state_entries(JobStatus(JobState.ENDED))]
    values = [
        ua.Variant([ua.Variant(1, ua.VariantType.Byte), ua.Variant("a")], ua.VariantType.Variant, is_array=True),
        ua.Variant([[1, 2], [3, 4]], ua.VariantType.Int16),
        ua.Variant(ua.QualifiedName("q", 3)),
        ua.Variant(ua.NodeId("n", 2)),
    ]
    return [
        *(body_of(name, order_argument(), COMMENT) for name in TAKES_ORDER),
        *(body_of(name, JOB, COMMENT) for name in METHODS if name not in TAKES_ORDER),
        body_of("RequestJobResponseByJobOrderID", JOB),
        body_of("RequestJobResponseByJobOrderState", ua.Variant(states, ua.VariantType.ExtensionObject, is_array=True)),
        *(body_of("Store", value, value) for value in values),
    ]


def mutilated(body: bytes, chance: random.Random) -> bytes:
    """Return a body with random changes of bytes, lengths and order, cut, or entirely random."""
    if chance.random() < 0.02:
        return chance.randbytes(chance.randrange(200))
    data = bytearray(body)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = max(chance.randrange(len(data)), chance.randrange(len(data))) if data else 0
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                data[at : at + 4] = chance.choice(EXTREMES)
            case 2:
                del data[at : at + chance.randrange(1, 20)]
            case 3:
                data[at:at] = data[chance.randrange(len(data) + 1) :][: chance.randrange(1, 60)]
            case 4:
                data[at:at] = chance.randbytes(chance.randrange(1, 8))
            case _:
                data[at : at + 1] = bytes((data[at] ^ 1 << chance.randrange(8),)) if data else b""
    return bytes(data[: 1 << 16])


def fire(client: Client, body: bytes) -> asyncio.Future[Buffer]:
    """Send a Call request with any body; return the future of its answer."""
    # The client of asyncua sends only requests that it can encode itself.
    protocol = client.uaclient.protocol
    header = ua.RequestHeader()
    protocol._setup_request_header(header, 1)  # noqa: SLF001
    service = ua.NodeId(ua.ObjectIds.CallRequest_Encoding_DefaultBinary)
    message = nodeid_to_binary(service) + struct_to_binary(header) + body
    protocol._request_id += 1  # noqa: SLF001
    answer: asyncio.Future[Buffer] = asyncio.get_running_loop().create_future()
    protocol._callbackmap[protocol._request_id] = answer  # noqa: SLF001
    packed = protocol._connection.message_to_binary(message, request_id=protocol._request_id)  # noqa: SLF001
    protocol.transport.write(packed)
    return answer


async def volley(client: Client, bodies: Sequence[bytes]) -> list[int]:
    """Send several bodies at once; return the status of each answer."""
    async with asyncio.timeout(30):
        answers = await asyncio.gather(*(fire(client, body) for body in bodies))
    return [status_of(answer) for answer in answers]


def status_of(answer: Buffer) -> int:
    nodeid_from_binary(answer)
    return int(struct_from_binary(ua.ResponseHeader, answer).ServiceResult.value)


async def reads_of_another(server: UaServer, latencies: list[float]) -> None:
    async with patient_client(server.endpoint) as other:
        node = other.get_node(ua.ObjectIds.Server_ServiceLevel)
        while True:
            began = time.perf_counter()
            assert await node.read_value() is not None
            latencies.append(time.perf_counter() - began)
            await asyncio.sleep(0.01)


def can_be_shown(order: JobOrder) -> bool:
    """Return whether an order is unchanged after storage and can be encoded for the list."""
    job_order = msgspec.json.decode(msgspec.json.encode(order), type=JobOrder)
    job_order_and_state = JobOrderAndState(job_order=job_order, state=state_entries(JobStatus(JobState.RUNNING)))
    as_it_came = JobOrderAndState(job_order=order, state=job_order_and_state.state)
    return bool(extension_object(job_order_and_state) == extension_object(as_it_came))


async def test_malformed_calls_do_not_affect_the_server_or_other_sessions(server: UaServer, station: Station) -> None:
    chance = random.Random(4711)
    sound = sound_bodies()
    latencies: list[float] = []
    watching = asyncio.create_task(reads_of_another(server, latencies))
    seen: dict[int, int] = {}
    accepted = 0
    async with patient_client(server.endpoint) as client:
        used = 0
        for number in range(0, CALLS, AT_A_TIME):
            for status in await volley(client, [mutilated(chance.choice(sound), chance) for _ in range(AT_A_TIME)]):
                seen[status] = seen.get(status, 0) + 1
            for call in station.calls:
                accepted += 1
                if isinstance(call.arguments, OrderCall):
                    assert can_be_shown(call.arguments.job_order)
            station.reset()
            if number == CALLS // 5 // AT_A_TIME * AT_A_TIME:
                used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert await volley(client, [sound[0]]) == [0]
    watching.cancel()
    assert sum(seen.values()) == CALLS
    assert seen.keys() <= EXPECTED, seen
    assert accepted > CALLS // 50
    assert len(latencies) > CALLS // 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 16_384  # KiB


async def test_order_nested_200_levels_deep_is_refused(server: UaServer, station: Station) -> None:
    station.reset()
    part = f"{PATH}/JobOrderControl"
    call = ua.CallMethodRequest(
        ua.NodeId(part, Namespace.MACHINES),
        ua.NodeId(f"{part}/Store", Namespace.MACHINES),
        [order_argument(nested(200)), COMMENT],
    )
    async with patient_client(server.endpoint) as client:
        (result,) = await client.uaclient.call([call])
    assert result.StatusCode.value == ua.StatusCodes.Uncertain
    assert result.OutputArguments[0].Value == ReturnStatus.INVALID_REQUEST
    assert station.calls == []
