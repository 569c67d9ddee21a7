"""Receives the messages of a connection, and decodes Call requests itself.

asyncua decodes arguments with classes that it keeps for the whole process under their namespace *index*: with a client
to a camera in the same process, it would decode our orders by the camera's types
(github.com/FreeOpcUa/opcua-asyncio/issues/781, 1678, 1700, 1800). Our own codec has no shared state.
"""

import asyncio
from typing import Any, TypeVar

import asyncua
from asyncua import ua
from asyncua.common.utils import Buffer, ServiceError
from asyncua.server.binary_server_asyncio import BinaryServer

from edge.opcua.binary import BoundedBuffer, DecodeError, read_length, read_node_id, read_variant
from edge.opcua.call_diagnostics import ExplainedResponse
from edge.opcua.client_transport import patch_decoder_limits
from edge.opcua.limits import METHOD_CALLS
from edge.opcua.listener_stop import stop_listener
from edge.opcua.request_processor import RequestProcessor
from edge.opcua.server_framing import ChunkProtocol

_CALL = ua.NodeId(ua.ObjectIds.CallRequest_Encoding_DefaultBinary)


class CallProcessor(RequestProcessor):
    """Answers the requests of one connection."""

    async def _process_message(self, typeid: ua.NodeId, requesthdr: Any, seqhdr: Any, body: Buffer) -> bool:
        if typeid != _CALL:
            goes_on: bool = await super()._process_message(typeid, requesthdr, seqhdr, body)
            return goes_on
        session = self.usable_session(typeid, body)
        calls = await self._decode(read_calls, body)
        results = await session.call(calls)
        handle, wanted = requesthdr.RequestHandle, requesthdr.ReturnDiagnostics
        async with self._turns.work(session.budget):
            try:
                self.send_response(handle, seqhdr, ExplainedResponse(results, wanted))
            except ServiceError:
                # Diagnostics must not make the answer too large.
                if not wanted:
                    raise
                self.send_response(handle, seqhdr, ExplainedResponse(results, 0))
        return True


class ClientConnection(ChunkProtocol):
    """One connection of a client."""

    processor: RequestProcessor | None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Process the messages with our processor, unless the connection is refused."""
        super().connection_made(transport)
        if self.processor is not None:
            self.processor = CallProcessor(self.iserver, transport, self.limits, self._writable)
            self.processor.set_policies(self.policies)


_Connection = TypeVar("_Connection", bound=ClientConnection)


class TcpListener(BinaryServer):
    """Accepts connections."""

    def connection(self, kind: type[_Connection]) -> _Connection:
        """Return a new connection of this kind, with the policies and limits of the listener."""
        return kind(self.iserver, self._policies, self.clients, self.closing_tasks, self.limits)

    async def stop(self) -> None:
        """Stop listening, and end every connection."""
        await stop_listener(self)

    def _make_protocol(self) -> ClientConnection:
        return self.connection(ClientConnection)


class ProtocolServer(asyncua.Server):
    """asyncua's server with our connections."""

    async def start(self) -> None:
        """Listen. Raises OSError when the address cannot be used."""
        patch_decoder_limits()
        await self._setup_server_nodes()
        await self.iserver.start()
        host, port = self._get_bind_socket_info()
        self.bserver = TcpListener(self.iserver, host, port, self.limits)
        self.bserver.set_policies(self._policies)
        try:
            await self.bserver.start()
        except OSError:
            await self.iserver.stop()
            raise


def read_calls(body: Buffer) -> list[ua.CallMethodRequest]:
    """Read the body of a Call request; a structure among the arguments stays as the bytes it came in.

    Raises ServiceError when it is malformed or calls too many methods at once.
    """
    try:
        data = BoundedBuffer(body.read(len(body)))
        count = read_length(data)
        if count > METHOD_CALLS:
            raise ServiceError(ua.StatusCodes.BadTooManyOperations)
        return [_read_call(data) for _ in range(count)]
    except DecodeError as error:
        raise ServiceError(ua.StatusCodes.BadDecodingError) from error


def _read_call(body: BoundedBuffer) -> ua.CallMethodRequest:
    object_id, method_id = read_node_id(body), read_node_id(body)
    arguments = [read_variant(body) for _ in range(read_length(body))]
    return ua.CallMethodRequest(ObjectId=object_id, MethodId=method_id, InputArguments=arguments)
