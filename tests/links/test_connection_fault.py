"""The kind of reason why a peer cannot be reached, as real sockets, TLS and every client of ours report it."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from edge.features.lamps.lines import open_lines
from edge.features.openprotocol.protocol.frame import encode_frame
from edge.features.openprotocol.protocol.mids import Mid, new_message
from edge.features.openprotocol.protocol.session import SessionTimes, open_openprotocol
from edge.features.readers.line_stream import open_serial_lines, open_tcp_lines
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.links.connection_fault import ConnectionFailed, fault_of
from edge.links.mqtt_broker import Broker
from edge.links.mqtt_connection import connect
from edge.links.opcua import open_client
from edge.model.equipment_connection import ConnectionFault

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Peer = Callable[[str, int], AbstractAsyncContextManager[object]]
NO_PORT = 9
"""The port of the discard service, on which nothing listens here."""


def openprotocol(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return open_openprotocol(host, port, times=SessionTimes(connect=2, answer=0.2))


def opcua(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return open_client(f"opc.tcp://{host}:{port}", request_timeout=0.5)


def mqtt(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return connect(Broker(host=host, port=port, client_id="probe", session_expiry=0))


def lines(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return open_tcp_lines(host, port, framed=False)


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[int]:
    """Serve on a free port; yield it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(100)
            await answer(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def speak_http(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def keep_silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    while await reader.read(100):
        pass


async def close(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Return at once: the connection is closed."""


async def decline_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Decline MID 0001 with error 96: another client is connected."""
    writer.write(encode_frame(new_message(Mid.DECLINED, mid=1, error=96)))
    await reader.read(100)


async def decline_client_and_close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Decline MID 0001 with error 96, and close the connection at once."""
    writer.write(encode_frame(new_message(Mid.DECLINED, mid=1, error=96)))


async def fault(peer: Peer, host: str, port: int) -> tuple[ConnectionFault, str]:
    """Connect, and return the kind of the failure with its message."""
    with pytest.raises((Unavailable, Refused)) as raised:
        async with peer(host, port):
            pytest.fail("the peer accepted the connection")
    return fault_of(raised.value), raised.value.message


@pytest.mark.parametrize("peer", [openprotocol, opcua, mqtt, lines])
async def test_closed_port_is_refused(peer: Peer) -> None:
    connection_fault, message = await fault(peer, "127.0.0.1", NO_PORT)
    assert connection_fault is ConnectionFault.REFUSED
    assert f"127.0.0.1:{NO_PORT}" in message


@pytest.mark.parametrize("peer", [openprotocol, opcua, mqtt, lines])
async def test_closed_port_of_a_host_with_several_addresses_is_refused(peer: Peer) -> None:
    assert (await fault(peer, "localhost", NO_PORT))[0] is ConnectionFault.REFUSED


@pytest.mark.parametrize("peer", [openprotocol, opcua, mqtt, lines])
async def test_name_that_does_not_resolve_is_an_unknown_host(peer: Peer) -> None:
    assert (await fault(peer, "no-such-host.invalid", NO_PORT))[0] is ConnectionFault.NO_HOST


@pytest.mark.parametrize(
    ("peer", "answer", "expected"),
    [
        (openprotocol, speak_http, ConnectionFault.PROTOCOL),
        (opcua, speak_http, ConnectionFault.PROTOCOL),
        (openprotocol, keep_silent, ConnectionFault.SILENT),
        (opcua, keep_silent, ConnectionFault.SILENT),
        (openprotocol, close, ConnectionFault.CLOSED),
        (opcua, close, ConnectionFault.CLOSED),
        (mqtt, close, ConnectionFault.CLOSED),
        (openprotocol, decline_client, ConnectionFault.DECLINED),
        (openprotocol, decline_client_and_close, ConnectionFault.DECLINED),
    ],
)
async def test_answer_of_a_peer_has_its_kind(peer: Peer, answer: Answer, expected: ConnectionFault) -> None:
    async with answering(answer) as port:
        assert (await fault(peer, "127.0.0.1", port))[0] is expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("CERTIFICATE_VERIFY_FAILED", ConnectionFault.CERTIFICATE),
        ("TLSV1_ALERT_UNKNOWN_CA", ConnectionFault.CERTIFICATE),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", ConnectionFault.CERTIFICATE),
        ("WRONG_VERSION_NUMBER", ConnectionFault.PROTOCOL),
    ],
)
def test_alert_of_tls_has_its_kind(reason: str, expected: ConnectionFault) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    assert fault_of(error) is expected


async def test_missing_serial_port_is_unreachable() -> None:
    with pytest.raises(Unavailable) as raised:
        async with open_serial_lines("/dev/no-such-port", 9600, framed=False):
            pytest.fail("there is such a port")
    assert fault_of(raised.value) is ConnectionFault.UNREACHABLE


def test_missing_gpio_chip_is_unreachable() -> None:
    with pytest.raises(Unavailable) as raised, open_lines("no such chip", {"red": 1}, {}):
        pytest.fail("there is such a chip")
    assert fault_of(raised.value) is ConnectionFault.UNREACHABLE


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EHOSTUNREACH, "no route"), ConnectionFault.UNREACHABLE),
        (SettingsError(["key.pem: no key"]), ConnectionFault.SETTINGS),
        (Refused("too_large", "max_message_bytes is 65536"), ConnectionFault.SETTINGS),
        (Refused("unknown_node", "no JoiningSystem"), ConnectionFault.WRONG_DEVICE),
        (ConnectionFailed(ConnectionFault.CERTIFICATE, "not trusted"), ConnectionFault.CERTIFICATE),
        (ZeroDivisionError(), ConnectionFault.OTHER),
        (Unavailable("for a reason without a kind"), ConnectionFault.OTHER),
    ],
)
def test_error_has_its_kind(error: Exception, expected: ConnectionFault) -> None:
    assert fault_of(error) is expected
