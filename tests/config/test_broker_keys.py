"""Conflicts of certificates in sections with a broker of their own."""

import pytest

from edge.config import MqttSettings
from edge.config.broker_keys import BrokerKeys, broker_conflicts
from edge.features.sparkplug.settings import SparkplugSettings


@pytest.mark.parametrize("section", [MqttSettings, SparkplugSettings])
def test_certificate_needs_its_key_and_encryption(section: type[MqttSettings | SparkplugSettings]) -> None:
    broker: BrokerKeys = section(url="mqtt://a", cert_file="c")
    assert list(broker_conflicts(broker)) == [
        "cert_file, key_file: the one needs the other",
        "url: certificates are given, but mqtt: does not use them; expected mqtts:",
    ]
    assert list(broker_conflicts(section(url="mqtts://a", cert_file="c", key_file="k", ca_file="a"))) == []
