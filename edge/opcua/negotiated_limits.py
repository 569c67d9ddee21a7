"""The message limits that both ends of a connection negotiate (OPC 10000-6, 7.1.2.3 and 7.1.2.4)."""

from dataclasses import dataclass  # noqa: TID251 - it extends a dataclass of asyncua
from typing import Any

from asyncua import ua
from asyncua.common.connection import MessageChunk, TransportLimits

from edge.opcua.limits import CHUNK_BYTES, CHUNKS, MESSAGE_BYTES


@dataclass
class NegotiatedLimits(TransportLimits):
    """The limits of one connection: ours at first, after the Hello also those of the client.

    asyncua confuses the limits of the two directions, returns the buffer sizes in the wrong order, and sends answers of
    any size.
    """

    max_recv_buffer: int = CHUNK_BYTES
    max_send_buffer: int = CHUNK_BYTES
    max_chunk_count: int = CHUNKS
    max_message_size: int = MESSAGE_BYTES
    answer_chunks: int = CHUNKS
    answer_bytes: int = MESSAGE_BYTES

    def create_acknowledge_and_set_limits(self, msg: ua.Hello) -> ua.Acknowledge:
        """Set the limits both sides accept.

        Our own limits apply to answers too: asyncua and node-opcua receive no more than the limit of the server.
        """
        self.max_recv_buffer = min(msg.SendBufferSize, self.max_recv_buffer)
        self.max_send_buffer = min(msg.ReceiveBufferSize, self.max_send_buffer)
        self.answer_chunks = min(msg.MaxChunkCount or CHUNKS, CHUNKS)
        self.answer_bytes = min(msg.MaxMessageSize or MESSAGE_BYTES, MESSAGE_BYTES)
        return ua.Acknowledge(
            ReceiveBufferSize=self.max_recv_buffer,
            SendBufferSize=self.max_send_buffer,
            MaxMessageSize=self.max_message_size,
            MaxChunkCount=self.max_chunk_count,
        )

    def largest_answer(self, cryptography: Any) -> int:
        """Return the largest message that the client accepts with this encryption, in bytes.

        In the specification the limit applies to the message alone; node-opcua also counts the chunk headers.
        """
        in_chunk: int = MessageChunk.max_body_size(cryptography, self.max_send_buffer)
        around = self.max_send_buffer - in_chunk
        chunks, rest = divmod(self.answer_bytes, self.max_send_buffer)
        return min(chunks * in_chunk + max(rest - around, 0), self.answer_chunks * in_chunk)
