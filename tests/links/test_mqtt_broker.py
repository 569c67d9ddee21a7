from pathlib import Path

import pytest

from edge.config import MqttSettings
from edge.foundation.errors import SettingsError
from edge.links.mqtt_broker import broker_of


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mqtt://broker.plant", "broker.plant:1883"),
        ("mqtts://broker.plant", "broker.plant:8883"),
        ("mqtt://10.0.0.7:2883", "10.0.0.7:2883"),
        ("mqtt://[::1]:2883", "::1:2883"),
    ],
)
def test_broker_address_is_read_from_the_url(url: str, address: str) -> None:
    broker = broker_of(MqttSettings(url=url), "edge", 60)
    assert broker.address == address
    assert (broker.tls is not None) == url.startswith("mqtts")


@pytest.mark.parametrize("url", ["http://broker", "broker:1883", "mqtt://", "mqtt://b:port", "mqtt://a..b"])
def test_malformed_broker_url_is_reported(url: str) -> None:
    with pytest.raises(SettingsError, match=r"mqtt\.url"):
        broker_of(MqttSettings(url=url), "edge", 60)


def test_unreadable_certificate_is_reported(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("not a certificate")
    for file in (broken, tmp_path / "none.pem"):
        with pytest.raises(SettingsError, match=file.name):
            broker_of(MqttSettings(url="mqtts://broker", ca_file=str(file)), "edge", 60)
