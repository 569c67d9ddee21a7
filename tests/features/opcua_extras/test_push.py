"""A client on another stack (node-opcua) renews the certificate of a running gateway and changes its trust list."""

import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from asyncua import ua
from cryptography import x509

from edge.config import OpcuaSettings
from edge.features.opcua_extras.push import add_push
from edge.features.opcua_extras.trust_list_file import MAX_TRUST_LIST_SIZE
from edge.opcua.application_certificate import read_chain
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate
from edge.uaserver.parts import NewServer
from edge.uaserver.server import UaServer
from tests.conftest import WaitUntil
from tests.uaserver import pki
from tests.uaserver.clients import Application, make_settings, with_users
from tests.uaserver.running import MACHINES, served
from tests.uaserver.test_security import offered
from tests.uaserver.test_server_node_opcua import OtherMake, other_make

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CONFIGURATION = "i=12637"
TRUST_LIST = "i=12642"
USER_TRUST_LIST = "i=14123"
GROUP, KIND = ["NodeId", "i=14156"], ["NodeId", "i=12560"]
METHODS = {
    "UpdateCertificate": "i=13737",
    "CreateSigningRequest": "i=12737",
    "ApplyChanges": "i=12740",
    "CancelChanges": "i=25708",
    "GetRejectedList": "i=12777",
    "GetCertificates": "i=32333",
}
OF_LIST = {
    "Open": "i=12647",
    "Close": "i=12650",
    "Read": "i=12652",
    "Write": "i=12655",
    "GetPosition": "i=12657",
    "SetPosition": "i=12660",
    "OpenWithMasks": "i=12663",
    "CloseAndUpdate": "i=12666",
    "AddCertificate": "i=12668",
    "RemoveCertificate": "i=12670",
}
OF_LIST_TYPE = {"RemoveCertificate": f"i={ua.ObjectIds.TrustListType_RemoveCertificate}"}
ROOT = pki.root("plant")
LINE = ROOT.authority("line", 2)


def text(*found: Any) -> list[str]:
    return [base64.b64encode(value.public_bytes(pki.DER)).decode() for value in found]


@dataclass(frozen=True, slots=True)
class Pusher:
    """The client from another vendor, and the gateway that it manages."""

    server: UaServer
    settings: OpcuaSettings
    client: OtherMake
    at: int = 0

    async def call(self, name: str, *inputs: Any) -> Any:
        """Call a method of ServerConfiguration; return its output or the status of its refusal."""
        return await self._call(CONFIGURATION, METHODS[name], inputs)

    async def list(self, name: str, *inputs: Any) -> Any:
        """Call a method of the trust list of applications."""
        return await self._call(TRUST_LIST, OF_LIST[name], inputs)

    async def of_users(self, name: str, *inputs: Any) -> Any:
        """Call a method of the trust list of users, by the id that its type has."""
        return await self._call(USER_TRUST_LIST, OF_LIST_TYPE[name], inputs)

    async def _call(self, target: str, method: str, inputs: Any) -> Any:
        found = await self.client.ask("method", at=self.at, object=target, method=method, inputs=inputs)
        if found["status"] != "Good":
            return found["status"]
        return found["outputs"][0] if len(found["outputs"]) == 1 else found["outputs"]

    async def read(self) -> Any:
        """Return the trust list, decoded by the other stack."""
        handle = await self.list("Open", ["Byte", 1])
        data = b""
        while part := base64.b64decode(await self.list("Read", ["UInt32", handle], ["Int32", 700])):
            data += part
        assert await self.list("Close", ["UInt32", handle]) == []
        return await self.client.ask("decodeTrustList", data=base64.b64encode(data).decode())

    async def write(self, **lists: Any) -> Any:
        """Write a trust list that the other stack has encoded; return the answer of CloseAndUpdate."""
        data = base64.b64decode(await self.client.ask("encodeTrustList", **lists))
        handle = await self.list("Open", ["Byte", 6])
        for first in range(0, len(data), 1000):
            part = base64.b64encode(data[first : first + 1000]).decode()
            assert await self.list("Write", ["UInt32", handle], ["ByteString", part]) == []
        return await self.list("CloseAndUpdate", ["UInt32", handle])

    async def request(self, *, regenerate: bool = False, subject: str = "") -> x509.CertificateSigningRequest:
        """Ask for a signing request."""
        nonce = base64.b64encode(b"n" * 32).decode() if regenerate else None
        inputs = GROUP, KIND, ["String", subject], ["Boolean", regenerate], ["ByteString", nonce]
        data = await self.call("CreateSigningRequest", *inputs)
        return x509.load_der_x509_csr(base64.b64decode(data))

    async def update(self, certificate: str, *issuers: str, key_format: str = "", key: str | None = None) -> Any:
        """Send a certificate."""
        above = ["ByteString", list(issuers)]
        of_key = ["String", key_format], ["ByteString", key]
        return await self.call("UpdateCertificate", GROUP, KIND, ["ByteString", certificate], above, *of_key)


def issued(request: x509.CertificateSigningRequest, authority: pki.Authority = LINE) -> str:
    """Return the certificate that an authority issues for a request."""
    return text(authority.sign(request))[0]


async def push(new: NewServer) -> None:
    """Add the management of certificates to a server."""
    add_push(new)


@contextlib.asynccontextmanager
async def managed(directory: Path, friend: Application) -> AsyncIterator[Pusher]:
    """Run a gateway, and a client with the user engineer, who is a security administrator."""
    settings = with_users(make_settings(directory, trusted_users=str(directory / "users-trusted")))
    settings = msgspec.structs.replace(
        settings, pki=str(directory / "pki"), security_admins=("engineer", "operator", "removed")
    )
    friend.trusted_by(settings)
    async with served(settings, MACHINES[:1], parts=[push]) as server, other_make(server.endpoint, friend) as client:
        yield Pusher(server, settings, client)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pusher(tmp_path_factory: pytest.TempPathFactory, friend: Application) -> AsyncIterator[Pusher]:
    """A client that manages a gateway; each test leaves the certificate and the trusted applications as they were."""
    async with managed(tmp_path_factory.mktemp("managed"), friend) as found:
        yield found


async def test_a_new_certificate_is_served_without_restart(
    tmp_path: Path, friend: Application, wait_until: WaitUntil
) -> None:
    async with managed(tmp_path, friend) as pusher:
        before = Path(pusher.settings.pki, "own.der").read_bytes()  # noqa: ASYNC240 - a fast call
        request = await pusher.request(regenerate=True, subject="CN=gateway/O=plant")
        assert request.subject.rfc4514_string() in {"O=plant,CN=gateway", "CN=gateway,O=plant"}
        certificate = issued(request)
        assert await pusher.update(certificate, *text(LINE.certificate, ROOT.certificate)) is True
        assert {value.ServerCertificate for value in await offered(pusher.server)} == {before}
        assert await pusher.call("ApplyChanges") == []
        for endpoint in await offered(pusher.server):
            own, *above = read_chain(endpoint.ServerCertificate)
            assert text(own) == [certificate]
            assert above == [LINE.certificate, ROOT.certificate]
        own_certificate = certificates.load(Path(pusher.settings.pki))
        assert own_certificate
        assert text(*own_certificate.chain) == [certificate, *text(LINE.certificate, ROOT.certificate)]
        await wait_until(lambda: pusher.server.sessions == 0)
        # The same client enters again over a channel with the new certificate.
        again = Pusher(pusher.server, pusher.settings, pusher.client, await pusher.client.ask("enter"))
        assert await again.call("GetCertificates", GROUP) == [["ns=0;i=12560"], [certificate]]
        assert await again.call("ApplyChanges") == "BadNothingToDo"


async def test_certificate_for_the_current_key_is_applied(pusher: Pusher) -> None:
    request = await pusher.request()
    own = certificates.load(Path(pusher.settings.pki))
    assert own
    assert request.public_key() == own.key.public_key()
    assert await pusher.update(issued(request, ROOT)) is True
    assert await pusher.call("CancelChanges") == []
    assert await pusher.call("ApplyChanges") == "BadNothingToDo"


async def test_bad_certificates_are_refused(pusher: Pusher) -> None:
    garbage = base64.b64encode(b"garbage").decode()
    for certificate in (garbage, ""):
        assert await pusher.update(certificate) == "BadCertificateInvalid"
    request = await pusher.request()
    assert await pusher.update(issued(request), garbage) == "BadCertificateInvalid"
    assert await pusher.update(issued(request), *text(ROOT.certificate)) == "BadSecurityChecksFailed"
    uri = f"urn:{'x' * 8}"
    assert await pusher.update(*text(LINE.issue("other", uri=uri))) == "BadSecurityChecksFailed"
    assert await pusher.update(*text(LINE.issue("wrong key"))) == "BadSecurityChecksFailed"
    assert await pusher.update(issued(request), *text(*[ROOT.certificate] * 5)) == "BadInvalidArgument"
    assert await pusher.update(issued(request), key_format="PFX", key=garbage) == "BadNotSupported"
    assert await pusher.update(issued(request), key_format="PEM", key=garbage) == "BadSecurityChecksFailed"
    assert await pusher.update(issued(request), key_format="PEM") == "BadInvalidArgument"
    assert await pusher.call("ApplyChanges") == "BadNothingToDo"
    short = ["Boolean", True], ["ByteString", base64.b64encode(b"short").decode()]
    assert await pusher.call("CreateSigningRequest", GROUP, KIND, ["String", ""], *short) == "BadInvalidArgument"
    assert (
        await pusher.call("CreateSigningRequest", GROUP, ["NodeId", "i=1"], ["String", ""], *short)
        == "BadInvalidArgument"
    )
    bad_name = ["Boolean", False], ["ByteString", None]
    assert (
        await pusher.call("CreateSigningRequest", GROUP, KIND, ["String", "nonsense"], *bad_name)
        == "BadInvalidArgument"
    )
    assert await pusher.call("ApplyChanges", ["UInt32", 1]) == "BadTooManyArguments"
    assert await pusher.call("GetCertificates") == "BadArgumentsMissing"
    assert await pusher.call("GetCertificates", ["String", "x"]) == "BadInvalidArgument"


async def test_certificate_methods_are_refused_for_other_users(pusher: Pusher) -> None:
    # The observer is not listed, and the operator is listed without being an engineer.
    for user in ("observer", "operator"):
        number = await pusher.client.ask("enter", user=user)
        other = Pusher(pusher.server, pusher.settings, pusher.client, number)
        assert await other.call("GetRejectedList") == "BadUserAccessDenied"
        assert await other.list("Open", ["Byte", 1]) == "BadUserAccessDenied"


async def test_change_in_another_session_is_refused_while_one_is_pending(pusher: Pusher) -> None:
    request = await pusher.request()
    assert await pusher.update(issued(request)) is True
    number = await pusher.client.ask("enter")
    other = Pusher(pusher.server, pusher.settings, pusher.client, number)
    assert await other.update(issued(request)) == "BadTransactionPending"
    assert await other.call("ApplyChanges") == "BadSessionIdInvalid"
    assert await pusher.call("CancelChanges") == []


async def test_the_trust_list_is_read_and_replaced(pusher: Pusher, friend: Application) -> None:
    own = base64.b64encode(friend.certificate).decode()
    assert await pusher.read() == {"masks": 15, "trusted": [own], "trustedCrls": [], "issuers": [], "issuerCrls": []}
    (root,), (line,) = text(ROOT.certificate), text(LINE.certificate)
    (crl,) = text(ROOT.revoke())
    assert await pusher.write(masks=15, trusted=[own, root], trustedCrls=[crl], issuers=[line]) is False
    found = await pusher.read()
    assert {*found["trusted"]} == {own, root}
    assert (found["trustedCrls"], found["issuers"]) == ([crl], [line])
    assert await pusher.write(masks=2) is False
    found = await pusher.read()
    assert {*found["trusted"]} == {own, root}
    assert (found["trustedCrls"], found["issuers"]) == ([], [line])
    handle = await pusher.list("OpenWithMasks", ["UInt32", 4])
    part = await pusher.list("Read", ["UInt32", handle], ["Int32", 100_000])
    assert (await pusher.client.ask("decodeTrustList", data=part))["issuers"] == [line]
    assert int((await pusher.list("GetPosition", ["UInt32", handle]))[1]) == len(base64.b64decode(part))
    assert await pusher.list("SetPosition", ["UInt32", handle], ["UInt64", [0, 4]]) == []
    assert await pusher.list("Close", ["UInt32", handle]) == []
    assert await pusher.list("OpenWithMasks", ["UInt32", 16]) == "BadInvalidArgument"
    assert await pusher.write(masks=15, trusted=[own]) is False


async def test_certificates_are_added_and_removed_one_by_one(pusher: Pusher) -> None:
    client = pki.self_signed("client", uri="urn:test:client")
    (added,) = text(client)
    trusted = ["Boolean", True]
    assert await pusher.list("AddCertificate", ["ByteString", added], trusted) == []
    assert added in (await pusher.read())["trusted"]
    name = certificates.thumbprint(client)
    assert await pusher.list("RemoveCertificate", ["String", name.lower()], trusted) == []
    assert await pusher.list("RemoveCertificate", ["String", name], trusted) == "BadInvalidArgument"
    assert added not in (await pusher.read())["trusted"]
    garbage = base64.b64encode(b"garbage").decode()
    assert await pusher.list("AddCertificate", ["ByteString", garbage], trusted) == "BadCertificateInvalid"
    handle = await pusher.list("Open", ["Byte", 1])
    assert await pusher.list("AddCertificate", ["ByteString", added], trusted) == "BadInvalidState"
    assert await pusher.list("Close", ["UInt32", handle]) == []


async def test_added_certificate_has_its_chain_and_is_not_an_authority(pusher: Pusher) -> None:
    """OPC 10000-12, 7.8.2.6 of 1.05: an authority without its revocation lists would be trusted for what it revoked."""
    (root,) = text(ROOT.certificate)
    (issued,) = text(ROOT.issue("client", uri="urn:test:client"))
    before = await pusher.read()
    trusted, issuer = ["Boolean", True], ["Boolean", False]
    assert await pusher.list("AddCertificate", ["ByteString", root], trusted) == "BadCertificateInvalid"
    assert await pusher.list("AddCertificate", ["ByteString", root], issuer) == "BadCertificateInvalid"
    assert await pusher.list("AddCertificate", ["ByteString", issued], trusted) == "BadCertificateChainIncomplete"
    assert await pusher.write(masks=4, issuers=[root]) is False
    assert await pusher.list("AddCertificate", ["ByteString", issued], trusted) == []
    assert await pusher.write(masks=15, trusted=before["trusted"]) is False


async def test_a_bad_trust_list_changes_nothing(pusher: Pusher) -> None:
    before = await pusher.read()
    handle = await pusher.list("Open", ["Byte", 6])
    assert await pusher.list("Open", ["Byte", 6]) == "BadNotWritable"
    assert await pusher.list("Open", ["Byte", 1]) == "BadNotReadable"
    assert await pusher.list("Read", ["UInt32", handle], ["Int32", 1]) == "BadInvalidState"
    garbage = base64.b64encode(b"garbage").decode()
    assert await pusher.list("Write", ["UInt32", handle], ["ByteString", garbage]) == []
    assert await pusher.list("CloseAndUpdate", ["UInt32", handle]) == "BadCertificateInvalid"
    assert await pusher.write(masks=1, trusted=[garbage]) == "BadCertificateInvalid"
    assert await pusher.list("CloseAndUpdate", ["UInt32", handle]) == "BadInvalidArgument"
    assert await pusher.list("Open", ["Byte", 2]) == "BadInvalidArgument"
    handle = await pusher.list("Open", ["Byte", 6])
    large = base64.b64encode(bytes(MAX_TRUST_LIST_SIZE // 2)).decode()
    assert await pusher.list("Write", ["UInt32", handle], ["ByteString", large]) == []
    assert await pusher.list("Write", ["UInt32", handle], ["ByteString", large]) == []
    assert await pusher.list("Write", ["UInt32", handle], ["ByteString", garbage]) == "BadEncodingLimitsExceeded"
    assert await pusher.list("Close", ["UInt32", handle]) == []
    assert await pusher.read() == before


async def test_channel_of_a_removed_application_is_closed(
    tmp_path: Path, friend: Application, wait_until: WaitUntil
) -> None:
    async with managed(tmp_path, friend) as pusher:
        assert pusher.server.sessions == 1
        assert await pusher.write(masks=1, trusted=text(ROOT.certificate)) is False
        await wait_until(lambda: pusher.server.sessions == 0)


async def test_session_of_a_removed_user_is_closed(tmp_path: Path, friend: Application, wait_until: WaitUntil) -> None:
    async with managed(tmp_path, friend) as pusher:
        certificate = pki.self_signed("operator")
        add_certificate(certificate, Path(pusher.settings.trusted_users))
        user, key = pki.write_pem(tmp_path / "user.pem", certificate), pki.write_key(tmp_path / "user-key.pem")
        await pusher.client.ask("enter", userCertificate=str(user), userKey=str(key))
        assert pusher.server.sessions == 2
        name, trusted = ["String", certificates.thumbprint(certificate)], ["Boolean", True]
        assert await pusher.of_users("RemoveCertificate", name, trusted) == []
        await wait_until(lambda: pusher.server.sessions == 1)


async def test_rejected_certificates_are_listed(pusher: Pusher) -> None:
    stranger = pki.self_signed("stranger")
    add_certificate(stranger, Path(pusher.settings.pki, "rejected"))
    assert await pusher.call("GetRejectedList") == text(stranger)


async def test_certificate_nodes_are_absent_without_administrators(secure: UaServer) -> None:
    assert ua.NodeId(ua.ObjectIds.ServerConfiguration) not in secure._core.aspace  # noqa: SLF001 - what clients browse
