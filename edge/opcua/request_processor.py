"""Answers the requests of one connection after it has identified the session.

A request belongs to a session by its token and its channel (OPC 10000-4, 5.6); asyncua trusts every request on the
connection that created a session. Malformed requests are answered and logged in one line.
"""

import asyncio
import hashlib
import hmac
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from asyncua import ua
from asyncua.common.utils import Buffer, ServiceError
from asyncua.ua.ua_binary import nodeid_from_binary, struct_from_binary, struct_to_binary, uatcp_to_binary
from msgspec import Struct

from edge.opcua import access, limits
from edge.opcua.access import AccessPolicy, Caller, Peer
from edge.opcua.answer_encoding import AnswerBody, AnswerTooLargeError, CallResults, encode_answer
from edge.opcua.limits import NegotiatedLimits
from edge.opcua.server_channel import RequestKey, ServerChannel
from edge.opcua.server_session import ServerSession
from edge.opcua.services import CALL, PUBLISH, SERVICES, Service, read_calls
from edge.opcua.subscriptions import PublishRequest
from edge.opcua.time_slices import Account, Turn, Turns

if TYPE_CHECKING:
    from edge.opcua.server_core import ServerCore


class ResponseSender:
    """The queue of answers. Small ones are written at once when nothing waits."""

    def __init__(self, transport: asyncio.Transport, channel: ServerChannel, writable: asyncio.Event) -> None:
        self._transport = transport
        self._channel = channel
        self._writable = writable
        self._queue: deque[tuple[AnswerBody, int]] = deque()
        self._sending = asyncio.Lock()

    def send(self, answer: AnswerBody, request_id: int) -> None:
        """Write an answer of one chunk if nothing waits before it, else queue it for `flush`."""
        if self._queue or self._sending.locked() or answer.size > self._channel.chunk_body_size:
            self._queue.append((answer, request_id))
            return
        for chunk in self._channel.chunks(answer, request_id):
            self._transport.write(chunk)

    async def flush(self, turns: Turns, account: Account) -> None:
        """Write everything that is queued as work of an account; return when it is written or the connection ended."""
        if not self._queue and not self._sending.locked():
            return
        async with self._sending, turns.work(account) as turn:
            while self._queue:
                for chunk in self._channel.chunks(*self._queue.popleft()):
                    if not self._writable.is_set():
                        await turn.wait(self._writable.wait())
                    if self._transport.is_closing():
                        self._queue.clear()
                        return
                    self._transport.write(chunk)
                    await turn.step()


logger = structlog.get_logger(__name__)


class ServiceRequest(Struct, frozen=True):
    """One request: its service, its header, what its answer repeats, and its parameters, not decoded yet."""

    service: ua.NodeId
    header: Any
    key: RequestKey
    body: Buffer


def _id(name: str) -> ua.NodeId:
    return ua.NodeId(getattr(ua.ObjectIds, f"{name}Request_Encoding_DefaultBinary"))


_CREATE, _ACTIVATE, _CLOSE = _id("CreateSession"), _id("ActivateSession"), _id("CloseSession")
_CANCEL, _ENDPOINTS, _SERVERS = _id("Cancel"), _id("GetEndpoints"), _id("FindServers")
_DISCOVERY = frozenset({_ENDPOINTS, _SERVERS})

_UNSUPPORTED = frozenset(
    map(
        _id,
        (
            "QueryFirst",
            "QueryNext",
            "HistoryUpdate",
            "FindServersOnNetwork",
            "RegisterServer",
            "RegisterServer2",
        ),
    )
)
_DENIED = frozenset(map(_id, ("AddNodes", "DeleteNodes", "AddReferences", "DeleteReferences")))
"""Services that change the address space: no client may use them."""

_MAX_LOGGED_FAULTS = 10  # of one connection; a broken client would fill the log


class RequestProcessor:
    """The state of one connection: its channel, and the session that is used over it."""

    def __init__(
        self, core: "ServerCore", transport: asyncio.Transport, agreed: NegotiatedLimits, writable: asyncio.Event
    ) -> None:
        self.session: ServerSession | None = None
        self._core = core
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self._access: AccessPolicy = core.access
        self._agreed = agreed
        self.channel = ServerChannel(agreed, core.access, self._address, core.policies, core.get_new_channel_id)
        self._sender = ResponseSender(transport, self.channel, writable)
        self._turns: Turns = core.turns
        self._opening = self._turns.account(f"channels of {self._address}")
        self._account = self._turns.account(self._address)
        """The account of what comes without a session."""
        self._faults = 0

    async def process(self, header: ua.Header, body: Buffer) -> bool:
        """Process a chunk and return whether the connection stays open; protocol errors close it.

        All of it is charged: a refusal costs as much as an answer.
        """
        is_opening = header.MessageType == ua.MessageType.SecureOpen
        account = self._opening if is_opening else self._payer
        return await self._turns.count(account, self._process(header, body))

    async def _process(self, header: ua.Header, body: Buffer) -> bool:
        try:
            self._check_length(header)
            if header.MessageType == ua.MessageType.SecureOpen:
                # New keys apply to the next message; waiting messages use the old ones.
                await self.flush()
                async with self._turns.work(self._opening):
                    self._open_channel(self.channel.receive(header, body))
                return True
            message = await self._receive(header, body)
            if isinstance(message, ua.Hello):
                acknowledge = self._agreed.create_acknowledge_and_set_limits(message)
                self._transport.write(uatcp_to_binary(ua.MessageType.Acknowledge, acknowledge))
            elif header.MessageType == ua.MessageType.SecureClose:
                return False
            elif message is not None:
                await self._process_message(message.SequenceHeader().RequestId, message.body())
            await self.flush()
        except Exception as error:  # noqa: BLE001 - bytes of strangers break asyncua's reading in any way there is
            status = ua.StatusCode(_code(error, ua.StatusCodes.BadSecurityChecksFailed))
            self._access.record_refusal(
                "OPC UA connection ended", self._address, reason=status.name, detail=type(error).__name__
            )
            if (rejected := self.channel.rejected_certificate) is not None:
                # Before its user hears of it, and goes to the administrator.
                await self._access.keep_rejected(rejected, self._address)
            self._transport.write(uatcp_to_binary(ua.MessageType.Error, ua.ErrorMessage(status, "")))
            return False
        return True

    async def _receive(self, header: ua.Header, body: Buffer) -> Any:
        """Receive a chunk; a long one as work in turns, because its decryption holds up all other connections."""
        if len(body) <= limits.DECODED_AT_ONCE:
            return self.channel.receive(header, body)
        async with self._turns.work(self._payer):
            return self.channel.receive(header, body)

    @property
    def _payer(self) -> Account:
        """The account of the session, or before the login that of the connection."""
        return self._account if self.session is None else self.session.account

    def _open_channel(self, message: Any) -> None:
        request = struct_from_binary(ua.OpenSecureChannelRequest, message.body())
        response = ua.OpenSecureChannelResponse()
        response.Parameters = self.channel.open(request.Parameters)
        response.ResponseHeader.RequestHandle = request.RequestHeader.RequestHandle
        self._transport.write(self.channel.opened(struct_to_binary(response), message.SequenceHeader().RequestId))

    async def _process_message(self, number: int, body: Buffer) -> None:
        """Answer a request, if necessary with a fault."""
        key, service = RequestKey(0, number), ua.NodeId()
        try:
            service = nodeid_from_binary(body)
            header = struct_from_binary(ua.RequestHeader, body)
            key = RequestKey(header.RequestHandle, number)
            request = ServiceRequest(service, header, key, body)
            await self._answer(request)
            if self.session is not None:
                self.session.record.count(service)
            return
        except (ServiceError, ua.UaStatusCodeError) as error:
            code = error.code
        except Exception as error:  # noqa: BLE001 - as in `process`, but only this request is lost
            code = ua.StatusCodes.BadDecodingError
            self._log_fault(service, error)
        self._core.counts.count_fault(code, is_session=service in {_CREATE, _ACTIVATE})
        if self.session is not None:
            self.session.record.count(service, code)
        async with self._turns.work(self._payer):
            self.fail(key, code)

    async def _answer(self, request: ServiceRequest) -> None:
        service = request.service
        if len(request.body) > limits.REQUEST_SIZES.get(service.Identifier, limits.OPERATION_BYTES):
            raise ServiceError(ua.StatusCodes.BadRequestTooLarge)
        if service in _UNSUPPORTED:
            raise ServiceError(ua.StatusCodes.BadServiceUnsupported)
        if service == _CREATE:
            await self._turns.charge(self._payer, self._create(request))
        elif service == _ACTIVATE:
            await self._turns.charge(self._payer, self._activate(request))
        elif service in _DISCOVERY:
            await self._turns.charge(self._payer, self._discover(request))
        else:
            await self._answer_in_session(request, self._session_of(request.header.AuthenticationToken))

    async def _answer_in_session(self, request: ServiceRequest, session: ServerSession) -> None:
        service = request.service
        if service == _CLOSE:
            session.close()
            self.respond(request.key, ua.CloseSessionResponse())
            return
        if not session.is_activated:
            raise ServiceError(ua.StatusCodes.BadSessionNotActivated)
        session.touch()
        if service in SERVICES:
            await self._serve(request, session, SERVICES[service])
        elif service == PUBLISH:
            await self._turns.charge(session.account, self._publish(request, session))
        elif service == CALL:
            await self._call(request, session)
        elif service == _CANCEL:
            handle = struct_from_binary(ua.CancelParameters, request.body).RequestHandle
            response = ua.CancelResponse()
            response.Parameters.CancelCount = session.publish_requests.cancel(handle)
            self.respond(request.key, response)
        else:
            is_denied = service in _DENIED
            raise ServiceError(
                ua.StatusCodes.BadUserAccessDenied if is_denied else ua.StatusCodes.BadServiceUnsupported
            )

    async def _discover(self, request: ServiceRequest) -> None:
        """Answer what clients ask before they have a session."""
        local = self._transport.get_extra_info("sockname")
        response: Any
        if request.service == _ENDPOINTS:
            response = ua.GetEndpointsResponse()
            params = struct_from_binary(ua.GetEndpointsParameters, request.body)
            response.Endpoints = await self._core.get_endpoints(params, local)
        else:
            response = ua.FindServersResponse()
            response.Servers = await self._core.servers(
                struct_from_binary(ua.FindServersParameters, request.body), local
            )
        self.respond(request.key, response)

    async def _serve(self, request: ServiceRequest, session: ServerSession, service: Service) -> None:
        """Decode, perform and answer a request of many operations as work in turns."""
        async with self._turns.work(session.account) as turn:
            params = await self._decode(turn, partial(struct_from_binary, service.parameters), request.body)
            result = await service.perform(session, params, turn)
            await turn.step()
            self.respond(request.key, service.respond(result))

    async def _publish(self, request: ServiceRequest, session: ServerSession) -> None:
        """Acknowledge notifications, and keep the request until there are more."""
        params = struct_from_binary(ua.PublishParameters, request.body)
        results = session.acknowledge(params.SubscriptionAcknowledgements)
        hint = request.header.TimeoutHint
        expires_at = asyncio.get_running_loop().time() + hint / 1000 if hint else math.inf
        waiting = PublishRequest(request.key, self, results, expires_at)
        await session.publish_requests.add(waiting, len(session.owned_subscriptions()))

    async def _call(self, request: ServiceRequest, session: ServerSession) -> None:
        """Decode, perform and answer method calls: they wait for the store, and have no turn meanwhile."""
        async with self._turns.work(session.account) as turn:
            calls = await self._decode(turn, read_calls, request.body)
        results = await self._turns.charge(session.account, session.call(calls))
        wanted = request.header.ReturnDiagnostics
        async with self._turns.work(session.account):
            try:
                self.respond(request.key, CallResults(results, wanted))
            except ServiceError:
                # Diagnostics must not make the answer too large.
                if not wanted:
                    raise
                self.respond(request.key, CallResults(results))

    async def _decode(self, turn: Turn, decode: Callable[[Buffer], Any], body: Buffer) -> Any:
        """Decode a body as work in turns; a long one in the decoder's thread, which does not block the event loop."""
        if len(body) > limits.DECODED_AT_ONCE:
            return await turn.decode(partial(decode, body))
        decoded = decode(body)
        await turn.step()
        return decoded

    def respond(self, key: RequestKey, response: Any) -> None:
        """Send the answer to a request. Raises ServiceError with BadResponseTooLarge above the limit of the client."""
        try:
            self._sender.send(encode_answer(response, key.handle, self.largest_answer), key.number)
        except AnswerTooLargeError as error:
            raise ServiceError(ua.StatusCodes.BadResponseTooLarge) from error

    def fail(self, key: RequestKey, code: int) -> None:
        """Answer a request with a fault."""
        fault = ua.ServiceFault()
        fault.ResponseHeader.ServiceResult = ua.StatusCode(code)
        self.respond(key, fault)

    @property
    def largest_answer(self) -> int:
        """The largest answer that the client takes, in bytes."""
        return self._agreed.largest_answer(self.channel.security_policy.symmetric_cryptography)

    @property
    def is_open(self) -> bool:
        """Whether the client is connected."""
        return not self._transport.is_closing()

    async def flush(self) -> None:
        """Send the waiting answers."""
        await self._sender.flush(self._turns, self._payer)

    def close(self) -> None:
        """Close the session of a connection that has ended; with subscriptions it waits for its client."""
        session, self.session = self.session, None
        if session is None or session.is_closed or session.connection is not self:
            return
        session.publish_requests.clear()
        if not session.owned_subscriptions():
            self._core.counts.aborts += 1
        if not (session.is_activated and session.owned_subscriptions()):
            session.close()

    def _check_length(self, header: ua.Header) -> None:
        session = self.session
        is_known = session is not None and session.is_activated and session.connection is self
        if header.ChunkType == ua.ChunkType.Intermediate and not is_known:
            # Without a session no request needs more than one chunk.
            raise ua.UaStatusCodeError(ua.StatusCodes.BadTcpMessageTooLarge)

    def _session_of(self, token: ua.NodeId) -> ServerSession:
        session = self.session
        if session is None or session.auth_token != token or session.is_closed:
            raise ServiceError(ua.StatusCodes.BadSessionIdInvalid)
        if session.connection is not self:
            raise ServiceError(ua.StatusCodes.BadSecureChannelIdInvalid)
        return session

    async def _create(self, request: ServiceRequest) -> None:
        if not (self.channel.is_encrypted or self._access.allows_unencrypted):
            self._access.record_refusal("OPC UA session refused", self._address, reason="the channel is not encrypted")
            raise ServiceError(ua.StatusCodes.BadSecurityPolicyRejected)
        if self.session is not None and not self.session.is_closed:
            raise ServiceError(ua.StatusCodes.BadTooManySessions)
        params = struct_from_binary(ua.CreateSessionParameters, request.body)
        self._core.make_room_for_session()
        session = self._core.create_session(self._address, self)
        try:
            response = ua.CreateSessionResponse()
            response.Parameters = await session.create(params, self._transport.get_extra_info("sockname"))
        except BaseException:
            # Otherwise the unknown session would remain until its timeout.
            session.close()
            raise
        self.session = session
        policy = self.channel.security_policy
        response.Parameters.ServerCertificate = policy.host_certificate
        signed = (policy.peer_certificate or b"") + (params.ClientNonce or b"")
        response.Parameters.ServerSignature.Signature = policy.asymmetric_cryptography.signature(signed)
        response.Parameters.ServerSignature.Algorithm = policy.AsymmetricSignatureURI
        self.respond(request.key, response)

    async def _activate(self, request: ServiceRequest) -> None:
        params, token = (
            struct_from_binary(ua.ActivateSessionParameters, request.body),
            request.header.AuthenticationToken,
        )
        session = self.session
        if session is None or session.auth_token != token:
            session = self._core.session_of(token)
        has_moved = session is not self.session
        if session is None or not session.is_usable_on(self.channel, has_moved=has_moved):
            raise ServiceError(ua.StatusCodes.BadSessionIdInvalid)
        self._check_signature(session, params.ClientSignature)
        caller = await self._identify(session, params, self.channel.peer)
        if has_moved:
            if session.caller is None or session.caller.name != caller.name:
                raise ServiceError(ua.StatusCodes.BadIdentityTokenRejected)
            self._take_over(session)
        response = ua.ActivateSessionResponse()
        response.Parameters = session.activate(caller, params.LocaleIds or ())
        self._access.record_login(caller)
        self.respond(request.key, response)

    def _check_signature(self, session: ServerSession, signature: ua.SignatureData) -> None:
        """Verify that the client holds the key of its certificate (OPC 10000-4, 5.6.3)."""
        policy = self.channel.security_policy
        if policy.AsymmetricSignatureURI and signature.Algorithm != policy.AsymmetricSignatureURI:
            raise ServiceError(ua.StatusCodes.BadApplicationSignatureInvalid)
        if not access.has_signed(policy, policy.asymmetric_cryptography, session.nonce, signature.Signature):
            raise ServiceError(ua.StatusCodes.BadApplicationSignatureInvalid)

    async def _identify(self, session: ServerSession, params: ua.ActivateSessionParameters, peer: Peer) -> Caller:
        caller: Caller | None
        match params.UserIdentityToken:
            case ua.X509IdentityToken() as token if self._access.allows_certificates:
                policy = self.channel.security_policy
                certificate_token = access.read_certificate_token(
                    policy, session.nonce, token, params.UserTokenSignature
                )
                caller = await self._access.certified_user(
                    certificate_token.chain, peer, is_proved=certificate_token.is_proved
                )
                refusal = ua.StatusCodes.BadIdentityTokenRejected
                if not certificate_token.is_proved:
                    refusal = ua.StatusCodes.BadUserSignatureInvalid
            case ua.UserNameIdentityToken() as token:
                policy = self.channel.security_policy
                name, password = access.read_password(policy, session.nonce, token)
                digest = hashlib.sha256(f"{name}\n{password}".encode()).digest()
                is_same = hmac.compare_digest(digest, session.record.secret_digest)
                caller = await self._access.user(name, password, peer, is_confirmed=is_same)
                session.record.secret_digest = digest if caller else b""
                refusal = ua.StatusCodes.BadUserAccessDenied
            case ua.AnonymousIdentityToken() | ua.ExtensionObject(TypeId=ua.NodeId(Identifier=0)) | None:
                caller = self._access.anonymous(peer)
                refusal = ua.StatusCodes.BadIdentityTokenRejected
            case _:
                raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
        if caller is None:
            raise ServiceError(refusal)
        return caller

    def _take_over(self, session: ServerSession) -> None:
        """Move a session of the same client from a lost connection to this one."""
        if self.session is not None:
            self.session.close()
        session.publish_requests.clear()
        session.connection = self
        self.session = session

    def _log_fault(self, service: ua.NodeId, error: Exception) -> None:
        self._faults += 1
        if self._faults <= _MAX_LOGGED_FAULTS:
            logger.warning(
                "OPC UA request not answered",
                address=self._address,
                request=service.Identifier,
                reason=f"{type(error).__name__}: {error}"[:200],
            )


def _code(error: Exception, otherwise: int) -> int:
    return int(error.code) if isinstance(error, ServiceError | ua.UaStatusCodeError) else otherwise
