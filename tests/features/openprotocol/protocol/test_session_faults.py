"""The kind of reason why a controller cannot be reached, and how it declines a client."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from edge.features.openprotocol.protocol.frame import encode_frame
from edge.features.openprotocol.protocol.mids import Mid, new_message
from edge.features.openprotocol.protocol.session import SessionTimes, open_openprotocol
from edge.model.equipment_connection import ConnectionFault
from tests.links.peers import NO_HOST, NO_PORT, Answer, answering, close, fault, keep_silent, speak_http


def openprotocol(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return open_openprotocol(host, port, times=SessionTimes(connect=2, answer=0.2))


async def decline_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Decline MID 0001 with error 96: another client is connected."""
    writer.write(encode_frame(new_message(Mid.DECLINED, mid=1, error=96)))
    await reader.read(100)


async def decline_client_and_close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Decline MID 0001 with error 96, and close the connection at once."""
    writer.write(encode_frame(new_message(Mid.DECLINED, mid=1, error=96)))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ConnectionFault.REFUSED),
        ("localhost", ConnectionFault.REFUSED),
        (NO_HOST, ConnectionFault.NO_HOST),
    ],
)
async def test_host_that_cannot_be_reached_has_its_kind(host: str, expected: ConnectionFault) -> None:
    connection_fault, message = await fault(openprotocol, host, NO_PORT)
    assert connection_fault is expected
    assert host in message


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (speak_http, ConnectionFault.PROTOCOL),
        (keep_silent, ConnectionFault.SILENT),
        (close, ConnectionFault.CLOSED),
        (decline_client, ConnectionFault.DECLINED),
        (decline_client_and_close, ConnectionFault.DECLINED),
    ],
)
async def test_answer_of_a_controller_has_its_kind(answer: Answer, expected: ConnectionFault) -> None:
    async with answering(answer) as port:
        assert (await fault(openprotocol, "127.0.0.1", port))[0] is expected
