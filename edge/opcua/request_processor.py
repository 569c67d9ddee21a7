"""Answers the requests of one connection after it has identified the session.

asyncua binds a session to the connection that created it and trusts every request on it; a client that knows the token
of a session, a small number, may take it over. Here a request belongs to a session by its token and its channel (OPC
10000-4, 5.6), sessions are activated by us, and malformed requests are answered and logged in one line.
"""

import asyncio
import hashlib
import hmac
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from asyncua import ua
from asyncua.common.utils import Buffer, ServiceError
from asyncua.server.uaprocessor import UaProcessor
from asyncua.ua.ua_binary import nodeid_from_binary, struct_from_binary, struct_to_binary, uatcp_to_binary

from edge.opcua import access, limits
from edge.opcua.access import AccessPolicy, Caller, Peer
from edge.opcua.answer_encoding import AnswerBody, AnswerTooLargeError, CallResults, encode_answer
from edge.opcua.limits import NegotiatedLimits
from edge.opcua.server_channel import RequestKey, ServerChannel
from edge.opcua.server_session import ServerSession
from edge.opcua.services import CALL, PUBLISH, SERVICES, Service, read_calls
from edge.opcua.subscriptions import PublishRequest
from edge.opcua.time_slices import Pacer, Turns


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

    async def flush(self) -> None:
        """Write everything that is queued; return when it is written or the connection has ended."""
        if not self._queue and not self._sending.locked():
            return
        pacer = Pacer()
        async with self._sending:
            while self._queue:
                for chunk in self._channel.chunks(*self._queue.popleft()):
                    await self._writable.wait()
                    if self._transport.is_closing():
                        self._queue.clear()
                        return
                    self._transport.write(chunk)
                    await pacer.step()


logger = structlog.get_logger(__name__)

_CREATE = ua.NodeId(ua.ObjectIds.CreateSessionRequest_Encoding_DefaultBinary)
_ACTIVATE = ua.NodeId(ua.ObjectIds.ActivateSessionRequest_Encoding_DefaultBinary)
_CANCEL = ua.NodeId(ua.ObjectIds.CancelRequest_Encoding_DefaultBinary)
_WITHOUT_SESSION = frozenset(
    ua.NodeId(service)
    for service in (
        ua.ObjectIds.FindServersRequest_Encoding_DefaultBinary,
        ua.ObjectIds.GetEndpointsRequest_Encoding_DefaultBinary,
        ua.ObjectIds.RegisterServerRequest_Encoding_DefaultBinary,
        ua.ObjectIds.RegisterServer2Request_Encoding_DefaultBinary,
        ua.ObjectIds.CloseSecureChannelRequest_Encoding_DefaultBinary,
    )
)

_UNSUPPORTED = frozenset(
    ua.NodeId(service)
    for service in (
        ua.ObjectIds.QueryFirstRequest_Encoding_DefaultBinary,
        ua.ObjectIds.QueryNextRequest_Encoding_DefaultBinary,
        ua.ObjectIds.HistoryUpdateRequest_Encoding_DefaultBinary,
        ua.ObjectIds.FindServersOnNetworkRequest_Encoding_DefaultBinary,
    )
)

_MAX_LOGGED_FAULTS = 10  # of one connection; a broken client would fill the log


class RequestProcessor(UaProcessor):
    """The state of one connection: its channel, and the session that is used over it."""

    def __init__(
        self, internal_server: Any, transport: asyncio.Transport, agreed: NegotiatedLimits, writable: asyncio.Event
    ) -> None:
        self._session: ServerSession | None = None
        super().__init__(internal_server, transport, agreed)
        self._access: AccessPolicy = internal_server.access
        self._address = str(self.name[0]) if self.name else ""
        self._agreed: NegotiatedLimits = self._limits
        self._connection = ServerChannel(self._agreed, self._access, self._address)
        self._sender = ResponseSender(transport, self._connection, writable)
        self._turns: Turns = internal_server.turns
        self._opening = self._turns.account(f"channels of {self._address}")
        self._account = self._turns.account(self._address)
        """The account of what comes without a session."""
        self._faults = 0

    @property
    def session(self) -> ServerSession | None:
        """Return the session used over this connection."""
        return self._session

    @session.setter
    def session(self, session: ServerSession | None) -> None:
        # asyncua assigns it when it has made one; from then on the session knows its channel.
        self._session = session
        if session is not None:
            session.connection = self

    @property
    def channel(self) -> ServerChannel:
        """Return the secure channel of this connection."""
        return self._connection

    async def process(self, header: ua.Header, body: Buffer) -> bool:
        """Process a chunk and return whether the connection stays open; protocol errors close it."""
        try:
            self._check_length(header)
            if header.MessageType == ua.MessageType.SecureOpen:
                # New keys apply to the next message; waiting messages use the old ones.
                await self._sender.flush()
                async with self._turns.work(self._opening):
                    return bool(await super().process(header, body))
            continues: bool = await super().process(header, body)
            await self._sender.flush()
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
        return continues

    async def process_message(self, seqhdr: ua.SequenceHeader, body: Buffer) -> bool:
        """Answer a request, if necessary with a fault."""
        typeid = nodeid_from_binary(body)
        header = struct_from_binary(ua.RequestHeader, body)
        try:
            continues = await self._answer(typeid, header, seqhdr, body)
            if self._session is not None:
                self._session.record.count(typeid)
            return continues
        except (ServiceError, ua.UaStatusCodeError) as error:
            code = error.code
        except Exception as error:  # noqa: BLE001 - as in `process`, but only this request is lost
            code = ua.StatusCodes.BadDecodingError
            self._log_fault(typeid, error)
        self.iserver.counts.count_fault(code, is_session=typeid in {_CREATE, _ACTIVATE})
        if self._session is not None:
            self._session.record.count(typeid, code)
        self.fail(RequestKey(header.RequestHandle, seqhdr.RequestId), code)
        return True

    async def _answer(self, typeid: ua.NodeId, header: Any, seqhdr: Any, body: Buffer) -> bool:
        if len(body) > limits.REQUEST_SIZES.get(typeid.Identifier, limits.OPERATION_BYTES):
            raise ServiceError(ua.StatusCodes.BadRequestTooLarge)
        if typeid in _UNSUPPORTED:
            raise ServiceError(ua.StatusCodes.BadServiceUnsupported)
        session = self._session
        account = session.account if session is not None else self._account
        if typeid == _CREATE:
            return await self._turns.charge(account, self._create(typeid, header, seqhdr, body))
        if typeid == _ACTIVATE:
            params = struct_from_binary(ua.ActivateSessionParameters, body)
            return await self._turns.charge(account, self._activate(header, seqhdr, params))
        if typeid not in _WITHOUT_SESSION:
            self._check_session(header.AuthenticationToken)
        if typeid == _CANCEL:
            self.usable_session(typeid, body)
            self._cancel(header, seqhdr, struct_from_binary(ua.CancelParameters, body).RequestHandle)
            return True
        if (service := SERVICES.get(typeid)) is not None:
            await self._serve(service, typeid, header, seqhdr, body)
            return True
        if typeid == PUBLISH:
            session = self.usable_session(typeid, body)
            await self._turns.charge(account, self._publish(session, header, seqhdr, body))
            return True
        if typeid == CALL:
            await self._call(typeid, header, seqhdr, body)
            return True
        return bool(await self._turns.charge(account, self._process_message(typeid, header, seqhdr, body)))

    def _cancel(self, header: Any, seqhdr: Any, handle: int) -> None:
        """Cancel the Publish requests of this handle; no other request waits."""
        response = ua.CancelResponse()
        if self._session is not None:
            response.Parameters.CancelCount = self._session.publish_requests.cancel(handle)
        self.send_response(header.RequestHandle, seqhdr, response)

    async def _publish(self, session: ServerSession, header: Any, seqhdr: Any, body: Buffer) -> None:
        """Acknowledge notifications, and keep the request until there are more."""
        params = struct_from_binary(ua.PublishParameters, body)
        results = session.acknowledge(params.SubscriptionAcknowledgements)
        hint = header.TimeoutHint
        expires_at = asyncio.get_running_loop().time() + hint / 1000 if hint else math.inf
        request = PublishRequest(RequestKey(header.RequestHandle, seqhdr.RequestId), self, results, expires_at)
        await session.publish_requests.add(request, len(session.owned_subscriptions()))

    async def _serve(self, service: Service, typeid: ua.NodeId, header: Any, seqhdr: Any, body: Buffer) -> None:
        """Decode, perform and answer a request of many operations as work in turns."""
        session = self.usable_session(typeid, body)
        params = await self._decode(session, partial(struct_from_binary, service.parameters), body)
        async with self._turns.work(session.account) as turn:
            session.turn = turn
            response = await service.respond(session, params)
            await turn.step()
            self.send_response(header.RequestHandle, seqhdr, response)

    async def _call(self, typeid: ua.NodeId, header: Any, seqhdr: Any, body: Buffer) -> None:
        """Decode, perform and answer method calls: they wait for the store, and have no turn meanwhile."""
        session = self.usable_session(typeid, body)
        calls = await self._decode(session, read_calls, body)
        results = await self._turns.charge(session.account, session.call(calls))
        handle, wanted = header.RequestHandle, header.ReturnDiagnostics
        async with self._turns.work(session.account):
            try:
                self.send_response(handle, seqhdr, CallResults(results, wanted))
            except ServiceError:
                # Diagnostics must not make the answer too large.
                if not wanted:
                    raise
                self.send_response(handle, seqhdr, CallResults(results))

    def usable_session(self, typeid: ua.NodeId, body: Buffer) -> ServerSession:
        """Return the session for a request that needs one. Raises ServiceError when it may not be used."""
        session = self._session
        if session is None or not session.is_activated():
            raise ServiceError(ua.StatusCodes.BadSessionNotActivated)
        permissions = self._connection.security_policy.permissions
        if permissions is not None and permissions.check_validity(session.user, typeid, body) is False:
            raise ServiceError(ua.StatusCodes.BadUserAccessDenied)
        self.session_last_activity = asyncio.get_running_loop().time()
        session.touch()
        return session

    async def _decode(self, session: ServerSession, decode: Callable[[Buffer], Any], body: Buffer) -> Any:
        """Decode a body; a long one in the decoder's thread, so that it does not block the event loop."""
        if len(body) <= limits.DECODED_AT_ONCE:
            return decode(body)
        return await self._turns.decoder.run(session.account, partial(decode, body))

    def send_response(
        self, requesthandle: int, seqhdr: Any, response: Any, msgtype: ua.MessageType = ua.MessageType.SecureMessage
    ) -> None:
        """Send an answer.

        Raises ServiceError with BadResponseTooLarge above the limit of the client. asyncua would send it, and the
        client would end the connection.
        """
        key = RequestKey(requesthandle, seqhdr.RequestId)
        if msgtype == ua.MessageType.SecureMessage:
            self.respond(key, response)
            return
        response.ResponseHeader.RequestHandle = key.handle
        body = struct_to_binary(response)
        self._transport.write(self._connection.message_to_binary(body, message_type=msgtype, request_id=key.number))

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
        return self._agreed.largest_answer(self._connection.security_policy.symmetric_cryptography)

    @property
    def is_open(self) -> bool:
        """Whether the client is connected."""
        return not self._transport.is_closing()

    async def flush(self) -> None:
        """Send the waiting answers."""
        await self._sender.flush()

    async def close(self) -> None:
        """Close the connection; a session that has moved to another one stays open."""
        if self._session is not None and self._session.connection is not self:
            self._session = None
        elif self._session is not None and not self._session.is_closed():
            self._session.publish_requests.clear()
            if not self._session.owned_subscriptions():
                self.iserver.counts.aborts += 1
        await super().close()

    def _should_close_session_on_transport_loss(self) -> bool:
        session = self._session
        return session is not None and not (session.is_activated() and session.owned_subscriptions())

    def _check_length(self, header: ua.Header) -> None:
        session = self._session
        is_known = session is not None and session.is_activated() and session.connection is self
        if header.ChunkType == ua.ChunkType.Intermediate and not is_known:
            # Without a session no request needs more than one chunk.
            raise ua.UaStatusCodeError(ua.StatusCodes.BadTcpMessageTooLarge)

    def _check_session(self, token: ua.NodeId) -> None:
        session = self._session
        if session is None or session.auth_token != token or session.is_closed():
            raise ServiceError(ua.StatusCodes.BadSessionIdInvalid)
        if session.connection is not self:
            raise ServiceError(ua.StatusCodes.BadSecureChannelIdInvalid)

    async def _create(self, typeid: ua.NodeId, header: Any, seqhdr: Any, body: Buffer) -> bool:
        if not (self.channel.is_encrypted or self._access.allows_unencrypted):
            self._access.record_refusal("OPC UA session refused", self._address, reason="the channel is not encrypted")
            raise ServiceError(ua.StatusCodes.BadSecurityPolicyRejected)
        if self._session is not None and not self._session.is_closed():
            # asyncua has one session per connection, and would drop the previous one without closing it.
            raise ServiceError(ua.StatusCodes.BadTooManySessions)
        self._session = None
        await self.iserver.make_room_for_session()
        try:
            continues: bool = await self._process_message(typeid, header, seqhdr, body)
        except BaseException:
            # Otherwise the unknown session would remain until its timeout.
            if self._session is not None:
                await self._session.close_session()
                self._session = None
            raise
        return continues

    async def _activate(self, header: Any, seqhdr: Any, params: ua.ActivateSessionParameters) -> bool:
        session: ServerSession | None = self._session
        if session is None or session.auth_token != header.AuthenticationToken:
            session = self.iserver.lookup_external_session(header.AuthenticationToken)
        has_moved = session is not self._session
        if session is None or not session.is_usable_on(self.channel, has_moved=has_moved):
            raise ServiceError(ua.StatusCodes.BadSessionIdInvalid)
        self._check_signature(session, params.ClientSignature)
        caller = await self._identify(session, params, self.channel.peer)
        if has_moved:
            if session.caller is None or session.caller.name != caller.name:
                raise ServiceError(ua.StatusCodes.BadIdentityTokenRejected)
            await self._take_over(session)
        response = ua.ActivateSessionResponse()
        response.Parameters = session.activate(caller, params.LocaleIds or ())
        self._access.record_login(caller)
        self.send_response(header.RequestHandle, seqhdr, response)
        return True

    def _check_signature(self, session: ServerSession, signature: ua.SignatureData) -> None:
        """Verify that the client holds the key of its certificate (OPC 10000-4, 5.6.3)."""
        policy = self._connection.security_policy
        if policy.AsymmetricSignatureURI and signature.Algorithm != policy.AsymmetricSignatureURI:
            raise ServiceError(ua.StatusCodes.BadApplicationSignatureInvalid)
        policy.asymmetric_cryptography.use_prev_key = False
        if not access.has_signed(policy, policy.asymmetric_cryptography, session.nonce, signature.Signature):
            raise ServiceError(ua.StatusCodes.BadApplicationSignatureInvalid)

    async def _identify(self, session: ServerSession, params: ua.ActivateSessionParameters, peer: Peer) -> Caller:
        caller: Caller | None
        match params.UserIdentityToken:
            case ua.X509IdentityToken() as token if self._access.allows_certificates:
                policy = self._connection.security_policy
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
                policy = self._connection.security_policy
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

    async def _take_over(self, session: ServerSession) -> None:
        """Move a session of the same client from a lost connection to this one."""
        if self._session is not None:
            await self._session.close_session()
        self.session = session
        self._closing = False
        # asyncua cancels the task by this attribute when the connection ends, and waits for it.
        self._session_watchdog_task = asyncio.create_task(self._session_watchdog_loop(), name="opcua session watchdog")
        session.publish_requests.clear()

    def _log_fault(self, typeid: ua.NodeId, error: Exception) -> None:
        self._faults += 1
        if self._faults <= _MAX_LOGGED_FAULTS:
            logger.warning(
                "OPC UA request not answered",
                address=self._address,
                request=typeid.Identifier,
                reason=f"{type(error).__name__}: {error}"[:200],
            )


def _code(error: Exception, otherwise: int) -> int:
    return int(error.code) if isinstance(error, ServiceError | ua.UaStatusCodeError) else otherwise
