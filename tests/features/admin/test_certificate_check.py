"""The certificates of the gateway are examined, and the trust list and the users of its OPC UA server."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from msgspec.structs import replace

from edge.access.users import User, write_user
from edge.config import GatewaySettings, MqttEquipmentSettings, MqttSettings, OpcuaSettings, Settings, WebSettings
from edge.features.admin.certificate_check import examine_certificates, examine_trust, examine_users
from edge.links.host_addresses import host_addresses
from edge.model.finding import HealthFinding, Level
from edge.model.role import Role
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate
from edge.uaserver.namespaces import application_uri


async def only(findings: AsyncIterator[HealthFinding]) -> HealthFinding:
    (finding,) = [each async for each in findings]
    return finding


@pytest.fixture
def opcua(tmp_path: Path) -> OpcuaSettings:
    return OpcuaSettings(
        pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"), users_file=str(tmp_path / "users")
    )


async def test_certificate_is_absent_before_the_first_start(opcua: OpcuaSettings) -> None:
    finding = await only(examine_certificates(Settings(opcua=opcua)))
    assert (finding.level, finding.found) == (Level.WARNING, "none yet")


@pytest.mark.parametrize(
    ("left", "level", "reported"),
    [
        (timedelta(days=365), Level.OK, "is valid until"),
        (timedelta(days=20), Level.WARNING, "expires in"),
        (timedelta(hours=-1), Level.FAILING, "it has expired"),
    ],
)
async def test_certificate_finding_depends_on_its_remaining_validity(
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
    found = [each async for each in examine_certificates(whole)]
    assert [(each.subject, each.level) for each in found] == [
        ("OPC UA certificate", level),
        ("certificate mqtt.ca_file", level),
        ("certificate southbound.wrench.ca_file", level),
    ]
    assert reported in found[0].found


async def test_certificate_of_another_host_is_a_warning(opcua: OpcuaSettings, tmp_path: Path) -> None:
    certificates.renew(tmp_path / "pki", "urn:old-host:microdcs-edge:edge", ["localhost"])
    finding = await only(examine_certificates(Settings(opcua=opcua)))
    assert (finding.level, "another application" in finding.found) == (Level.WARNING, True)
    assert "edge opcua renew" in finding.advice


async def test_address_without_a_name_in_the_certificate_is_a_warning(opcua: OpcuaSettings, tmp_path: Path) -> None:
    certificates.renew(tmp_path / "pki", application_uri("edge"), ["localhost"])
    local = replace(opcua, endpoint="opc.tcp://127.0.0.1:4840", hosts=("line.example.com",))
    finding = await only(examine_certificates(Settings(opcua=local)))
    assert (finding.level, finding.found) == (Level.WARNING, "it does not name line.example.com")
    assert "edge opcua renew" in finding.advice


async def test_certificate_of_the_page_alone_is_examined(opcua: OpcuaSettings, tmp_path: Path) -> None:
    certificates.renew(tmp_path / "pki", application_uri("edge"), ["localhost"])
    web = WebSettings(listen="tls://192.0.2.9:8443")
    finding = await only(examine_certificates(Settings(opcua=replace(opcua, endpoint=""), web=web)))
    assert finding.found == "it does not name 192.0.2.9"


async def test_file_without_a_certificate_is_failing(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    mqtt = MqttSettings(url="mqtts://localhost", ca_file=str(tmp_path / "ca.pem"))
    settings = Settings(opcua=OpcuaSettings(endpoint=""), mqtt=mqtt)
    assert (await only(examine_certificates(settings))).level is Level.FAILING


async def test_encrypted_server_without_trusted_clients_is_a_warning(opcua: OpcuaSettings) -> None:
    assert (await only(examine_trust(opcua))).level is Level.WARNING
    open_to_all = OpcuaSettings(pki=opcua.pki, trusted=opcua.trusted, security="none")
    assert (await only(examine_trust(open_to_all))).level is Level.OK


async def test_clients_with_expiring_trust_are_reported(opcua: OpcuaSettings, tmp_path: Path) -> None:
    for name, left in (("good", timedelta(days=365)), ("ending", timedelta(days=3))):
        made = certificates.renew(tmp_path / name, f"urn:{name}", ["localhost"], left)
        add_certificate(made.certificate, Path(opcua.trusted))
    finding = await only(examine_trust(opcua))
    assert finding.level is Level.WARNING
    assert finding.found.startswith("2 trusted")
    assert "urn:ending" in finding.found
    assert "urn:good" not in finding.found


async def test_directory_of_the_certificate_that_cannot_be_written_is_named(opcua: OpcuaSettings) -> None:
    certificates.load_or_make(Path(opcua.pki), application_uri("edge"), [])
    settings = Settings(gateway=GatewaySettings(name="edge"), opcua=opcua)
    finding = await only(examine_certificates(settings, may_write=lambda _: False))
    assert finding.level is Level.WARNING
    assert f"the gateway may not write {opcua.pki}" in finding.found


async def test_users_are_listed_with_their_roles_and_without_hashes(opcua: OpcuaSettings, tmp_path: Path) -> None:
    file = tmp_path / "users"
    assert (await only(examine_users(file, "observer"))).found.startswith("none")
    write_user(file, User("erika", Role.ENGINEER, "$argon2id$canary"))
    assert (await only(examine_users(file, opcua.anonymous))).found == "erika (engineer)"
    file.chmod(0o644)
    assert "readable by every user" in (await only(examine_users(file, opcua.anonymous))).found
    file.chmod(0o600)
    file.write_bytes(file.read_bytes() + b"nonsense\nAndr\xe9:engineer:x\n# a remark\n")
    assert "2 lines" in (await only(examine_users(file, opcua.anonymous))).found


async def test_role_of_anonymous_clients_is_reported_without_users(opcua: OpcuaSettings) -> None:
    finding = await only(examine_users(Path(opcua.users_file), "engineer"))
    assert "engineer" in finding.found
