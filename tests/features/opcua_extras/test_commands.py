"""The service file of avahi-daemon contains port and capabilities, and foreign files are not removed."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from edge.config import GatewaySettings, OpcuaSettings, Settings
from edge.features.opcua_extras.commands import FileChange, service_file, update_service_file
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import Refused

FILE = "microdcs-edge.service"
ON = Settings(opcua=OpcuaSettings(advertise=True))


def announced(settings: Settings) -> tuple[str | None, str | None, str | None, list[str | None]]:
    """Return the name, the type, the port and the TXT records."""
    group = ET.fromstring(service_file(settings))  # noqa: S314 - ours
    (service,) = group.findall("service")
    records = [element.text for element in service.findall("txt-record")]
    return group.findtext("name"), service.findtext("type"), service.findtext("port"), records


@pytest.mark.parametrize(
    ("telemetry", "capabilities"),
    [
        (TelemetrySettings(mode="off", history_days=3), "DA"),
        (TelemetrySettings(), "DA,AC"),
        (TelemetrySettings(history_days=3), "DA,AC,HD"),
    ],
)
def test_announcement_has_port_path_and_capabilities(telemetry: TelemetrySettings, capabilities: str) -> None:
    opcua = OpcuaSettings(advertise=True, endpoint="opc.tcp://0.0.0.0:4855")
    settings = Settings(
        gateway=GatewaySettings(name="<line> & 1" + "x" * 60), opcua=opcua, sections={"telemetry": telemetry}
    )
    name, kind, port, records = announced(settings)
    assert (kind, port, records) == ("_opcua-tcp._tcp", "4855", ["path=/", f"caps={capabilities}"])
    assert name == "<line> & 1" + "x" * 20 + " on %h"


def test_name_is_truncated_by_bytes_not_by_characters() -> None:
    assert announced(Settings(gateway=GatewaySettings(name="Prüfstand-" * 4)))[0] == "Prüfstand-Prüfstand-Prüfsta on %h"


def test_endpoint_without_port_announces_the_default_port() -> None:
    assert announced(Settings(opcua=OpcuaSettings(endpoint="opc.tcp://gateway.plant")))[2] == "4840"


def test_service_file_is_written_and_removed_by_the_setting(tmp_path: Path) -> None:
    assert update_service_file(Settings(), tmp_path) is FileChange.ABSENT
    assert update_service_file(ON, tmp_path) is FileChange.WRITTEN
    assert update_service_file(ON, tmp_path) is FileChange.UNCHANGED
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o644
    assert update_service_file(Settings(), tmp_path) is FileChange.REMOVED
    assert list(tmp_path.iterdir()) == []


def test_user_written_service_file_is_replaced_but_not_removed(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("<service-group/>")
    assert update_service_file(Settings(), tmp_path) is FileChange.FOREIGN
    assert update_service_file(None, tmp_path) is FileChange.FOREIGN
    assert update_service_file(ON, tmp_path) is FileChange.WRITTEN
    assert update_service_file(None, tmp_path) is FileChange.REMOVED


def test_missing_avahi_is_reported_with_advice(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no directory") as refusal:
        update_service_file(ON, tmp_path / "absent")
    assert refusal.value.advice == "Install avahi-daemon."
    assert update_service_file(None, tmp_path / "absent") is FileChange.ABSENT
