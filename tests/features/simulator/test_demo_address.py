"""Tests of the OPC UA address of the demo, for clients on this and on other machines."""

import socket

import pytest

from edge.features.simulator.demo_address import OpcuaAddress
from edge.foundation.errors import Unavailable


def test_server_on_all_interfaces_has_a_local_and_a_remote_address() -> None:
    address = OpcuaAddress("0.0.0.0", 4840)  # noqa: S104 - the address of a user
    assert (address.endpoint, address.local) == ("opc.tcp://0.0.0.0:4840", "opc.tcp://127.0.0.1:4840")
    host = address.remote.removeprefix("opc.tcp://").removesuffix(":4840")
    assert host not in {"0.0.0.0", ""}  # noqa: S104 - nothing listens


def test_port_in_use_is_reported_before_any_part_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=rf"127\.0\.0\.1:{port}.*in use"):
            OpcuaAddress(port=port).with_free_port()
    assert OpcuaAddress().with_free_port().port
