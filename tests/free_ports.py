"""Free TCP ports for servers that a test starts."""

import secrets
import socket

_BELOW_THE_EPHEMERAL = range(15_000, 32_000)
"""Linux gives 32768 and above to outgoing connections: such a port may be taken before the server listens."""


def free_port() -> int:
    """Return a TCP port that is free on the loopback address."""
    while True:
        port = secrets.choice(_BELOW_THE_EPHEMERAL)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
