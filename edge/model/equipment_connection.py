"""Whether a piece of equipment is connected, and why not: one value for every place that shows it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from edge.foundation.text import ENGLISH, Text, join_texts, stated_in
from edge.model.instant import Instant, rfc3339


class ConnectionFault(StrEnum):
    """The kind of reason why equipment is not connected; the set is bounded, as it labels a metric."""

    REFUSED = "refused"
    """No program listens at its address."""
    NO_HOST = "no_host"
    """The name of its host cannot be resolved."""
    UNREACHABLE = "unreachable"
    """The network has no route to it, or its port is missing on this computer."""
    SILENT = "silent"
    """It does not answer in time."""
    CLOSED = "closed"
    """It has closed the connection."""
    DECLINED = "declined"
    """It declines this client, such as with error 96 of Open Protocol, or a wrong password."""
    CERTIFICATE = "certificate"
    """One side does not accept the certificate or the security policy of the other."""
    PROTOCOL = "protocol"
    """Its messages are not those of the protocol."""
    WRONG_DEVICE = "wrong_device"
    """It speaks the protocol, and is not the device that the settings name."""
    BROKER = "broker"
    """The broker between gateway and equipment is not connected."""
    OFFLINE = "offline"
    """It has published that it is offline, or its broker has done so for it."""
    SETTINGS = "settings"
    """Its settings cannot be used, such as a file that they name, or a size limit."""
    OTHER = "other"
    """Any other reason; the text has it."""


class ConnectionState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The connection of a piece of equipment: connected or not, `since` an instant in milliseconds since the epoch.

    `connected` is None while the equipment has not reported its presence. While it is not connected, `fault` is a value
    of `ConnectionFault`, `reason` a text for people, and the next try follows within `retry_s` seconds. `holder` is the
    other gateway that connects to it, where one gateway does so for all.
    """

    connected: bool | None = None
    since: int | None = None
    fault: str = ""
    reason: str | Text = ""
    retry_s: float | None = None
    holder: str = ""

    @property
    def text(self) -> str | Text:
        """Return why it is not connected as one line; empty in any other state."""
        if self.connected is not False:
            return ""
        reasons = (reason for reason in (fault_text(self.fault), self.reason) if reason)
        return join_texts(": ", (NOT_CONNECTED, *reasons))


NOT_CONNECTED: Final = Text.of("not connected")

_FAULTS: Final[Mapping[str, Text]] = MappingProxyType(
    {
        ConnectionFault.REFUSED: Text.of("refused"),
        ConnectionFault.NO_HOST: Text.of("no host"),
        ConnectionFault.UNREACHABLE: Text.of("unreachable"),
        ConnectionFault.SILENT: Text.of("silent"),
        ConnectionFault.CLOSED: Text.of("closed"),
        ConnectionFault.DECLINED: Text.of("declined"),
        ConnectionFault.CERTIFICATE: Text.of("certificate"),
        ConnectionFault.PROTOCOL: Text.of("protocol"),
        ConnectionFault.WRONG_DEVICE: Text.of("wrong device"),
        ConnectionFault.BROKER: Text.of("broker"),
        ConnectionFault.OFFLINE: Text.of("offline"),
        ConnectionFault.SETTINGS: Text.of("settings"),
        ConnectionFault.OTHER: Text.of("other"),
    }
)


def fault_text(fault: str) -> str | Text:
    """Return the kind of a fault for people; empty without one."""
    return _FAULTS.get(fault, fault)


NOT_CONNECTED_YET = ConnectionState(connected=False)
"""The state before the first try has ended."""


class PublicConnection(Struct, frozen=True, kw_only=True):
    """A ConnectionState as `--json` and the HTTP API state it; the next try follows within `retry_seconds`."""

    connected: bool | None
    since: Instant | None
    fault: str
    reason: str
    retry_seconds: float | None
    holder: str


def public_connection(state: ConnectionState, language: str = ENGLISH) -> PublicConnection:
    """Return the public form of a connection."""
    return PublicConnection(
        connected=state.connected,
        since=rfc3339(state.since),
        fault=state.fault,
        reason=stated_in(state.reason, language),
        retry_seconds=state.retry_s,
        holder=state.holder,
    )
