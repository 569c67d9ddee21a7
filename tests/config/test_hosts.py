"""Loopback addresses are recognised in every notation."""

import pytest

from edge.config import MqttSettings
from edge.config.hosts import BrokerKeys, broker_conflicts, is_any_address, is_host, is_loopback
from edge.config.opcua import OpcuaSettings


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("gw", False)],  # noqa: S104
)
def test_loopback_address_is_recognised(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [("0.0.0.0", True), ("::", True), ("0:0::0", True), ("192.0.2.1", False), ("gw", False), ("", False)],  # noqa: S104
)
def test_host_that_stands_for_every_address_is_recognised(host: str, *, expected: bool) -> None:
    assert is_any_address(host) is expected


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
    conflicts = list(map(str, OpcuaSettings(hosts=("line.example.com", "opc.tcp://line")).conflicts()))
    assert conflicts == ["hosts: 'opc.tcp://line' is neither a host name nor an address"]


def test_certificate_needs_its_key_and_encryption() -> None:
    broker: BrokerKeys = MqttSettings(url="mqtt://a", cert_file="c")
    assert list(broker_conflicts(broker)) == [
        "cert_file, key_file: the one needs the other",
        "url: certificates are given, but mqtt: does not use them; expected mqtts:",
    ]
    assert list(broker_conflicts(MqttSettings(url="mqtts://a", cert_file="c", key_file="k", ca_file="a"))) == []
