"""Checks names and addresses of hosts, and the keys of a connection to an MQTT broker that several sections have."""

import ipaddress
import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final, Protocol

from edge.foundation.text import Text


def is_loopback(host: str) -> bool:
    """Return whether a host is reached from this host only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_any_address(host: str) -> bool:
    """Return whether a host stands for every address of this machine, as `0.0.0.0` does where one listens."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE | re.ASCII)


def is_host(text: str) -> bool:
    """Return whether a text is a host name or an IP address, as a certificate may contain it."""
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return _HOST_NAME.fullmatch(text) is not None


class BrokerKeys(Protocol):
    """The keys of a section with a broker of its own."""

    @property
    def url(self) -> str:
        """Return the URL of the broker."""
        ...

    @property
    def username(self) -> str:
        """Return the user name."""
        ...

    @property
    def password(self) -> str:
        """Return the password."""
        ...

    @property
    def password_file(self) -> str:
        """Return the file of the password."""
        ...

    @property
    def ca_file(self) -> str:
        """Return the file of the certificates to trust."""
        ...

    @property
    def cert_file(self) -> str:
        """Return the file of our certificate."""
        ...

    @property
    def key_file(self) -> str:
        """Return the file of its private key."""
        ...


def broker_conflicts(broker: BrokerKeys) -> Iterator[str | Text]:
    """Yield conflicts of certificates with each other and with the URL."""
    if bool(broker.cert_file) != bool(broker.key_file):
        yield "cert_file, key_file: the one needs the other"
    if broker.url.startswith("mqtt:") and (broker.ca_file or broker.cert_file):
        yield "url: certificates are given, but mqtt: does not use them; expected mqtts:"
