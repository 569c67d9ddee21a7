"""The URL of a server for other hosts."""

import socket

import pytest

from edge.uaserver.reachable_url import reachable_url


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("opc.tcp://0.0.0.0:4840", f"opc.tcp://{socket.gethostname()}:4840"),
        ("opc.tcp://[::]:4840", f"opc.tcp://{socket.gethostname()}:4840"),
        ("opc.tcp://[::1]:4841", "opc.tcp://[::1]:4841"),
        ("opc.tcp://gateway.plant:4840", "opc.tcp://gateway.plant:4840"),
    ],
)
def test_address_for_all_interfaces_has_the_name_of_the_host(endpoint: str, url: str) -> None:
    assert reachable_url(endpoint) == url
