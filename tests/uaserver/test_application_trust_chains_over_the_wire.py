"""Certificates of authorities over the wire: clients send their chain, the gateway sends its own."""

from pathlib import Path

import msgspec
import pytest
from asyncua import ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256

from edge.config import OpcuaSettings
from edge.opcua.application_certificate import chain_bytes, read_chain
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate
from edge.uaserver.certificates import OwnCertificate
from tests.opcua_client import patient_client
from tests.uaserver import pki
from tests.uaserver.clients import Application, make_settings, serves, with_users
from tests.uaserver.running import MACHINES, served
from tests.uaserver.test_security import offered
from tests.uaserver.test_server_node_opcua import other_make

pytestmark = pytest.mark.slow

ROOT = pki.root("plant")
LINE = ROOT.authority("line", 2)
SCADA = LINE.issue("scada", uri="urn:scada", days=100, hosts=("localhost",))


@pytest.fixture
def application(tmp_path: Path) -> Application:
    """An application with a certificate of the intermediate authority; its files hold the chain."""
    directory = tmp_path / "scada"
    directory.mkdir()
    pki.write_pem(directory / "certificate.pem", SCADA, LINE.certificate, ROOT.certificate)
    pki.write_key(directory / "key.pem")
    return Application("urn:scada", directory)


@pytest.fixture
def settings(tmp_path: Path) -> OpcuaSettings:
    """Settings that trust the root only."""
    opcua_settings = with_users(make_settings(tmp_path))
    opcua_settings = msgspec.structs.replace(opcua_settings, pki=str(tmp_path / "pki"))
    add_certificate(ROOT.certificate, Path(opcua_settings.trusted))
    return opcua_settings


async def enter(endpoint: str, application: Application, settings: OpcuaSettings, *chain: object) -> bool:
    """Connect with a chain; return whether the server answers."""
    client = patient_client(endpoint)
    client.application_uri = application.uri
    (application.directory / "own.der").write_bytes(SCADA.public_bytes(pki.DER))
    files = application.directory / "own.der", application.directory / "key.pem"
    own = Path(settings.pki, "own.der").read_bytes()  # noqa: ASYNC240 - as above
    await client.set_security(
        SecurityPolicyBasic256Sha256, *files, server_certificate=own, mode=ua.MessageSecurityMode.SignAndEncrypt
    )
    client.security_policy.host_certificate_chain = [value.public_bytes(pki.DER) for value in chain]  # type: ignore[attr-defined]
    async with client:
        return await serves(client)


async def test_a_client_with_its_chain_is_trusted_by_the_root(
    settings: OpcuaSettings, application: Application
) -> None:
    async with served(settings, MACHINES[:1]) as server:
        assert await enter(server.endpoint, application, settings, LINE.certificate)
        assert await enter(server.endpoint, application, settings, LINE.certificate, ROOT.certificate)
        with pytest.raises((ua.UaError, ConnectionError)):
            await enter(server.endpoint, application, settings)
        add_certificate(LINE.certificate, Path(settings.trusted, "issuers"))
        assert await enter(server.endpoint, application, settings)
        revoked = ROOT.revoke(LINE.certificate).public_bytes(pki.DER)
        Path(settings.trusted, "plant.crl").write_bytes(revoked)  # noqa: ASYNC240 - a fast call
        with pytest.raises((ua.UaError, ConnectionError)):
            await enter(server.endpoint, application, settings)


async def test_a_damaged_chain_ends_the_connection(settings: OpcuaSettings, application: Application) -> None:
    garbage = ROOT.revoke()
    async with served(settings, MACHINES[:1]) as server:
        for chain in ([garbage], [ROOT.certificate] * 5):
            with pytest.raises((ua.UaError, ConnectionError)):
                await enter(server.endpoint, application, settings, *chain)
        assert await enter(server.endpoint, application, settings, LINE.certificate)


async def test_the_gateway_sends_the_chain_of_its_certificate(
    settings: OpcuaSettings, application: Application, tmp_path: Path
) -> None:
    uri = "urn:gateway"
    own = OwnCertificate(
        LINE.issue("gateway", own=pki.key(7), uri=uri, hosts=("localhost",), days=100),
        pki.key(7),
        (LINE.certificate, ROOT.certificate),
    )
    certificates.store(Path(settings.pki), own)
    lists = []
    for number, authority in enumerate((ROOT, LINE)):
        lists.append(tmp_path / f"{number}.crl")
        lists[-1].write_bytes(authority.revoke().public_bytes(pki.DER))
    pki.write_pem(tmp_path / "authorities.pem", ROOT.certificate, LINE.certificate)
    async with served(settings, MACHINES[:1]) as server:
        for endpoint in await offered(server):
            assert read_chain(endpoint.ServerCertificate) == own.chain
            assert endpoint.ServerCertificate == chain_bytes(own.chain)
        assert await enter(server.endpoint, application, settings, LINE.certificate)
        # node-opcua trusts both authorities, and accepts no unknown certificate.
        trusting = {"authority": str(tmp_path / "authorities.pem"), "revocations": [str(path) for path in lists]}
        async with other_make(server.endpoint, application, **trusting) as client:
            assert await client.ask("browse", part="JobOrderControl")
