"""A certificate of a test's own, and a server that ends TLS in front of another one, as stunnel does."""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A self-signed certificate for 127.0.0.1 with its key."""

    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """Return the context of a server with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Return the context of a client that trusts this certificate only."""
        return ssl.create_default_context(cafile=str(self.certificate))


def write_certificate(directory: Path) -> TlsFiles:
    """Write a certificate that is valid for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test store")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = TlsFiles(directory / "store.crt", directory / "store.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files.key.write_bytes(key.private_bytes(*plain))
    return files


@contextlib.asynccontextmanager
async def tls_server(files: TlsFiles, serve: Serve) -> AsyncIterator[int]:
    """Serve connections over TLS; yield the port."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=files.server_context()) as server:
        yield server.sockets[0].getsockname()[1]
