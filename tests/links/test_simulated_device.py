"""Tests of a simulated OPC UA device: disconnection, port in use, missing node sets."""

import asyncio
import socket

import pytest
from asyncua import Client, ua

from edge.foundation.errors import SettingsError, Unavailable
from edge.links.opcua import open_client
from edge.links.simulated_device import open_device

pytestmark = pytest.mark.slow


async def test_unplugged_device_is_unreachable_until_it_is_plugged_in_again() -> None:
    async with open_device("device", ()) as device:
        async with device.unplugged():
            with pytest.raises(Unavailable):
                async with open_client(device.url):
                    pass
        async with open_client(device.url) as session:
            assert (await session.find("Server")).path == "/0:Objects/0:Server"


async def test_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1:{port}"):
            async with open_device("device", (), port):
                pass


async def test_missing_node_set_is_named() -> None:
    with pytest.raises(SettingsError, match="Nowhere"):
        async with open_device("device", ("Nowhere.xml",)):
            pass


@pytest.mark.parametrize(
    ("given", "status"),
    [(0, "BadArgumentsMissing"), (1, "BadArgumentsMissing"), (2, "Good"), (3, "BadTooManyArguments")],
)
async def test_wrong_number_of_arguments_is_refused(given: int, status: str) -> None:
    called: list[int] = []

    async def handle(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        called.append(len(arguments))
        return []

    async with open_device("device", ()) as device, Client(device.url) as client:
        owner = await device.server.nodes.objects.add_object(device.index, "Tool")
        takes = [ua.VariantType.String, ua.VariantType.Boolean]
        method = await owner.add_method(device.index, "Work", handle, takes, [])
        await device.link(owner, {"Work": handle})
        request = ua.CallMethodRequest(owner.nodeid, method.nodeid, [ua.Variant("a")] * given)
        (result,) = await client.uaclient.call([request])
        assert result.StatusCode.name == status
    assert called == ([2] if status == "Good" else [])


async def test_method_is_executed_to_its_end_without_its_caller() -> None:
    """A camera whose start ended half-way had begun a picture without executing it; the gateway started it again."""
    called, released, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(_: ua.NodeId) -> list[ua.Variant]:
        called.set()
        await released.wait()
        ended.set()
        return []

    async with open_device("device", ()) as device:
        owner = await device.server.nodes.objects.add_object(device.index, "Tool")
        method = await owner.add_method(device.index, "Work", work, [], [])
        await device.link(owner, {"Work": work})
        async with asyncio.timeout(10):
            async with Client(device.url) as client:
                request = ua.CallMethodRequest(owner.nodeid, method.nodeid)
                calling = asyncio.create_task(client.uaclient.call([request]))
                await called.wait()
                client.disconnect_socket()
                with pytest.raises(ConnectionError):
                    await calling
            async with device.unplugged():
                released.set()
                await ended.wait()


async def test_method_that_is_not_simulated_is_not_implemented() -> None:
    async def handle(_: ua.NodeId, *_arguments: ua.Variant) -> list[ua.Variant]:
        return []

    async with open_device("device", ()) as device, Client(device.url) as client:
        owner = await device.server.nodes.objects.add_object(device.index, "Tool")
        below = await owner.add_object(device.index, "Part")
        methods = [await value.add_method(device.index, "Work", handle, [], []) for value in (owner, below)]
        await device.link(owner, {"Work": handle})
        await device.link_others(owner)
        requests = [
            ua.CallMethodRequest(value.nodeid, method.nodeid)
            for value, method in zip((owner, below), methods, strict=True)
        ]
        assert [value.StatusCode.name for value in await client.uaclient.call(requests)] == [
            "Good",
            "BadNotImplemented",
        ]
