"""The client session, tested with the gateway's own server and without a server."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from asyncua import Client

from edge.foundation.errors import Refused, Unavailable
from edge.links.connection_fault import ConnectionFailed
from edge.links.opcua import ClientSession, EventField, Node, TypeName, open_client
from edge.model.equipment_traffic import EquipmentRequest
from edge.model.job_state import JobState
from edge.opcua.client_transport import ClientLimits
from edge.uaserver.server import UaServer
from tests.uaserver.running import entry, response, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

JOBS = ("Machines", "station-1", "MachineryBuildingBlocks", "JobManagement")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(server: UaServer) -> AsyncIterator[ClientSession]:
    async with open_client(server.endpoint) as opened:
        yield opened


async def test_node_found_by_names_has_its_full_path(session: ClientSession) -> None:
    node = await session.find(*JOBS)
    assert node.path == "/0:Objects/4:Machines/8:station-1/4:MachineryBuildingBlocks/6:JobManagement"


async def test_unknown_name_is_reported_with_its_path(session: ClientSession) -> None:
    with pytest.raises(Refused, match="/0:Objects/4:Machines/station-9 is not there"):
        await session.find("Machines", "station-9", "Identification")


async def test_lists_of_jobs_are_read_as_plain_python_values(server: UaServer, session: ClientSession) -> None:
    server.show("station-1", entry("job-1", JobState.RUNNING), response("job-1"))
    orders = await session.read(await session.find(*JOBS, "JobOrderControl", "JobOrderList"))
    assert orders == [
        {
            "JobOrder": {"JobOrderID": "job-1", "WorkMasterID": [{"ID": "rear-axle"}], "Priority": 3},
            "State": [{"BrowsePath": {"Elements": []}, "StateText": "Running", "StateNumber": 3}],
        }
    ]
    (answer,) = await session.read(await session.find(*JOBS, "JobOrderResults", "JobOrderResponseList"))
    assert answer["StartTime"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert answer["JobResponseData"] == [{"ID": "torque", "Value": 42.5}]
    assert [state["StateText"] for state in answer["JobState"]] == ["Ended", "Completed"]
    assert answer["JobState"][1]["BrowsePath"]["Elements"][0]["TargetName"] == "EndedSubstates"


async def test_a_node_without_a_value_cannot_be_read(session: ClientSession) -> None:
    node = await session.find("Machines")
    with pytest.raises(Unavailable, match="does not serve us"):
        await session.read(node)


async def test_missing_server_is_reported() -> None:
    with pytest.raises(Unavailable, match=r"opc.tcp://127.0.0.1:1 does not serve us"):
        async with open_client("opc.tcp://127.0.0.1:1"):
            pass


async def test_silent_server_does_not_delay_the_end_of_a_session(server: UaServer) -> None:
    address = urlsplit(server.endpoint)
    silent = asyncio.Event()

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not silent.is_set():
                writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.gather(hand_on(reader, back), hand_on(there, writer))

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as between:
        port = between.sockets[0].getsockname()[1]
        async with (
            asyncio.timeout(60),
            open_client(f"opc.tcp://127.0.0.1:{port}", request_timeout=30) as session,
            session.watch(None, (), {}),
        ):
            silent.set()


@pytest.mark.parametrize(("greeting", "fault"), [(b"", "silent"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol")])
async def test_peer_without_an_opcua_greeting_is_named_within_seconds(greeting: bytes, fault: str) -> None:
    """A method of a device may take half a minute; the first message may not."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as there:
        url, limits = f"opc.tcp://127.0.0.1:{there.sockets[0].getsockname()[1]}", ClientLimits(opening_seconds=0.5)
        with pytest.raises(ConnectionFailed) as raised:
            async with asyncio.timeout(10), open_client(url, request_timeout=30.0, limits=limits):
                pytest.fail("it is a server")
        assert raised.value.fault == fault


async def test_server_without_an_answer_raises_unavailable() -> None:
    async def send_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(send_nothing, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="does not serve us"):
            async with open_client(f"opc.tcp://127.0.0.1:{port}", request_timeout=0.1):
                pass


@pytest.mark.parametrize("reported", [None, 7, {}, "", "Machine", "i=seven", "i=-1", "ns=70000;i=1", "x" * 1_000_000])
async def test_malformed_type_node_id_is_refused(session: ClientSession, reported: Any) -> None:
    with pytest.raises(Refused, match="what should be the NodeId of a type is ") as caught:
        await session.is_a(reported, TypeName("http://opcfoundation.org/UA/", 2041))
    assert caught.value.kind == "unreadable"
    assert len(caught.value.message) < 500


class CancelledWithResultError(asyncio.CancelledError):
    """What wait_for2, which asyncua uses before Python 3.12, raises in that moment."""


class Racing:
    """A client whose answer comes in the moment in which who waits for it is cancelled."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def get_namespace_array(self) -> list[str]:
        self.asked.set()
        try:
            return await asyncio.Future[list[str]]()
        except asyncio.CancelledError as error:
            raise CancelledWithResultError from error


async def test_cancellation_during_an_answer_is_not_an_error() -> None:
    client = Racing()
    session = ClientSession(cast(Client, client), "opc.tcp://here", lambda _asked: None)

    async def ask() -> None:
        async with asyncio.TaskGroup():
            await session.is_a("i=1", TypeName("urn:a", 1))

    asking = asyncio.create_task(ask(), name="ask")
    await client.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_listener_receives_each_request_with_its_answer(server: UaServer) -> None:
    reported: list[EquipmentRequest] = []
    async with open_client(server.endpoint, on_request=reported.append) as session:
        clock = await session.find("Server", "ServerStatus", "CurrentTime")
        read: Any = await session.read(clock)
        with pytest.raises(Refused):
            await session.call(Node("i=2253", "/0:Objects/0:Server"), "Explode", 7)
        async with session.watch(None, (), {"clock": clock}):
            pass
        unknown = EventField(TypeName("urn:nowhere", 1), "Torque")
        with pytest.raises(Refused):
            async with session.watch(clock, (unknown,), {}):
                pytest.fail("it watches what there is not")
    assert reported == [
        EquipmentRequest("find", ("Server", "ServerStatus", "CurrentTime"), clock),
        EquipmentRequest("read", (clock,), read),
        EquipmentRequest(
            "call",
            (Node("i=2253", "/0:Objects/0:Server"), "Explode", 7),
            error="/0:Objects/0:Server has no method Explode",
            kind="unknown_node",
        ),
        EquipmentRequest("watch", (None, (), {"clock": clock})),
        EquipmentRequest(
            "watch",
            (clock, (unknown,), {}),
            error=f"{server.endpoint} does not know the namespace urn:nowhere",
            kind="unknown_node",
        ),
    ]
