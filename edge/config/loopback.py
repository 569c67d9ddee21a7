"""Distinguishes addresses of this host from others."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Return whether a host is reached from this host only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
