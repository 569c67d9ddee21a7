"""Users log in with certificates: the signature, the trust, the revocation, the name, the wait after failures."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import structlog
from asyncua import ua
from asyncua.crypto import security_policies as policies
from cryptography import x509

from edge.access.login import FREE_LOGINS, Users
from edge.config import OpcuaSettings
from edge.model.user import Role
from edge.opcua.access import Caller, Peer
from edge.opcua.application_certificate import certificate_files, chain_bytes
from edge.uaserver.application_trust import add_certificate
from edge.uaserver.security import AccessControl
from edge.uaserver.server import UaServer
from tests.uaserver import pki
from tests.uaserver.clients import Application, make_settings, prepared, serves, signature_of, with_users
from tests.uaserver.running import MACHINES, Space, served
from tests.uaserver.test_security import OFFERED, may_call, offered
from tests.uaserver.test_server_node_opcua import other_make

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

ROOT = pki.root("plant")
LINE = ROOT.authority("line", 2)
REJECTED = "BadIdentityTokenRejected"


@dataclass(frozen=True, slots=True)
class Door:
    """A server whose users log in with certificates, and an application that it trusts."""

    server: UaServer
    settings: OpcuaSettings
    friend: Application

    @property
    def own(self) -> bytes:
        return Path(self.settings.pki, "own.der").read_bytes()

    @property
    def trusted(self) -> Path:
        return Path(self.settings.trusted_users)


@pytest.fixture
def settings(tmp_path: Path, friend: Application) -> OpcuaSettings:
    """Settings with one user per role and a trusted authority of users."""
    opcua_settings = with_users(make_settings(tmp_path, trusted_users=str(tmp_path / "trusted-users")))
    opcua_settings = msgspec.structs.replace(opcua_settings, pki=str(tmp_path / "pki"))
    friend.trusted_by(opcua_settings)
    add_certificate(ROOT.certificate, Path(opcua_settings.trusted_users))
    return opcua_settings


@pytest_asyncio.fixture(loop_scope="module")
async def door(settings: OpcuaSettings, friend: Application) -> AsyncIterator[Door]:
    async with served(settings, MACHINES[:1]) as server:
        yield Door(server, settings, friend)


async def attempt(door: Door, *chain: x509.Certificate, **others: Any) -> str:
    """Log in with a certificate; return the role by what it may call, or the status of the refusal."""
    try:
        return await _log_in(door, chain, **others)
    except ua.UaStatusCodeError as error:
        return str(ua.StatusCode(error.code).name)


async def _log_in(
    door: Door,
    chain: tuple[x509.Certificate, ...],
    *,
    key: int = 0,
    algorithm: str = "",
    nonce: bytes = b"",
    raw: bytes = b"",
    policy: type[policies.SecurityPolicy] = OFFERED[0],
) -> str:
    own = door.own
    client = await prepared(door.server.endpoint, door.friend, policy, server=own)
    await client.connect_socket()
    try:
        await client.send_hello()
        await client.open_secure_channel()
        await client.create_session()
        parameters = ua.ActivateSessionParameters(ClientSignature=signature_of(client))
        token = ua.X509IdentityToken(PolicyId="certificate", CertificateData=raw or chain_bytes(chain))
        parameters.UserIdentityToken = token
        data = own + (nonce or client._server_nonce)  # noqa: SLF001 - asyncua does not show it
        signed = policies.sign_asymmetric(pki.key(key), data, policy.URI)
        parameters.UserTokenSignature = ua.SignatureData(algorithm or signed[1], signed[0])
        await client.uaclient.activate_session(parameters)
        assert await serves(client)
        space = Space(client, await client.get_namespace_array())
        if await may_call(client, space, "Store"):
            return "engineer"
        return "operator" if await may_call(client, space, "Start") else "observer"
    finally:
        client.disconnect_socket()


@pytest.fixture
def refusals() -> Iterator[list[Any]]:
    """The records of refused logins."""
    with structlog.testing.capture_logs() as logs:
        yield logs


async def test_endpoints_offer_certificates_only_where_configured(door: Door, secure: UaServer) -> None:
    for endpoint in await offered(door.server):
        tokens = {token.TokenType: token for token in endpoint.UserIdentityTokens}
        assert tokens[ua.UserTokenType.Certificate].SecurityPolicyUri == endpoint.SecurityPolicyUri
    kinds = {token.TokenType for endpoint in await offered(secure) for token in endpoint.UserIdentityTokens}
    assert ua.UserTokenType.Certificate not in kinds


async def test_certificate_token_is_invalid_without_configuration(
    secure_settings: OpcuaSettings, secure: UaServer, friend: Application
) -> None:
    closed = Door(secure, secure_settings, friend)
    assert await attempt(closed, ROOT.issue("operator")) == "BadIdentityTokenInvalid"


@pytest.mark.parametrize("policy", OFFERED)
async def test_certificate_logs_in_the_user_in_its_name(door: Door, policy: type[policies.SecurityPolicy]) -> None:
    assert await attempt(door, ROOT.issue("operator"), policy=policy) == "operator"
    assert await attempt(door, ROOT.issue("engineer"), policy=policy) == "engineer"
    assert await attempt(door, LINE.issue("operator"), LINE.certificate, policy=policy) == "operator"


async def test_user_signature_uses_the_algorithm_of_the_policy(door: Door, refusals: list[Any]) -> None:
    user = ROOT.issue("operator")
    wrong = "BadUserSignatureInvalid"
    for other in ("http://www.w3.org/2000/09/xmldsig#rsa-sha1", OFFERED[2].AsymmetricSignatureURI, "nonsense"):
        assert await attempt(door, user, algorithm=other) == wrong
    assert "the signature of the user is wrong" in [refusal.get("reason") for refusal in refusals]


async def test_user_signature_of_another_key_or_nonce_is_refused(door: Door) -> None:
    user = ROOT.issue("operator")
    assert await attempt(door, user, key=5) == "BadUserSignatureInvalid"
    assert await attempt(door, user, nonce=b"n" * 32) == "BadUserSignatureInvalid"
    assert list(certificate_files(Path(door.settings.pki, "rejected-users"))) == []


@pytest.mark.parametrize("data", [b"", b"\x30", b"garbage", b"\x30\x84\xff\xff\xff\xff" + b"x" * 99])
async def test_a_damaged_certificate_of_a_user_is_invalid(door: Door, data: bytes) -> None:
    assert await attempt(door, raw=data) == "BadIdentityTokenInvalid"


async def test_a_chain_that_is_too_long_is_invalid(door: Door) -> None:
    assert await attempt(door, *[ROOT.issue("operator")] * 6) == "BadIdentityTokenInvalid"


async def test_trusted_application_certificate_is_not_trusted_for_users(door: Door) -> None:
    application = pki.self_signed("operator", uri="urn:operator")
    add_certificate(application, Path(door.settings.trusted))
    assert await attempt(door, application) == REJECTED
    add_certificate(application, door.trusted)
    assert await attempt(door, application) == "operator"


async def test_rejected_user_certificate_is_stored_and_can_be_trusted(door: Door) -> None:
    user = pki.self_signed("engineer")
    assert await attempt(door, user) == REJECTED
    files = list(certificate_files(Path(door.settings.pki, "rejected-users")))
    assert [certificate_file.certificate for certificate_file in files] == [user]
    add_certificate(files[0].certificate, door.trusted)
    assert await attempt(door, user) == "engineer"


async def test_an_expired_or_revoked_user_is_refused(door: Door) -> None:
    assert await attempt(door, ROOT.issue("operator", days=-1)) == REJECTED
    lost = ROOT.issue("engineer")
    assert await attempt(door, lost) == "engineer"
    (door.trusted / "plant.crl").write_bytes(ROOT.revoke(lost).public_bytes(pki.DER))
    assert await attempt(door, lost) == REJECTED


async def test_a_trusted_certificate_without_user_is_refused(door: Door, refusals: list[Any]) -> None:
    assert await attempt(door, ROOT.issue("nobody-we-know")) == REJECTED
    assert await attempt(door, ROOT.issue("bad\nname")) == REJECTED
    assert [refusal["reason"] for refusal in refusals if refusal.get("user") == "nobody-we-know"] == [
        "the certificate names no user of the gateway"
    ]


async def test_valid_certificate_is_throttled_after_failed_logins(settings: OpcuaSettings) -> None:
    now = 0.0
    access = AccessControl(settings, Users(Path(settings.users_file), lambda: now))
    peer, right = Peer("192.0.2.7", is_encrypted=True), ROOT.issue("observer")
    for _ in range(FREE_LOGINS):
        assert await access.certified_user([pki.self_signed("observer")], peer, is_proved=True) is None
    assert await access.certified_user([right], peer, is_proved=True) is None
    assert await access.certified_user([ROOT.issue("engineer")], peer, is_proved=True) is not None
    now = 2.0
    assert await access.certified_user([right], peer, is_proved=True) == Caller(
        "observer", Role.OBSERVER, "", peer.address
    )


async def test_node_opcua_logs_in_with_a_certificate(door: Door, tmp_path: Path) -> None:
    user = pki.write_pem(tmp_path / "user.pem", ROOT.issue("engineer"))
    stranger = pki.write_pem(tmp_path / "stranger.pem", pki.self_signed("engineer"))
    key = pki.write_key(tmp_path / "user-key.pem")
    async with other_make(door.server.endpoint, door.friend) as client:
        for number, policy in enumerate(("Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"), start=1):
            entered = await client.ask("enter", policy=policy, userCertificate=str(user), userKey=str(key))
            assert entered == number
        with pytest.raises(AssertionError, match=REJECTED):
            await client.ask("enter", userCertificate=str(stranger), userKey=str(key))
