"""The address of the OPC UA server in the demo."""

import socket

from msgspec import Struct
from msgspec.structs import replace

from edge.features.simulator.broker import free_port
from edge.foundation.errors import Unavailable

DEFAULT_PORT = 4840
"""The IANA port of OPC UA, the default of clients."""

_LOOPBACK = "127.0.0.1"
_ALL_NETWORKS = "0.0.0.0"  # noqa: S104 - used only on request of the user
_ELSEWHERE = ("192.0.2.1", 9)
"""A documentation address without a machine (RFC 5737); connecting a UDP socket sends no packet."""


class OpcuaAddress(Struct, frozen=True):
    """The IPv4 address and port at which the OPC UA server listens; port 0 selects a free port."""

    host: str = _LOOPBACK
    port: int = 0

    def with_free_port(self) -> "OpcuaAddress":
        """Return the address with a port that is free now; raises Unavailable when the requested port is in use."""
        if not self.port:
            return replace(self, port=free_port())
        try:
            with socket.create_server((self.host, self.port)):
                return self
        except OSError as error:
            message = f"the OPC UA server cannot listen on {self.host}:{self.port}: {error.strerror}"
            raise Unavailable(message, "Choose another port or address: --port, --listen.") from error

    @property
    def endpoint(self) -> str:
        """Return the value of the setting `[opcua] endpoint`."""
        return f"opc.tcp://{self.host}:{self.port}"

    @property
    def local(self) -> str:
        """Return the address for a client on this machine."""
        return f"opc.tcp://{_LOOPBACK if self.host == _ALL_NETWORKS else self.host}:{self.port}"

    @property
    def remote(self) -> str:
        """Return the address for a client on another machine."""
        return f"opc.tcp://{_own_address() if self.host == _ALL_NETWORKS else self.host}:{self.port}"


def _own_address() -> str:
    """Return the address of this machine on its default network, or its host name."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()
