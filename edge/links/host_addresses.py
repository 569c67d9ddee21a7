"""The addresses of this host at which other hosts reach it, and its free ports.

The service may not open netlink sockets, so IPv4 comes from SIOCGIFCONF (netdevice(7)), IPv6 from if_inet6 (proc(5)).
"""

import contextlib
import fcntl
import secrets
import socket
import struct
from array import array
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

Address = IPv4Address | IPv6Address

_SIOCGIFCONF: Final = 0x8912
_ENTRY: Final = struct.Struct("16s4x4s16x")
"""struct ifreq: name of the interface, sockaddr_in with family, port and address."""
_MOST: Final = 256
"""Maximum number of IPv4 addresses."""
_IPV6: Final = Path("/proc/self/net/if_inet6")
_INTERFACES: Final = Path("/sys/class/net")
_NOT_FOR_SERVERS: Final = 0x01 | 0x08 | 0x20 | 0x40
"""IFA_F_TEMPORARY, IFA_F_DADFAILED, IFA_F_DEPRECATED, IFA_F_TENTATIVE (rtnetlink(7))."""
_BELOW_THE_EPHEMERAL: Final = range(15_000, 32_000)
"""Linux assigns 32768 and above to connections and to servers without a port of their own."""


def host_addresses(*, with_link_local: bool = False) -> tuple[Address, ...]:
    """Return the addresses of all interfaces, IPv4 first, on demand with link-local ones of IPv4.

    Loopback and other link-local addresses are left out, addresses that IPv6 uses for a while only (RFC 8981), and
    those of bridges that connect containers or virtual machines of this host and nothing else. So is what cannot be
    read.
    """
    found: list[tuple[str, Address]] = []
    for read in (_ipv4, _ipv6):
        with contextlib.suppress(OSError):
            found += read()
    outside = {name for name in {interface for interface, _ in found} if not _is_inside(name)}
    usable = (address for interface, address in found if interface in outside and not address.is_loopback)
    listed = (
        address
        for address in usable
        if not address.is_link_local or (with_link_local and isinstance(address, IPv4Address))
    )
    return tuple(dict.fromkeys(listed))


def _ipv4() -> Iterator[tuple[str, Address]]:
    entries = array("B", bytes(_MOST * _ENTRY.size))
    begin, size = entries.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, _SIOCGIFCONF, struct.pack("iP", size, begin))
    (used,) = struct.unpack_from("i", answer)
    for name, address in _ENTRY.iter_unpack(entries[:used].tobytes()):
        # An address with a label has it in place of the name: eth0:1.
        yield name.partition(b"\0")[0].decode().partition(":")[0], IPv4Address(address)


def _ipv6() -> Iterator[tuple[str, Address]]:
    for line in _IPV6.read_text().splitlines():
        digits, _, _, _, flags, name = line.split()
        if not int(flags, 16) & _NOT_FOR_SERVERS:
            yield name, ip_address(bytes.fromhex(digits))


def _is_inside(interface: str) -> bool:
    """Return whether an interface is a bridge without a port that leads to a network card, directly or by others."""
    ports = _INTERFACES / interface / "brif"
    try:
        return not any(_leads_outside(_INTERFACES / port.name) for port in ports.iterdir())
    except OSError:  # not a bridge, or no longer there
        return False


def _leads_outside(port: Path) -> bool:
    return (port / "device").exists() or any(port.glob("lower_*"))


def free_port() -> int:
    """Return a loopback port that is free now, outside the range of ports that the system assigns."""
    while True:
        port = secrets.choice(_BELOW_THE_EPHEMERAL)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
