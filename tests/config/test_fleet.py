"""`[fleet]`: signed commands over MQTT need a broker."""

from edge.config import FleetSettings


def test_commands_over_mqtt_need_a_broker() -> None:
    assert list(FleetSettings(listen="mqtt").conflicts("")) == [
        "listen: mqtt needs a broker; set mqtt.url, or choose store"
    ]
    assert list(FleetSettings(listen="mqtt").conflicts("mqtt://127.0.0.1:1883")) == []
    assert list(FleetSettings().conflicts("")) == []
