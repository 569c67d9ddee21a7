"""The URL under which other hosts reach a server that listens on an address."""

import socket
from typing import Final
from urllib.parse import urlsplit

_UNSPECIFIED: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound


def reachable_url(endpoint: str) -> str:
    """Return the URL with the name of this host where the server listens on all interfaces."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    host = socket.gethostname() if host in _UNSPECIFIED else f"[{host}]" if ":" in host else host
    return f"opc.tcp://{host}:{parts.port}"
