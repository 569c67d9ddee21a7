"""Host names and addresses are distinguished from other texts."""

import pytest

from edge.config.host_names import is_host
from edge.config.opcua import OpcuaSettings


@pytest.mark.parametrize(
    "host", ["gateway", "gateway-1.plant.example.com", "GATEWAY_1", "192.0.2.1", "2001:db8::1", "::"]
)
def test_host_name_or_address_is_valid(host: str) -> None:
    assert is_host(host)


@pytest.mark.parametrize(
    "text", ["", "gate way", "opc.tcp://gateway", "gateway:4840", "a..b", "x" * 64, "tür", "[::1]"]
)
def test_malformed_host_is_invalid(text: str) -> None:
    assert not is_host(text)


def test_settings_refuse_what_a_certificate_cannot_name() -> None:
    conflicts = list(OpcuaSettings(hosts=("line.example.com", "opc.tcp://line")).conflicts())
    assert conflicts == ["hosts: 'opc.tcp://line' is neither a host name nor an address"]
