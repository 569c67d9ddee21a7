"""Passwords of sources and mirrors that travel in clear text are found."""

from pathlib import Path

from edge.app.gateway_files import examine_secrets
from edge.config import Settings
from edge.config.sections import FeatureSettings
from edge.features.telemetry.settings import MirrorSettings, MqttSourceSettings, RedisSourceSettings
from edge.features.telemetry.sources.opcua import OpcuaSourceSettings


def test_clear_text_password_of_a_source_is_a_finding(tmp_path: Path) -> None:
    """Only those of the core and of equipment were found."""
    sections: dict[str, FeatureSettings] = {
        "source.a": MqttSourceSettings(topic="t", url="mqtt://u:p@broker.plant"),
        "source.b": RedisSourceSettings(kind="redis", url="redis://u:p@line.plant", keys=("k",)),
        "source.c": OpcuaSourceSettings(
            kind="opcua", url="opc.tcp://oven.plant", nodes=(), security="none", password="p"
        ),
        "mirror.d": MirrorSettings(url="redis://u:p@line.plant", key="k"),
        "mirror.e": MirrorSettings(url="rediss://u:p@line.plant", key="k"),
    }
    found = list(examine_secrets(Settings(sections=sections), tmp_path / "edge.toml"))
    assert [warning.partition(":")[0] for warning in found] == list(sections)[:-1]
    assert all("in clear text" in warning for warning in found)
