"""Checks names and addresses of hosts."""

import ipaddress
import re
from typing import Final

_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE | re.ASCII)


def is_host(text: str) -> bool:
    """Return whether a text is a host name or an IP address, as a certificate may contain it."""
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return _HOST_NAME.fullmatch(text) is not None
