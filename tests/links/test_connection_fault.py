"""The kind of reason why a peer cannot be reached, as real sockets, TLS and every client of ours report it."""

import errno
import ssl
from contextlib import AbstractAsyncContextManager

import pytest

from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.links.connection_fault import ConnectionFailed, fault_of
from edge.links.mqtt_broker import Broker
from edge.links.mqtt_connection import connect
from edge.links.opcua import open_client
from edge.model.equipment_connection import ConnectionFault
from tests.links.peers import NO_HOST, NO_PORT, Answer, Peer, answering, close, fault, keep_silent, speak_http


def opcua(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return open_client(f"opc.tcp://{host}:{port}", request_timeout=0.5)


def mqtt(host: str, port: int) -> AbstractAsyncContextManager[object]:
    return connect(Broker(host=host, port=port, client_id="probe", session_expiry=0))


@pytest.mark.parametrize("peer", [opcua, mqtt])
async def test_closed_port_is_refused(peer: Peer) -> None:
    connection_fault, message = await fault(peer, "127.0.0.1", NO_PORT)
    assert connection_fault is ConnectionFault.REFUSED
    assert f"127.0.0.1:{NO_PORT}" in message


@pytest.mark.parametrize("peer", [opcua, mqtt])
async def test_closed_port_of_a_host_with_several_addresses_is_refused(peer: Peer) -> None:
    assert (await fault(peer, "localhost", NO_PORT))[0] is ConnectionFault.REFUSED


@pytest.mark.parametrize("peer", [opcua, mqtt])
async def test_name_that_does_not_resolve_is_an_unknown_host(peer: Peer) -> None:
    assert (await fault(peer, NO_HOST, NO_PORT))[0] is ConnectionFault.NO_HOST


@pytest.mark.parametrize(
    ("peer", "answer", "expected"),
    [
        (opcua, speak_http, ConnectionFault.PROTOCOL),
        (opcua, keep_silent, ConnectionFault.SILENT),
        (opcua, close, ConnectionFault.CLOSED),
        (mqtt, close, ConnectionFault.CLOSED),
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
