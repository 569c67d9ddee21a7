"""A channel has an offered policy and a trusted application; before it is open, no request is answered (S1, S2)."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from asyncua import ua
from asyncua.common.connection import MessageChunk
from asyncua.common.utils import Buffer
from asyncua.crypto.security_policies import SecurityPolicyFactory, SecurityPolicyNone
from asyncua.ua.ua_binary import header_from_binary, struct_to_binary
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from edge.config import OpcuaSettings
from edge.opcua.limits import NegotiatedLimits
from edge.opcua.server_channel import ServerChannel
from edge.uaserver import certificates
from edge.uaserver.application_trust import RejectedList, rejected_directory
from edge.uaserver.security import AccessControl
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.clients import Application, channel, connected, make_application, make_settings, prepared
from tests.uaserver.running import MACHINES, SETTINGS, served
from tests.uaserver.wire import Wire

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN = SecurityPolicyFactory(SecurityPolicyNone, ua.MessageSecurityMode.None_)


@pytest_asyncio.fixture(loop_scope="module")
async def wire(secure: UaServer) -> AsyncIterator[Wire]:
    async with Wire.to(secure.endpoint) as connected_wire:
        yield connected_wire


class TestWithoutEncryption:
    async def test_unencrypted_channel_creates_no_session(self, secure: UaServer) -> None:
        async with channel(patient_client(secure.endpoint)) as client:
            with pytest.raises(ua.uaerrors.BadSecurityPolicyRejected):
                await client.create_session()

    async def test_unencrypted_channel_serves_discovery_only(self, secure: UaServer) -> None:
        async with channel(patient_client(secure.endpoint)) as client:
            assert await client.get_endpoints()
            assert await client.find_servers()
            with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                await client.get_node(ua.ObjectIds.Server_ServerStatus_State).read_value()
            with pytest.raises(ua.uaerrors.BadServiceUnsupported):
                await client.uaclient.register_server(ua.RegisteredServer(ServerUri="urn:intruder"))

    async def test_unencrypted_channel_cannot_activate_a_session(self, secure: UaServer, friend: Application) -> None:
        async with connected(secure.endpoint, friend) as victim, channel(patient_client(secure.endpoint)) as thief:
            thief.uaclient.protocol.authentication_token = victim.uaclient.protocol.authentication_token
            with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                await thief.uaclient.activate_session(
                    ua.ActivateSessionParameters(UserIdentityToken=ua.AnonymousIdentityToken())
                )
            assert await victim.get_namespace_array()

    async def test_asyncua_accepts_an_unencrypted_channel(self) -> None:
        # When this fails, remove `ServerChannel.select_policy`.
        from asyncua.common.connection import SecureConnection, TransportLimits

        connection = SecureConnection(SecurityPolicyNone(), TransportLimits())
        connection.select_policy(SecurityPolicyNone.URI, None, ua.MessageSecurityMode.None_)


class TestTheOrderOfThings:
    """Each of these messages ends the connection, as the server must not answer an unidentified client."""

    async def test_message_before_the_open_channel_ends_the_connection(self, wire: Wire) -> None:
        await wire.hello()
        wire.send(b"MSG", struct_to_binary(ua.SymmetricAlgorithmHeader()) + bytes(40))
        await wire.is_ended_with(ua.StatusCodes.BadTcpMessageTypeInvalid)

    async def test_open_channel_before_hello_ends_the_connection(self, wire: Wire) -> None:
        wire.send(b"OPN", bytes(100))
        await wire.is_ended_with(ua.StatusCodes.BadTcpMessageTypeInvalid)

    async def test_second_hello_ends_the_connection(self, wire: Wire) -> None:
        await wire.hello()
        wire.send(b"HEL", struct_to_binary(ua.Hello()))
        await wire.is_ended_with(ua.StatusCodes.BadTcpMessageTypeInvalid)

    @pytest.mark.parametrize(
        "hello", [ua.Hello(ReceiveBufferSize=100, SendBufferSize=100), ua.Hello(MaxMessageSize=100)]
    )
    async def test_hello_with_too_small_buffers_ends_the_connection(self, wire: Wire, hello: ua.Hello) -> None:
        wire.send(b"HEL", struct_to_binary(hello))
        await wire.is_ended_with(ua.StatusCodes.BadTcpNotEnoughResources)

    async def test_message_with_a_foreign_channel_id_ends_the_connection(self, secure: UaServer) -> None:
        async with Wire.to(secure.endpoint) as victim, Wire.to(secure.endpoint) as thief:
            await victim.hello()
            await victim.open()
            await thief.hello()
            await thief.open()
            assert thief.channel_id != victim.channel_id
            thief.channel_id = victim.channel_id
            thief.request(bytes(40))
            await thief.is_ended_with(ua.StatusCodes.BadSecurityChecksFailed)

    async def test_an_unknown_security_policy_is_refused(self, wire: Wire) -> None:
        await wire.hello()
        wire.send(b"OPN", struct_to_binary(ua.AsymmetricAlgorithmHeader(SecurityPolicyURI="urn:none")) + bytes(40))
        await wire.is_ended_with(ua.StatusCodes.BadSecurityPolicyRejected)


class TestWhoseCertificate:
    async def test_an_unknown_application_opens_no_channel(self, secure: UaServer, stranger: Application) -> None:
        with pytest.raises((ua.uaerrors.BadSecurityChecksFailed, ConnectionError)):
            async with channel(await prepared(secure.endpoint, stranger)):
                pass

    @pytest.mark.usefixtures("secure")
    async def test_unknown_certificate_is_stored_before_the_client_is_refused(
        self, tmp_path: Path, stranger: Application
    ) -> None:
        settings = at_first(tmp_path)
        async with served(settings, MACHINES[:1]) as server:
            with pytest.raises((ua.uaerrors.BadSecurityChecksFailed, ConnectionError)):
                async with channel(await prepared(server.endpoint, stranger)):
                    pass
            (waiting,) = rejected_directory(tmp_path).iterdir()
            assert waiting.read_bytes() == stranger.certificate
            stranger.trusted_by(settings)
            async with channel(await prepared(server.endpoint, stranger)) as client:
                assert await client.get_endpoints()

    @pytest.mark.usefixtures("secure")
    async def test_many_unknown_clients_do_not_write_to_disk_on_the_event_loop(
        self, tmp_path: Path, stranger: Application, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with served(at_first(tmp_path), MACHINES[:1]) as server:
            synced: list[int] = []
            monkeypatch.setattr(os, "fsync", synced.append)
            for number in range(RejectedList.MOST_NEW_OF_ADDRESS + 2):
                another = renamed(stranger, tmp_path / f"stranger-{number}")
                with pytest.raises((ua.uaerrors.BadSecurityChecksFailed, ConnectionError)):
                    async with channel(await prepared(server.endpoint, another)):
                        pass
        assert synced == []
        assert len(list(rejected_directory(tmp_path).iterdir())) == RejectedList.MOST_NEW_OF_ADDRESS

    async def test_a_trusted_certificate_without_its_key_opens_no_channel(
        self, secure: UaServer, friend: Application, stranger: Application
    ) -> None:
        thief = await prepared(secure.endpoint, stranger)
        thief.security_policy.host_certificate = friend.certificate
        with pytest.raises((ua.uaerrors.BadSecurityChecksFailed, ConnectionError)):
            async with channel(thief):
                pass

    @pytest.mark.parametrize("shown", ["none", "another", "nonsense"])
    async def test_a_session_shows_the_certificate_of_its_channel(
        self, secure: UaServer, friend: Application, stranger: Application, shown: str
    ) -> None:
        async with channel(await prepared(secure.endpoint, friend)) as client:
            client.security_policy.host_certificate = {
                "none": None,
                "another": stranger.certificate,
                "nonsense": b"0\x83",
            }[shown]
            with pytest.raises(ua.uaerrors.BadSecurityChecksFailed):
                await client.create_session()

    async def test_application_uri_must_match_the_certificate(self, secure: UaServer, friend: Application) -> None:
        async with channel(await prepared(secure.endpoint, friend)) as client:
            client.application_uri = "urn:test:somebody-else"
            with pytest.raises(ua.uaerrors.BadCertificateUriInvalid):
                await client.create_session()

    async def test_client_that_is_no_longer_trusted_cannot_renew_its_channel(
        self, secure: UaServer, secure_settings: OpcuaSettings, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        former = make_application(tmp_path_factory.mktemp("former"))
        former.trusted_by(secure_settings)
        async with channel(await prepared(secure.endpoint, former)) as client:
            await client.open_secure_channel(renew=True)
            assert await client.get_endpoints()
            former.trusted_by_nobody(secure_settings)
            with pytest.raises((ua.UaError, ConnectionError, asyncio.TimeoutError)):
                await client.open_secure_channel(renew=True)


def at_first(directory: Path) -> OpcuaSettings:
    """Return the settings of a gateway without rejected clients; its certificate is that of `secure`."""
    shutil.copy(Path(SETTINGS.pki, "own.pem"), directory)
    return msgspec.structs.replace(make_settings(directory), pki=str(directory))


def renamed(application: Application, directory: Path) -> Application:
    """Return the same application with another certificate for its key."""
    own = certificates.load(application.directory)
    assert own
    now, name = datetime.now(UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, directory.name)])
    builder = x509.CertificateBuilder(name, name, own.key.public_key(), 1, now, now + timedelta(days=1))
    directory.mkdir()
    shutil.copy(application.directory / "own.pem", directory)
    (directory / "own.der").write_bytes(builder.sign(own.key, SHA256()).public_bytes(Encoding.DER))
    return Application(application.uri, directory)


def opened(lifetime: int, clock: Callable[[], float] = time.monotonic) -> ServerChannel:
    server_channel = ServerChannel(NegotiatedLimits(), AccessControl(SETTINGS), "127.0.0.1", [PLAIN], lambda: 6, clock)
    server_channel.select_policy(SecurityPolicyNone.URI, None)
    server_channel.open(
        ua.OpenSecureChannelParameters(SecurityMode=ua.MessageSecurityMode.None_, RequestedLifetime=lifetime)
    )
    return server_channel


def message_for(made: ServerChannel, number: int) -> tuple[ua.Header, Buffer]:
    chunk = MessageChunk(made.security_policy.symmetric_cryptography, b"body")
    chunk.SecurityHeader = ua.SymmetricAlgorithmHeader(TokenId=made.token.TokenId)
    chunk.MessageHeader.ChannelId = made.token.ChannelId
    chunk.SequenceHeader = ua.SequenceHeader(SequenceNumber=number, RequestId=number)
    body = Buffer(chunk.to_binary())
    return header_from_binary(body), body


@pytest.mark.parametrize(("asked", "granted"), [(0, 10_000), (600_000, 600_000), (2**32 - 1, 3_600_000)])
async def test_channel_lifetime_is_one_hour_at_most(asked: int, granted: int) -> None:
    assert opened(asked).token.RevisedLifetime == granted


async def test_token_that_was_never_used_has_an_id_of_its_own() -> None:
    """Two renewals without a message between them had one id for two keys."""
    server_channel = opened(600_000)
    renewal = ua.OpenSecureChannelParameters(RequestType=ua.SecurityTokenRequestType.Renew, RequestedLifetime=600_000)
    first, second, third = (server_channel.open(renewal).SecurityToken.TokenId for _ in range(3))
    assert server_channel.token.TokenId < first < second < third
    header, body = message_for(server_channel, 1)
    server_channel.receive(header, body)


async def test_token_that_a_renewal_replaced_is_refused_after_its_own_lifetime() -> None:
    """OPC 10000-6, 6.7.4: the server accepts it until it expires; each renewal prolonged it."""
    now = 1000.0
    server_channel = opened(600_000, lambda: now)
    now += 450
    server_channel.open(
        ua.OpenSecureChannelParameters(RequestType=ua.SecurityTokenRequestType.Renew, RequestedLifetime=600_000)
    )
    server_channel.receive(*message_for(server_channel, 1))
    now += 301
    with pytest.raises(ua.UaStatusCodeError) as caught:
        server_channel.receive(*message_for(server_channel, 2))
    assert caught.value.code == ua.StatusCodes.BadSecureChannelTokenUnknown


async def test_key_that_was_not_renewed_is_refused_after_its_lifetime() -> None:
    now = 1000.0
    server_channel = opened(600_000, lambda: now)
    server_channel.receive(*message_for(server_channel, 1))
    now += 751
    with pytest.raises(ua.UaStatusCodeError) as caught:
        server_channel.receive(*message_for(server_channel, 2))
    assert caught.value.code == ua.StatusCodes.BadSecureChannelTokenUnknown
