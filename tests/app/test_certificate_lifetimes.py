"""Each certificate of a gateway has a finding: how long it is valid, and whether it fits the gateway."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from msgspec.structs import replace

from edge.app.certificate_lifetimes import certificates_of
from edge.config import GatewaySettings, MqttEquipmentSettings, MqttSettings, OpcuaSettings, Settings
from edge.links.host_addresses import host_addresses
from edge.model.finding import Level, public_form
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri


@pytest.fixture
def opcua(tmp_path: Path) -> OpcuaSettings:
    return OpcuaSettings(
        pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"), users_file=str(tmp_path / "users")
    )


def test_certificate_is_absent_before_the_first_start(opcua: OpcuaSettings) -> None:
    (finding,) = map(public_form, certificates_of(Settings(opcua=opcua)))
    assert (finding.level, finding.found) == (Level.WARNING, "none yet")


@pytest.mark.parametrize(
    ("left", "level", "reported"),
    [
        (timedelta(days=365), Level.OK, "is valid until"),
        (timedelta(days=20), Level.WARNING, "expires in"),
        (timedelta(hours=-1), Level.FAILING, "it has expired"),
    ],
)
def test_certificate_finding_depends_on_its_remaining_validity(
    opcua: OpcuaSettings, tmp_path: Path, left: timedelta, level: Level, reported: str
) -> None:
    settings = Settings(gateway=GatewaySettings(name="edge"), opcua=opcua)
    own = certificates.renew(
        tmp_path / "pki", application_uri("edge"), ["localhost", *map(str, host_addresses())], left
    )
    pem = tmp_path / "broker.pem"
    pem.write_bytes(own.certificate.public_bytes(serialization.Encoding.PEM))
    mqtt = MqttSettings(url="mqtts://localhost", ca_file=str(pem))
    wrench = MqttEquipmentSettings(type_ids=("tighten",), url="mqtts://localhost", ca_file=str(pem))
    whole = Settings(opcua=settings.opcua, mqtt=mqtt, southbound={"wrench": wrench})
    findings = list(map(public_form, certificates_of(whole)))
    assert [(finding.subject, finding.level) for finding in findings] == [
        ("OPC UA certificate", level),
        ("certificate mqtt.ca_file", level),
        ("certificate southbound.wrench.ca_file", level),
    ]
    assert reported in findings[0].found


def test_certificate_of_another_host_is_a_warning(opcua: OpcuaSettings, tmp_path: Path) -> None:
    certificates.renew(tmp_path / "pki", "urn:old-host:microdcs-edge:edge", ["localhost"])
    (finding,) = map(public_form, certificates_of(Settings(opcua=opcua)))
    assert (finding.level, "another application" in finding.found) == (Level.WARNING, True)
    assert "edge opcua renew" in finding.advice


def test_address_without_a_name_in_the_certificate_is_a_warning(opcua: OpcuaSettings, tmp_path: Path) -> None:
    certificates.renew(tmp_path / "pki", application_uri("edge"), ["localhost"])
    local = replace(opcua, endpoint="opc.tcp://127.0.0.1:4840", hosts=("line.example.com",))
    (finding,) = map(public_form, certificates_of(Settings(opcua=local)))
    assert (finding.level, finding.found) == (Level.WARNING, "it does not name line.example.com")
    assert "edge opcua renew" in finding.advice


def test_file_without_a_certificate_is_failing(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    mqtt = MqttSettings(url="mqtts://localhost", ca_file=str(tmp_path / "ca.pem"))
    settings = Settings(opcua=OpcuaSettings(endpoint=""), mqtt=mqtt)
    (finding,) = map(public_form, certificates_of(settings))
    assert finding.level is Level.FAILING


def test_directory_of_the_certificate_that_cannot_be_written_is_named(opcua: OpcuaSettings) -> None:
    certificates.load_or_make(Path(opcua.pki), application_uri("edge"), [])
    settings = Settings(gateway=GatewaySettings(name="edge"), opcua=opcua)
    (finding,) = map(public_form, certificates_of(settings, may_write=lambda _: False))
    assert finding.level is Level.WARNING
    assert f"the gateway may not write {opcua.pki}" in finding.found
