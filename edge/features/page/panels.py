"""The panels of a station: which browsers they are, and what is large enough for gloves."""

import math
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from edge.config.hosts import is_loopback

_TARGET_MM: Final = 12.0
_MM_PER_INCH: Final = 25.4
_GRID_PX: Final = 4
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def target_px(per_inch: int) -> int:
    """Return the height of a target in pixels: 12 mm on a screen with so many pixels per inch, on a grid of 4 px."""
    return math.ceil(_TARGET_MM / _MM_PER_INCH * per_inch / _GRID_PX) * _GRID_PX


class Panels(Struct, frozen=True):
    """The panels of a station: their networks, the height of a target in pixels, and when their logins end."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    target: int = 64
    idle_s: int = 300

    def has(self, address: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request comes from a panel itself, not over a proxy.

        One on this host also has to ask for this host: the page of another site cannot make it send a request.
        """
        try:
            client = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        client = getattr(client, "ipv4_mapped", None) or client
        if not any(client in network for network in self.networks):
            return False
        return asks_this_host(str(client), headers) if client.is_loopback else not is_forwarded(headers)


def is_forwarded(headers: Mapping[str, str]) -> bool:
    """Return whether a proxy has sent a request."""
    return any(name in headers for name in _FORWARDED)


def asks_this_host(address: str, headers: Mapping[str, str]) -> bool:
    """Return whether a browser on this host asks for this host by a loopback name, not over a proxy."""
    if is_forwarded(headers):
        return False
    try:
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        return is_loopback(address) and is_loopback(host)
    except ValueError:
        return False
