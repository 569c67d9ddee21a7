"""A request is assigned to a session by its token and channel, and a session to one client (S4, S9, S10)."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from asyncua import Client, ua
from asyncua.server.internal_server import InternalServer
from asyncua.ua.ua_binary import struct_to_binary

from edge.config import OpcuaSettings
from edge.model.user import Role
from edge.opcua import limits
from edge.opcua.time_slices import BURST_S, SHARE
from edge.uaserver.parts import NewServer
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.passwords import PASSWORD
from tests.uaserver.clients import (
    Application,
    channel,
    connected,
    make_application,
    prepared,
    serves,
    signature_of,
)
from tests.uaserver.other_stack import Faulted, other_stack
from tests.uaserver.running import MACHINES, served
from tests.uaserver.wire import Wire, service

pytestmark = pytest.mark.asyncio(loop_scope="module")

CREATE_SESSION = 461
READ = 631


def token_of(client: Client) -> ua.NodeId:
    return client.uaclient.protocol.authentication_token


def as_anonymous(client: Client, server_nonce: bytes | None = None) -> ua.ActivateSessionParameters:
    if server_nonce:
        client._server_nonce = server_nonce  # noqa: SLF001 - the last nonce sent to the owner
    token = ua.AnonymousIdentityToken(PolicyId="anonymous")
    return ua.ActivateSessionParameters(UserIdentityToken=token, ClientSignature=signature_of(client))


class TestTokens:
    async def test_session_tokens_are_long_and_random(self, server: UaServer) -> None:
        tokens = []
        for _ in range(2):
            async with patient_client(server.endpoint) as client:
                tokens.append(token_of(client))
        first, second = (token.Identifier for token in tokens)
        assert len(first) == len(second) == 32
        assert sum(left != right for left, right in zip(first, second, strict=True)) > 20

    async def test_asyncua_session_tokens_are_consecutive_numbers(self) -> None:
        # When this fails, remove `ServerSession.__init__`.
        plain = InternalServer()
        first, second = (plain.create_session("x", external=True).auth_token.Identifier for _ in range(2))
        assert second == first + 1

    async def test_request_with_the_token_of_another_session_is_refused(self, server: UaServer) -> None:
        async with patient_client(server.endpoint) as victim, patient_client(server.endpoint) as thief:
            own = token_of(thief)
            for token in (token_of(victim), ua.NodeId(), ua.NodeId(1001)):
                thief.uaclient.protocol.authentication_token = token
                with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                    await serves(thief)
            thief.uaclient.protocol.authentication_token = own
            assert await serves(thief)

    async def test_unencrypted_session_cannot_move_to_another_channel(self, server: UaServer) -> None:
        async with patient_client(server.endpoint) as victim, channel(patient_client(server.endpoint)) as thief:
            thief.uaclient.protocol.authentication_token = token_of(victim)
            with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                await thief.uaclient.activate_session(
                    ua.ActivateSessionParameters(UserIdentityToken=ua.AnonymousIdentityToken())
                )
            assert await serves(victim)


class TestMoving:
    async def test_encrypted_session_moves_to_another_channel_of_its_client(
        self, secure: UaServer, friend: Application
    ) -> None:
        async with (
            connected(secure.endpoint, friend) as before,
            channel(await prepared(secure.endpoint, friend)) as after,
        ):
            after.uaclient.protocol.authentication_token = token_of(before)
            nonce = before._server_nonce  # noqa: SLF001
            await after.uaclient.activate_session(as_anonymous(after, nonce))
            assert await serves(after)
            with pytest.raises((ua.uaerrors.BadSecureChannelIdInvalid, ua.uaerrors.BadSessionIdInvalid)):
                await serves(before)

    async def test_moved_session_survives_the_loss_of_its_old_connection(
        self, secure: UaServer, friend: Application
    ) -> None:
        before = await prepared(secure.endpoint, friend)
        async with channel(before), channel(await prepared(secure.endpoint, friend)) as after:
            await before.create_session()
            answer = await before.uaclient.activate_session(as_anonymous(before))
            after.uaclient.protocol.authentication_token = token_of(before)
            await after.uaclient.activate_session(as_anonymous(after, answer.ServerNonce))
            before.disconnect_socket()
            for _ in range(3):
                await asyncio.sleep(0.01)
                assert await serves(after)

    async def test_session_is_refused_to_another_application(
        self, secure: UaServer, friend: Application, secure_settings: OpcuaSettings, tmp_path: Path
    ) -> None:
        other = make_application(tmp_path)
        other.trusted_by(secure_settings)
        async with (
            connected(secure.endpoint, friend) as victim,
            channel(await prepared(secure.endpoint, other)) as thief,
        ):
            thief.uaclient.protocol.authentication_token = token_of(victim)
            with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                await thief.uaclient.activate_session(as_anonymous(thief, victim._server_nonce))  # noqa: SLF001
            assert await serves(victim)

    async def test_session_is_refused_to_another_user(self, secure: UaServer, friend: Application) -> None:
        async with (
            connected(secure.endpoint, friend, user="engineer") as victim,
            channel(await prepared(secure.endpoint, friend)) as thief,
        ):
            thief.uaclient.protocol.authentication_token = token_of(victim)
            with pytest.raises(ua.uaerrors.BadIdentityTokenRejected):
                await thief.uaclient.activate_session(as_anonymous(thief, victim._server_nonce))  # noqa: SLF001
            assert await serves(victim)

    async def test_activation_without_a_valid_signature_is_refused(self, secure: UaServer, friend: Application) -> None:
        async with channel(await prepared(secure.endpoint, friend)) as client:
            await client.create_session()
            for signature in (ua.SignatureData(), ua.SignatureData(signature_of(client).Algorithm, bytes(256))):
                parameters = as_anonymous(client)
                parameters.ClientSignature = signature
                with pytest.raises(ua.uaerrors.BadApplicationSignatureInvalid):
                    await client.uaclient.activate_session(parameters)


class TestSessions:
    async def test_second_session_of_a_connection_is_refused(self, server: UaServer) -> None:
        async with patient_client(server.endpoint) as client:
            with pytest.raises(ua.uaerrors.BadTooManySessions):
                await client.create_session()
            assert await serves(client)

    async def test_connection_can_open_sessions_one_after_another(self, server: UaServer) -> None:
        async with channel(patient_client(server.endpoint)) as client:
            for _ in range(3):
                await client.create_session()
                await client.activate_session()
                assert await serves(client)
                await client.uaclient.close_session(True)
                with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                    await serves(client)

    async def test_session_that_is_not_activated_cannot_read(self, server: UaServer) -> None:
        async with channel(patient_client(server.endpoint)) as client:
            await client.create_session()
            with pytest.raises(ua.uaerrors.BadSessionNotActivated):
                await serves(client)


async def ended(client: Client) -> None:
    """Send requests that need no session until the client's session, never activated, has ended."""
    async with asyncio.timeout(60):
        while True:
            await client.get_endpoints()
            try:
                await serves(client)
            except ua.uaerrors.BadSessionNotActivated:
                continue
            except ua.uaerrors.BadSessionIdInvalid:
                return


class TestSessionsNeverActivated:
    async def test_session_that_is_not_activated_expires_despite_requests(self) -> None:
        async with served(activation_s=0.2) as server, channel(patient_client(server.endpoint)) as client:
            for _ in range(2):
                client.session_timeout = 600_000
                await client.create_session()
                await ended(client)
                with pytest.raises(ua.uaerrors.BadSessionIdInvalid):
                    await client.activate_session()

    async def test_activated_session_survives_the_activation_timeout(self) -> None:
        async with (
            served(activation_s=0.2) as server,
            channel(patient_client(server.endpoint)) as idle,
            patient_client(server.endpoint) as client,
        ):
            await idle.create_session()
            await ended(idle)
            assert await serves(client)

    async def test_sessions_that_are_not_activated_do_not_block_clients(self) -> None:
        async with served() as server, contextlib.AsyncExitStack() as stack:
            for _ in range(limits.DEFAULTS.sessions + 5):
                attacker = await stack.enter_async_context(channel(patient_client(server.endpoint)))
                await attacker.create_session()
            for _ in range(limits.DEFAULTS.connections):
                assert await serves(await stack.enter_async_context(patient_client(server.endpoint)))


class TestPasswords:
    async def test_unencrypted_password_is_refused(self, server: UaServer) -> None:
        async with channel(patient_client(server.endpoint)) as client:
            await client.create_session()
            for token in (
                ua.UserNameIdentityToken("username", "operator", PASSWORD.encode(), ""),
                ua.UserNameIdentityToken("username", "admin", b"", ""),
            ):
                with pytest.raises(ua.uaerrors.BadUserAccessDenied):
                    await client.uaclient.activate_session(ua.ActivateSessionParameters(UserIdentityToken=token))
                with pytest.raises(ua.uaerrors.BadSessionNotActivated):
                    await serves(client)

    @pytest.mark.parametrize("token", [ua.X509IdentityToken(), ua.IssuedIdentityToken()])
    async def test_other_user_token_types_are_refused(self, server: UaServer, token: Any) -> None:
        async with channel(patient_client(server.endpoint)) as client:
            await client.create_session()
            with pytest.raises(ua.uaerrors.BadIdentityTokenInvalid):
                await client.uaclient.activate_session(ua.ActivateSessionParameters(UserIdentityToken=token))


class TestWhatCannotBeRead:
    async def test_intermediate_chunk_without_a_session_is_refused(self, server: UaServer) -> None:
        async with Wire.to(server.endpoint) as wire:
            await wire.hello()
            await wire.open()
            wire.request(bytes(60_000), final=b"C")
            await wire.is_ended_with(ua.StatusCodes.BadTcpMessageTooLarge)

    async def test_a_request_without_a_header_is_answered_with_a_fault(self, server: UaServer) -> None:
        """Its connection ended, as if it had broken the security of the channel."""
        async with Wire.to(server.endpoint) as wire:
            await wire.hello()
            await wire.open()
            wire.request(b"\x01\x00\xcd\x01")
            _, header, _ = await wire.answer()
            assert header.ServiceResult.value == ua.StatusCodes.BadDecodingError

    async def test_truncated_request_is_answered_with_a_fault(self, server: UaServer) -> None:
        async with Wire.to(server.endpoint) as wire:
            await wire.hello()
            await wire.open()
            wire.request(service(CREATE_SESSION, ua.NodeId(), b"\x00"))
            _, header, _ = await wire.answer()
            assert header.ServiceResult.value == ua.StatusCodes.BadDecodingError
            wire.request(service(READ, ua.NodeId(), struct_to_binary(ua.ReadParameters())))
            _, header, _ = await wire.answer()
            assert header.ServiceResult.value == ua.StatusCodes.BadSessionIdInvalid

    async def test_chunk_with_a_wrong_sequence_number_ends_the_connection(self, server: UaServer) -> None:
        async with Wire.to(server.endpoint) as wire:
            await wire.hello()
            await wire.open()
            wire.send(b"MSG", wire.token_id.to_bytes(4, "little") + b"\x63\0\0\0\x63\0\0\0" + bytes(30))
            await wire.is_ended_with(ua.StatusCodes.BadSecurityChecksFailed)


class TestBudget:
    async def test_refused_request_waits_for_the_budget(self) -> None:
        """Refusals were free: eight clients of them took a whole processor."""
        cores = []

        async def keep(new: NewServer) -> None:
            cores.append(new.core)

        async with (
            served(machines=MACHINES[:1], role=Role.OBSERVER, parts=[keep]) as server,
            other_stack(server.endpoint) as other,
        ):
            (session,) = cores[0].client_sessions
            session.account.use(BURST_S + SHARE)
            started = asyncio.get_running_loop().time()
            with pytest.raises(Faulted, match="BadServiceUnsupported"):
                await other.send("HistoryUpdate", historyUpdateDetails=[])
            assert asyncio.get_running_loop().time() - started >= 0.5
