"""The OPC UA server is examined by a connection and by its files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from edge.config import GatewaySettings, MqttEquipmentSettings, MqttSettings, OpcuaSettings, Settings
from edge.maintenance import mdns_file
from edge.maintenance.finding import HealthFinding, Level
from edge.maintenance.opcua_check import (
    examine_announcement,
    examine_certificates,
    examine_listener,
    examine_port,
    examine_server,
    examine_trust,
    examine_users,
)
from edge.model.role import Role
from edge.ops.users import User, write_user
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri
from edge.uaserver.trust import add_certificate
from tests.ports import free_port


@asynccontextmanager
async def answering(words: bytes) -> AsyncIterator[str]:
    """Listen and answer every client with these bytes; return the endpoint."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(words)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"opc.tcp://0.0.0.0:{server.sockets[0].getsockname()[1]}"


async def only(findings: AsyncIterator[HealthFinding]) -> HealthFinding:
    (finding,) = [each async for each in findings]
    return finding


@pytest.fixture
def opcua(tmp_path: Path) -> OpcuaSettings:
    return OpcuaSettings(
        pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"), users_file=str(tmp_path / "users")
    )


@pytest.mark.parametrize(
    ("words", "level"),
    [(b"ACKF", Level.OK), (b"ERRF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)],
)
async def test_opcua_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        assert (await only(examine_port(OpcuaSettings(endpoint=endpoint)))).level is level


@pytest.mark.parametrize(
    ("words", "level"), [(b"ACKF", Level.OK), (b"HTTP/1.1 400", Level.FAILING), (b"", Level.FAILING)]
)
async def test_equipment_server_is_recognised_by_its_answer(words: bytes, level: Level) -> None:
    async with answering(words) as endpoint:
        url = f"opc.tcp://localhost:{endpoint.rpartition(':')[2]}"
        finding = await only(examine_server("equipment camera", url, "jobs wait for it"))
    assert (finding.subject, finding.level) == ("equipment camera", level)


async def test_listening_client_is_examined_by_connecting() -> None:
    async with answering(b"") as endpoint:
        url = f"opc.tcp://localhost:{endpoint.rpartition(':')[2]}"
        assert (await only(examine_listener("OPC UA client", url))).level is Level.OK
    finding = await only(examine_listener("OPC UA client", f"opc.tcp://127.0.0.1:{free_port()}"))
    assert (finding.level, "no client listens" in finding.found) == (Level.WARNING, True)


async def test_client_with_an_invalid_host_name_is_reported() -> None:
    finding = await only(examine_listener("OPC UA client", "opc.tcp://a..b"))
    assert (finding.level, "no client listens" in finding.found) == (Level.WARNING, True)


async def test_missing_or_outdated_announcement_is_reported(tmp_path: Path) -> None:
    settings = Settings(opcua=OpcuaSettings(advertise=True))
    services, reported = tmp_path / "services", []
    for act in (
        lambda: None,
        services.mkdir,
        lambda: mdns_file.update_service_file(settings, services),
        lambda: (services / "microdcs-edge.service").write_text("old"),
    ):
        act()
        reported.append((await only(examine_announcement(settings, services))).level)
    assert reported == [Level.WARNING, Level.WARNING, Level.OK, Level.WARNING]


async def test_closed_port_is_reported_as_stopped_gateway() -> None:
    finding = await only(examine_port(OpcuaSettings(endpoint=f"opc.tcp://127.0.0.1:{free_port()}")))
    assert (finding.level, "does not run" in finding.found) == (Level.WARNING, True)


async def test_disabled_server_is_ok() -> None:
    assert (await only(examine_port(OpcuaSettings(endpoint="")))).level is Level.OK


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
    own = certificates.renew(tmp_path / "pki", application_uri("edge"), ["localhost"], left)
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


async def test_address_without_an_interface_is_reported() -> None:
    """The doctor advised to stop another program where an address had not come yet."""
    # TEST-NET-1 (RFC 5737): no machine has it.
    finding = await only(examine_port(OpcuaSettings(endpoint="opc.tcp://192.0.2.1:4840")))
    assert (finding.level, finding.found) == (
        Level.FAILING,
        "no interface of this machine has the address of opc.tcp://192.0.2.1:4840",
    )


async def test_role_of_anonymous_clients_is_reported_without_users(opcua: OpcuaSettings) -> None:
    finding = await only(examine_users(Path(opcua.users_file), "engineer"))
    assert "engineer" in finding.found
