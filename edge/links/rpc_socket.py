"""Where MessagePack-RPC is spoken: on TCP, on TLS with certificates on both ends, or on a Unix socket."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from edge.config import RpcSettings
from edge.foundation.errors import SettingsError, Unavailable

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]

READ_BYTES = 64 * 1024
_HANDSHAKE_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
_BACKLOG = 16
_OWNER_AND_GROUP = 0o117
"""The umask under which a socket is made with mode 0660."""


@asynccontextmanager
async def listen(settings: RpcSettings, accept: Accept) -> AsyncIterator[str]:
    """Call `accept` for each client that connects; yield the URL.

    Raises Unavailable when the address is taken, SettingsError when a certificate cannot be loaded.
    """
    parts = urlsplit(settings.listen)
    try:
        if parts.scheme == "unix":
            path = Path(parts.path)
            server = await asyncio.start_unix_server(accept, sock=_bind_unix(path), limit=READ_BYTES, backlog=_BACKLOG)
        else:
            tls = _server_context(settings) if parts.scheme == "tls" else None
            server = await asyncio.start_server(
                accept,
                parts.hostname,
                parts.port,
                ssl=tls,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls else None,
                limit=READ_BYTES,
                backlog=_BACKLOG,
            )
            path = None
    except OSError as error:
        message = f"cannot listen for MessagePack-RPC at {settings.listen}: {error.strerror or error}"
        raise Unavailable(message, "Is another program there already, and is the address ours?") from None
    try:
        yield _url(parts.scheme, server)
    finally:
        server.close()
        if path is not None:
            path.unlink(missing_ok=True)


async def connect(
    url: str, *, ca_file: str = "", cert_file: str = "", key_file: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to where a server listens; raises Unavailable with the reason.

    With `tls:`, the server is asked for a certificate that `ca_file` vouches for, and shown ours.
    """
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            if parts.scheme == "unix":
                return await asyncio.open_unix_connection(parts.path, limit=READ_BYTES)
            tls = None
            if parts.scheme == "tls":
                tls = ssl.create_default_context(cafile=ca_file or None)
                tls.load_cert_chain(cert_file, key_file)
            return await asyncio.open_connection(parts.hostname, parts.port, ssl=tls, limit=READ_BYTES)
    except TimeoutError:
        raise Unavailable(f"no connection to {url} in time", "Is the gateway running?") from None
    except OSError as error:
        message = f"no connection to {url}: {error.strerror or error}"
        raise Unavailable(message, "Is the gateway running, and is [rpc] listen its address?") from None


def _server_context(settings: RpcSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=settings.ca_file)
        context.load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as error:
        files = f"{settings.ca_file}, {settings.cert_file}, {settings.key_file}"
        problem = f"rpc: certificate or key cannot be loaded ({files}): {error}"
        advice = "Check the paths, that the service may read them, and that they are PEM."
        raise SettingsError([problem], advice) from None
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _bind_unix(path: Path) -> socket.socket:
    """Bind a socket that only its owner and group may open, in the place of a stale one."""
    if path.is_socket():
        if _is_served(path):
            raise Unavailable(f"another program serves {path} already", "Stop it, or choose another socket.")
        path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(_OWNER_AND_GROUP)
    try:
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(before)
    return bound


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        # The system accepts the connection for any process that listens.
        caller.settimeout(1.0)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True


def _url(scheme: str, server: asyncio.Server) -> str:
    name = server.sockets[0].getsockname()
    if scheme == "unix":
        return f"unix://{name}"
    host, port = name[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
