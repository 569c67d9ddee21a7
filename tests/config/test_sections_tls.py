"""The TLS files of the settings, by section and key."""

from pathlib import Path

from edge.config import MqttEquipmentSettings, MqttSettings, Settings


def test_settings_without_tls_have_no_tls_files() -> None:
    assert Settings().tls_files == {}


def test_files_are_named_by_section_and_key() -> None:
    wrench = MqttEquipmentSettings(type_ids=("a.b.v1",), url="mqtts://w", ca_file="/w/ca.pem")
    settings = Settings(
        mqtt=MqttSettings(url="mqtts://h", cert_file="/m.pem", key_file="/m.key"), southbound={"w": wrench}
    )
    assert settings.tls_files == {
        "mqtt.cert_file": Path("/m.pem"),
        "mqtt.key_file": Path("/m.key"),
        "southbound.w.ca_file": Path("/w/ca.pem"),
    }
