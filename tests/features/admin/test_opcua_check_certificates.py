"""The trust list and the users of the OPC UA server are examined."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from edge.access.users import User, write_user
from edge.config import OpcuaSettings
from edge.features.admin.opcua_check import examine_trust, examine_users
from edge.model.finding import HealthFinding, Level, PublicHealthFinding, public_form
from edge.model.user import Role
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate


async def only(findings: AsyncIterator[HealthFinding]) -> PublicHealthFinding:
    (finding,) = [public_form(item) async for item in findings]
    return finding


@pytest.fixture
def opcua(tmp_path: Path) -> OpcuaSettings:
    return OpcuaSettings(
        pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"), users_file=str(tmp_path / "users")
    )


async def test_encrypted_server_without_trusted_clients_is_a_warning(opcua: OpcuaSettings) -> None:
    assert (await only(examine_trust(opcua))).level is Level.WARNING
    open_to_all = OpcuaSettings(pki=opcua.pki, trusted=opcua.trusted, security="none")
    assert (await only(examine_trust(open_to_all))).level is Level.OK


async def test_clients_with_expiring_trust_are_reported(opcua: OpcuaSettings, tmp_path: Path) -> None:
    for name, left in (("good", timedelta(days=365)), ("ending", timedelta(days=3))):
        own_certificate = certificates.renew(tmp_path / name, f"urn:{name}", ["localhost"], left)
        add_certificate(own_certificate.certificate, Path(opcua.trusted))
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


async def test_role_of_anonymous_clients_is_reported_without_users(opcua: OpcuaSettings) -> None:
    finding = await only(examine_users(Path(opcua.users_file), "engineer"))
    assert "engineer" in finding.found
