"""The users of the OPC UA server, and the port by which the protocol layer asks for their permissions."""

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field  # noqa: TID251 - a member is neither compared nor shown
from typing import TYPE_CHECKING, Protocol

from cryptography import x509
from msgspec import Struct

from edge.model.user import Role

if TYPE_CHECKING:
    # Commands and checks that read roles must not import asyncua, which takes half a second.
    from asyncua import ua


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a session, "" when anonymous, with the application and the address of the client.

    `chain` is the certificate that logged the user in, first of its chain; empty for a password.
    """

    name: str
    role: Role
    application: str = ""
    address: str = ""
    chain: tuple[x509.Certificate, ...] = field(default=(), compare=False, repr=False)


CALLER: ContextVar[Caller] = ContextVar("CALLER")
"""The caller of the current method; set for every call from outside."""

LOCALES: ContextVar[tuple[str, ...]] = ContextVar("LOCALES", default=())
"""The LocaleIds of the session of the current method, the preferred one first."""


@contextmanager
def calling(caller: Caller, locales: tuple[str, ...]) -> Iterator[None]:
    """Set the caller and the LocaleIds of the methods that are called in the block."""
    token, kept = CALLER.set(caller), LOCALES.set(locales)
    try:
        yield
    finally:
        CALLER.reset(token)
        LOCALES.reset(kept)


_MOST_LOCALES = 10
_LONGEST_LOCALE = 35
"""Bounds of the LocaleIds that a session keeps; 35 characters hold every tag (RFC 5646, 4.4.1)."""


def bounded_locales(locales: Sequence[str | None]) -> tuple[str, ...]:
    """Return the LocaleIds of a client as far as a session keeps them."""
    return tuple(locale[:_LONGEST_LOCALE] for locale in locales[:_MOST_LOCALES] if locale)


class Peer(Struct, frozen=True):
    """The other end of a channel: its address, its proved application, and whether the channel is encrypted."""

    address: str
    is_encrypted: bool
    application: str = ""

    @property
    def is_local(self) -> bool:
        """Return whether the client runs on this host."""
        try:
            address = ipaddress.ip_address(self.address)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address).is_loopback


class AccessPolicy(Protocol):
    """Decides who may use the server, and records decisions for the audit."""

    allows_unencrypted: bool
    """Whether sessions may use channels without encryption."""

    allows_certificates: bool
    """Whether users may log in with certificates."""

    def is_application_trusted(self, chain: Sequence[x509.Certificate], address: str) -> bool:
        """Return whether the application with this certificate, first of its chain, may open a channel."""

    def anonymous(self, peer: Peer) -> Caller | None:
        """Return the caller of an anonymous session; None when anonymous sessions are not allowed."""

    async def user(self, name: str, password: str, peer: Peer, *, is_confirmed: bool = False) -> Caller | None:
        """Return the caller with this name and password; None when they are wrong.

        `is_confirmed`: the same session was activated with the same name and password before.
        """

    async def certified_user(self, chain: Sequence[x509.Certificate], peer: Peer, *, is_proved: bool) -> Caller | None:
        """Return the caller with this certificate, first of its chain; None when the login is refused.

        `is_proved`: the client has signed with the key of the certificate.
        """

    def is_login_trusted(self, caller: Caller) -> bool:
        """Return whether the certificate that logged the caller in is trusted; True for a login without one."""

    def may_call(self, caller: Caller, method: str) -> bool:
        """Return whether the caller may call the method with this browse name."""

    def manages_certificates(self, caller: Caller) -> bool:
        """Return whether the caller may change certificates and trust lists over OPC UA."""

    def record_login(self, caller: Caller) -> None:
        """Record that a session was activated."""

    def record_call(
        self, caller: Caller, method: str, request: "ua.CallMethodRequest", result: "ua.CallMethodResult"
    ) -> None:
        """Record a method call."""

    def record_refusal(self, event: str, address: str, **fields: object) -> None:
        """Record that a client was refused."""

    async def keep_rejected(self, certificate: x509.Certificate) -> None:
        """Keep the certificate of a rejected application for the administrator."""
