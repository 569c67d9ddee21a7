"""Variables of an OPC UA server (asyncua) as tags: names, quality, deadband, loss and return of the server."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from asyncua import Server, ua
from structlog.testing import capture_logs

from edge.features.telemetry.sources.opcua import OpcuaSource, OpcuaSourceSettings
from edge.foundation.task_group import background_task
from edge.ports.sample_lines import Quality, Sample
from tests.conftest import WaitUntil
from tests.equipment.samples import Sink

pytestmark = pytest.mark.slow

GOOD, BAD, UNCERTAIN = Quality.GOOD, Quality.BAD, Quality.UNCERTAIN
URI = "urn:oven"


@dataclass
class Oven:
    """A server with a few variables."""

    server: Server
    index: int

    async def write(self, name: str, value: ua.Variant, status: int = ua.StatusCodes.Good) -> None:
        node = self.server.get_node(ua.NodeId(name, self.index))
        at = datetime(2026, 1, 2, tzinfo=UTC)
        await node.write_value(ua.DataValue(value, ua.StatusCode(status), SourceTimestamp=at))


@contextlib.asynccontextmanager
async def oven(port: int = 0, *, spare: int = 0) -> AsyncIterator[Oven]:
    """Serve an oven; `spare` namespaces come before its own."""
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    for number in range(spare):
        await server.register_namespace(f"urn:spare:{number}")
    index = await server.register_namespace(URI)
    body = await server.nodes.objects.add_object(ua.NodeId("Oven", index), ua.QualifiedName("Oven", index))
    for name, value in (("Temp", 20.0), ("State", "idle"), ("Door", True), ("Count", 7)):
        await body.add_variable(ua.NodeId(name, index), ua.QualifiedName(name, index), value)
    async with server:
        yield Oven(server, index)


def settings_of(url: str, *nodes: str, deadband: float = 0.0) -> OpcuaSourceSettings:
    return OpcuaSourceSettings(
        kind="opcua", url=url, nodes=nodes, security="none", sampling_interval=20, deadband=deadband
    )


NODES = (f"oven.temp = nsu={URI};s=Temp", "oven.state = /Oven/State", f"oven.door=nsu={URI};s=Door")


def url_of(at: Oven) -> str:
    return f"opc.tcp://127.0.0.1:{at.server.bserver.port}"


async def test_changes_are_samples_with_source_time_and_quality(wait_until: WaitUntil) -> None:
    sink = Sink()
    async with (
        oven() as at,
        background_task(OpcuaSource("o", settings_of(url_of(at), *NODES), sink, lambda: 7).run(), "o"),
    ):
        await wait_until(lambda: len(sink.taken) == 3)
        assert (sink.values("oven.state"), sink.values("oven.door")) == ([("idle", GOOD)], [(True, GOOD)])
        await at.write("Temp", ua.Variant(81.5, ua.VariantType.Double), ua.StatusCodes.UncertainLastUsableValue)
        await wait_until(lambda: sink.values("oven.temp")[1:] == [(81.5, UNCERTAIN)])
        await at.write("Temp", ua.Variant(), ua.StatusCodes.BadSensorFailure)
        await wait_until(lambda: sink.values("oven.temp")[2:] == [(None, BAD)])
    last = [sample for sample in sink.taken if isinstance(sample, Sample) and sample.value == 81.5]
    assert [sample.at for sample in last] == [int(datetime(2026, 1, 2, tzinfo=UTC).timestamp() * 1000)]


async def test_change_within_the_deadband_produces_no_sample(wait_until: WaitUntil) -> None:
    sink = Sink()
    async with oven() as at:
        settings = settings_of(url_of(at), f"t = nsu={URI};s=Temp", f"s = nsu={URI};s=State", deadband=1.0)
        async with background_task(OpcuaSource("o", settings, sink, lambda: 7).run(), "o"):
            await wait_until(lambda: len(sink.taken) == 2)
            for value in (20.5, 21.0, 21.6):
                await at.write("Temp", ua.Variant(value, ua.VariantType.Double))
            await at.write("State", ua.Variant("hot", ua.VariantType.String))
            await wait_until(lambda: len(sink.taken) == 4)
    assert sink.values("t") == [(20.0, GOOD), (21.6, GOOD)]
    assert sink.values("s") == [("idle", GOOD), ("hot", GOOD)]


async def test_missing_node_is_logged_by_name_and_found_later(wait_until: WaitUntil) -> None:
    sink = Sink()
    async with oven() as at:
        nodes = (f"t = nsu={URI};s=Temp", f"x = nsu={URI};s=Late", "y = /Oven/Nowhere", "z = nsu=urn:none;i=1")
        source = OpcuaSource("o", settings_of(url_of(at), *nodes), sink, lambda: 7, retry_nodes_s=0.05)
        with capture_logs() as logs:
            async with background_task(source.run(), "o"):
                await wait_until(lambda: sink.values("t") == [(20.0, GOOD)])
                assert (sink.values("x"), sink.values("y"), sink.values("z")) == ([(None, BAD)],) * 3
                await at.server.nodes.objects.add_variable(
                    ua.NodeId("Late", at.index), ua.QualifiedName("Late", at.index), 5
                )
                await wait_until(lambda: sink.values("x") == [(None, BAD), (5, GOOD)])
    refused = [entry["tag"] for entry in logs if entry["event"] == "source node refused"]
    assert sorted(refused) == ["x", "y", "z"]


async def test_missing_node_is_found_later_despite_constant_changes(wait_until: WaitUntil) -> None:
    sink = Sink()
    async with oven() as at:
        nodes = (f"t = nsu={URI};s=Temp", f"x = nsu={URI};s=Late")
        source = OpcuaSource("o", settings_of(url_of(at), *nodes), sink, lambda: 7, retry_nodes_s=0.3)

        async def change() -> None:
            for number in itertools.count():
                await at.write("Temp", ua.Variant(float(number), ua.VariantType.Double))
                await asyncio.sleep(0.02)

        async with background_task(source.run(), "o"), background_task(change(), "changes"):
            await wait_until(lambda: len(sink.values("t")) > 2 and sink.values("x"))
            await at.server.nodes.objects.add_variable(
                ua.NodeId("Late", at.index), ua.QualifiedName("Late", at.index), 5
            )
            await wait_until(lambda: sink.values("x") == [(None, BAD), (5, GOOD)])


async def test_lost_server_produces_bad_quality_and_is_reconnected(wait_until: WaitUntil) -> None:
    """Its namespace has another index then."""
    sink = Sink()
    with capture_logs() as logs:
        async with contextlib.AsyncExitStack() as stack:
            async with oven() as at:
                port = at.server.bserver.port
                source = OpcuaSource("o", settings_of(url_of(at), *NODES), sink, lambda: 7, backoff_s=(0.05, 0.2))
                await stack.enter_async_context(background_task(source.run(), "o"))
                await wait_until(lambda: len(sink.taken) == 3)
            await wait_until(lambda: sink.values("oven.temp") == [(20.0, GOOD), (None, BAD)])
            async with oven(port, spare=3):
                await wait_until(lambda: sink.values("oven.temp")[2:] == [(20.0, GOOD)])
                await wait_until(lambda: sink.values("oven.state")[2:] == [("idle", GOOD)])
    assert [entry["event"] for entry in logs if entry["event"].startswith("source")][:2] == [
        "source connected",
        "source disconnected, retrying",
    ]
