"""Asks a server of this machine over HTTP, for `edge doctor`: whether it answers, what, and with which certificate."""

import asyncio
import ssl
from typing import Final

from msgspec import Struct

from edge.config.hosts import is_any_address
from edge.foundation.text import Text
from edge.model.finding import HealthFinding, failing, warning

_ANSWER_S: Final = 5.0
_LARGEST: Final = 1 << 20


class ProbeAnswer(Struct, frozen=True):
    """The status of an answer, its body, and the certificate of the server in DER; empty without TLS."""

    status: int
    body: bytes
    certificate: bytes = b""


async def probe(host: str, port: int, path: str, *, is_tls: bool = False) -> ProbeAnswer:
    """Return the answer to a GET; the status is 0 where it is not HTTP.

    Raises OSError, ssl.SSLError and TimeoutError. The certificate is not verified: its reader judges it.
    """
    context = None
    if is_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    own = "127.0.0.1" if is_any_address(host) else host
    async with asyncio.timeout(_ANSWER_S):
        reader, writer = await asyncio.open_connection(own, port, ssl=context)
        try:
            layer = writer.get_extra_info("ssl_object")
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {own}:{port}\r\nConnection: close\r\n\r\n".encode())
            head, _, body = (await reader.read(_LARGEST)).partition(b"\r\n\r\n")
            body += await reader.read(_LARGEST)
            return ProbeAnswer(_status(head), body, layer.getpeercert(binary_form=True) if layer else b"")
        finally:
            writer.transport.abort()


def _status(head: bytes) -> int:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/1.") and words[1].isdigit() else 0


def no_answer(subject: str, address: str, port: int, error: Exception) -> HealthFinding:
    """Return the finding about a server that does not answer."""
    if isinstance(error, ConnectionRefusedError):
        return warning(
            subject,
            Text.of("connection refused at {address}: no gateway serves there", address=address),
            "A gateway that runs opens it as soon as it has its store.",
        )
    return failing(
        subject,
        Text.of("no answer at {address}: {reason}", address=address, reason=str(error) or Text.of("too slow")),
        _look(port),
    )


def other_program(subject: str, address: str, port: int) -> HealthFinding:
    """Return the finding about another program at the address."""
    return failing(subject, Text.of("another program listens at {address}", address=address), _look(port))


def _look(port: int) -> Text:
    return Text.of("Check which program listens (`ss -ltnp sport = :{port}`).", port=port)
