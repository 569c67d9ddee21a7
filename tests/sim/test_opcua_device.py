"""Tests of a simulated OPC UA device: disconnection, port in use, missing node sets."""

import socket

import pytest

from edge.errors import SettingsError, Unavailable
from edge.links.opcua import open_client
from edge.sim.opcua_device import open_device

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
