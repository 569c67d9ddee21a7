"""The users of the OPC UA server, and the port by which the protocol layer asks for their permissions."""

import hmac
import ipaddress
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field  # noqa: TID251 - a member is neither compared nor shown
from typing import TYPE_CHECKING, Any, Protocol

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.crypto.uacrypto import InvalidSignature as UaInvalidSignature
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec import Struct

from edge.foundation.text import Text, language_for
from edge.model.user import Role
from edge.opcua.application_certificate import read_chain
from edge.opcua.limits import MOST_ENCRYPTED_BLOCKS

if TYPE_CHECKING:
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
"""The LocaleIds of the session whose method or reading is executed, the preferred one first."""


@contextmanager
def calling(caller: Caller, locales: tuple[str, ...]) -> Iterator[None]:
    """Set the caller and the LocaleIds of the methods that are called in the block."""
    token, kept = CALLER.set(caller), LOCALES.set(locales)
    try:
        yield
    finally:
        CALLER.reset(token)
        LOCALES.reset(kept)


@contextmanager
def reading_in(locales: tuple[str, ...]) -> Iterator[None]:
    """Set the LocaleIds in which texts are read in the block."""
    token = LOCALES.set(locales)
    try:
        yield
    finally:
        LOCALES.reset(token)


def session_text(text: Text) -> ua.LocalizedText:
    """Return a text in the language of the session that reads it."""
    language = language_for(LOCALES.get())
    return ua.LocalizedText(text.in_language(language), language)


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

    async def keep_rejected(self, certificate: x509.Certificate, address: str) -> None:
        """Keep the certificate of a rejected application, which came from an address, for the administrator."""


_LENGTH = struct.Struct("<I")


class CertificateToken(Struct, frozen=True):
    """The certificate of a user with its chain, and whether the client has its key."""

    chain: tuple[x509.Certificate, ...]
    is_proved: bool


def read_password(policy: SecurityPolicy, nonce: bytes, token: ua.UserNameIdentityToken) -> tuple[str, str]:
    """Return name and password of a token (OPC 10000-4, 7.40.2.2). Raises BadIdentityTokenInvalid.

    The password is plain text (`AccessControl` requires an encrypted channel), or encrypted once more by the algorithm
    of the channel together with the last server nonce, which prevents replay.
    """
    try:
        secret = token.Password or b""
        if token.EncryptionAlgorithm:
            if token.EncryptionAlgorithm != policy.AsymmetricEncryptionURI:
                raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
            decryptor = policy.asymmetric_cryptography.Decryptor
            if len(secret) > MOST_ENCRYPTED_BLOCKS * decryptor.encrypted_block_size():
                raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
            plain = decryptor.decrypt(secret)
            (length,) = _LENGTH.unpack_from(plain)
            password, answered = plain[4 : 4 + length - len(nonce)], plain[4 + length - len(nonce) : 4 + length]
            if not hmac.compare_digest(answered, nonce):
                raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
            secret = password
        return token.UserName or "", secret.decode()
    except (ValueError, struct.error) as error:
        raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid) from error


def read_certificate_token(
    policy: SecurityPolicy, nonce: bytes, token: ua.X509IdentityToken, signature: ua.SignatureData | None
) -> CertificateToken:
    """Read the certificate of a user, and verify the signature by the algorithm of the channel (OPC 10000-4, 7.40.2.4).

    Raises BadIdentityTokenInvalid for a damaged certificate, and on a channel without security.
    """
    try:
        chain = read_chain(token.CertificateData or b"")
        key = chain[0].public_key()
    except (ValueError, IndexError, UnsupportedAlgorithm) as error:
        raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid) from error
    if not policy.AsymmetricSignatureURI or not isinstance(key, rsa.RSAPublicKey):
        raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
    if signature is None or signature.Algorithm != policy.AsymmetricSignatureURI:
        return CertificateToken(chain, is_proved=False)
    # The class verifies with the key of any certificate, by the algorithm of the policy.
    verifier = type(policy.asymmetric_cryptography.Verifier)(chain[0])
    return CertificateToken(chain, has_signed(policy, verifier, nonce, signature.Signature))


def has_signed(policy: SecurityPolicy, verifier: Any, nonce: bytes, signature: bytes | None) -> bool:
    """Return whether a signature is that of the server's certificate and its last nonce.

    Some clients sign the certificate alone, others with the chain that they received with it.
    """
    own = policy.host_certificate or b""
    chain = b"".join(policy.host_certificate_chain)
    return any(_verifies(verifier, value + nonce, signature) for value in {own, own + chain})


def _verifies(verifier: Any, data: bytes, signature: bytes | None) -> bool:
    try:
        verifier.verify(data, signature)
    except (InvalidSignature, UaInvalidSignature, TypeError):
        return False
    return True
