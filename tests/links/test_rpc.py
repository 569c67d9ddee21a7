"""A sidecar calls the gateway, receives its events, and reconnects after an interruption."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from edge.config import RpcSettings
from edge.foundation.errors import Refused, Unavailable
from edge.links.cloudevent_rpc import from_map, to_map
from edge.links.rpc import Client, open_client
from edge.links.rpc_server import RpcLimits, RpcServer, open_server
from edge.model.cloudevent import CloudEvent
from tests.conftest import WaitUntil
from tests.links.rpc_certificates import Authority

CALL = CloudEvent(id="1", source="/stand", type="call.v1", data={"JobOrderID": "J1"})


class Gateway:
    """Answers as its test configures it."""

    def __init__(self) -> None:
        self.published: list[Any] = []
        self.beats = 0
        self.hanging = 0
        self.methods = {
            "publish": self.publish,
            "heartbeat": self.heartbeat,
            "refuse": self.refuse,
            "miss": self.miss,
            "hang": self.hangs,
        }

    async def publish(self, params: Sequence[Any]) -> object:
        event, transportmetadata = params
        self.published.append((from_map(event), transportmetadata))
        return [to_map(CloudEvent(id="a", source="/edge", type="call.v1", data=event["data"]))]

    async def heartbeat(self, _: Sequence[Any]) -> None:
        self.beats += 1

    async def refuse(self, _: Sequence[Any]) -> object:
        raise Refused("recipe", "no steps: none", "Add one.")

    async def miss(self, _: Sequence[Any]) -> object:
        raise Unavailable("the store is gone")

    async def hangs(self, _: Sequence[Any]) -> None:
        self.hanging += 1
        await asyncio.Event().wait()


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def listen(tmp_path: Path) -> RpcSettings:
    """A socket that a server comes back to."""
    return RpcSettings(listen=f"unix://{tmp_path}/rpc.sock")


@asynccontextmanager
async def both(gateway: Gateway, settings: RpcSettings, **files: Any) -> AsyncIterator[tuple[RpcServer, Client]]:
    async with open_server(settings, gateway.methods) as server, open_client(server.url, **files) as client:
        yield server, client


async def test_event_is_answered_on_every_socket_type(gateway: Gateway, listen: RpcSettings, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    own, client_files = (dataclasses.asdict(authority.issue(name)) for name in ("gateway", "stand"))
    sockets: list[tuple[RpcSettings, dict[str, str]]] = [
        (RpcSettings(listen="tcp://127.0.0.1:0"), {}),
        (RpcSettings(listen="tls://127.0.0.1:0", **own), client_files),
        (listen, {}),
    ]
    for settings, files in sockets:
        async with both(gateway, settings, **files) as (_, client):
            answer = await client.publish(CALL, {"topic": "anything"})
            assert (answer.source, answer.data) == ("/edge", CALL.data)
    assert gateway.published == [(CALL, {"topic": "anything"})] * 3


async def test_concurrent_calls_get_their_own_answers(gateway: Gateway, listen: RpcSettings) -> None:
    async with both(gateway, listen) as (_, client), asyncio.TaskGroup() as calls:
        events = [CloudEvent(id=str(n), source="/stand", type="call.v1", data={"n": n}) for n in range(200)]
        answers = [calls.create_task(client.publish(event)) for event in events]
    assert [answer.result().data for answer in answers] == [event.data for event in events]


async def test_error_answer_is_raised_as_refused_or_unavailable(gateway: Gateway, listen: RpcSettings) -> None:
    async with both(gateway, listen) as (_, client):
        with pytest.raises(Refused, match="no steps: none") as refused:
            await client.call("refuse")
        assert refused.value.kind == "recipe"
        with pytest.raises(Unavailable, match="the store is gone"):
            await client.call("miss")
        with pytest.raises(Refused, match="no method"):
            await client.call("none")
        with pytest.raises(Unavailable, match="no answer to 'hang'"):
            await client.call("hang", within=0.05)
        with pytest.raises(Refused, match="the call takes 1048593 bytes"):
            await client.call("publish", "x" * (1 << 20))
        assert (await client.publish(CALL)).data == CALL.data


async def test_events_arrive_in_order_and_a_handler_may_call_and_fail(
    gateway: Gateway, listen: RpcSettings, wait_until: WaitUntil
) -> None:
    reported: list[str] = []

    async def show(event: CloudEvent) -> None:
        reported.append(event.id)
        if event.id == "3":
            raise ZeroDivisionError
        await client.publish(event)

    async with open_server(listen, gateway.methods) as server, open_client(server.url, on_event=show) as client:
        await client.publish(CALL)
        server.notify("cloudevent", {"no": "event"}, "events")
        server.notify("something else", 5)
        for number in range(20):
            server.notify("cloudevent", to_map(CloudEvent(id=str(number), source="/edge", type="e", data={})), "events")
        await wait_until(lambda: len(reported) == 20)
    assert reported == [str(number) for number in range(20)]


async def test_client_reconnects_and_continues_calls(
    gateway: Gateway, listen: RpcSettings, wait_until: WaitUntil
) -> None:
    async with open_client(listen.listen) as client:
        with pytest.raises(Unavailable, match="no answer"):
            await client.call("heartbeat", within=0.1)
        for _ in range(2):
            async with open_server(listen, gateway.methods):
                assert (await client.publish(CALL)).data == CALL.data
                assert client.connected
            await wait_until(lambda: not client.connected)
        waiting = asyncio.create_task(client.publish(CALL))
        async with open_server(listen, gateway.methods):
            assert (await waiting).data == CALL.data


async def test_interrupted_call_raises_unavailable_and_can_be_repeated(
    gateway: Gateway, listen: RpcSettings, wait_until: WaitUntil
) -> None:
    async with open_client(listen.listen) as client:
        async with open_server(listen, gateway.methods):
            await client.publish(CALL)
            calls = [asyncio.create_task(client.call("hang")) for _ in range(20)]
            await wait_until(lambda: gateway.hanging == RpcLimits().calls)
        for call in calls:
            with pytest.raises(Unavailable, match="the connection is lost"):
                await call


async def test_heartbeats_keep_a_silent_client_connected(
    gateway: Gateway, listen: RpcSettings, wait_until: WaitUntil
) -> None:
    async with (
        open_server(listen, gateway.methods, RpcLimits(silent=0.3)) as server,
        open_client(server.url, heartbeat=0.02) as client,
    ):
        await wait_until(lambda: gateway.beats > 25)
        assert client.connected
        assert server.clients == 1


async def test_closed_connection_is_reported_with_its_reason(
    gateway: Gateway, listen: RpcSettings, wait_until: WaitUntil
) -> None:
    with capture_logs() as log:
        async with (
            open_server(listen, gateway.methods, RpcLimits(silent=0.05)) as server,
            open_client(server.url, heartbeat=60) as client,
        ):
            await client.publish(CALL)
            await wait_until(lambda: not client.connected)
            await client.publish(CALL)
    (reason,) = {entry["reason"] for entry in log if entry["event"] == "rpc connection closed by the gateway"}
    assert reason == "silent for 0.05 s"
