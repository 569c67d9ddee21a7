"""Decides whether a certificate is trusted by its chain of authorities (OPC 10000-4, 6.1.3): pure functions."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum, auto

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from msgspec import Struct

from edge.opcua.application_certificate import (
    LEAST_KEY_BITS,
    MOST_IN_CHAIN,
    application_uris,
    extension,
    is_valid,
    is_weakly_signed,
)

UNTRUSTED = "it is not trusted"
REVOKED = "its authority has revoked it"


class KnownCertificates(Struct, frozen=True):
    """The certificates that are trusted, authorities that only complete chains, and their revocation lists.

    With `requires_revocations` each certificate of a chain needs a current revocation list of its authority.
    """

    trusted: tuple[x509.Certificate, ...] = ()
    issuers: tuple[x509.Certificate, ...] = ()
    revocations: tuple[x509.CertificateRevocationList, ...] = ()
    requires_revocations: bool = False


class _Revocation(Enum):
    """What the revocation lists of an authority say about a certificate."""

    REVOKED = auto()
    CURRENT = auto()
    UNKNOWN = auto()


def chain_fault(
    certificate: x509.Certificate, sent: Sequence[x509.Certificate], known: KnownCertificates, now: datetime
) -> str:
    """Return why a certificate is not trusted; an empty text when it, or an authority above it, is trusted.

    `sent` are the certificates that the client sent with it. They may complete the chain, but sending one does not
    make it trusted.
    """
    candidates = (*known.trusted, *known.issuers, *sent[: MOST_IN_CHAIN - 1])
    is_anchored, current = certificate in known.trusted, certificate
    for below in range(MOST_IN_CHAIN):
        if current.issuer == current.subject:
            break
        signers = list(_signers(current, candidates, below))
        issuer = next((signer for signer in signers if is_valid(signer, now)), None)
        if issuer is None:
            if signers and not is_anchored:
                return "the certificate of its authority has expired or is not valid yet"
            break
        match _revocation(current, issuer, known.revocations, now):
            case _Revocation.REVOKED:
                return REVOKED
            case _Revocation.UNKNOWN if known.requires_revocations:
                return "there is no current revocation list of its authority"
            case _:
                pass
        is_anchored = is_anchored or issuer in known.trusted
        current = issuer
    return "" if is_anchored else UNTRUSTED


def _signers(
    certificate: x509.Certificate, candidates: Sequence[x509.Certificate], below: int
) -> Iterator[x509.Certificate]:
    """Yield the authorities that signed a certificate; `below` authorities stand between it and the first one."""
    for candidate in candidates:
        if (
            candidate.subject == certificate.issuer
            and _may_sign(candidate, below)
            and _has_signed(candidate, certificate)
        ):
            yield candidate


def _may_sign(authority: x509.Certificate, below: int) -> bool:
    # A self-signed application certificate often claims to be an authority; trust in it must not extend to others.
    if application_uris(authority):
        return False
    constraints, usage = extension(authority, x509.BasicConstraints), extension(authority, x509.KeyUsage)
    if constraints is None or not constraints.ca or (usage is not None and not usage.key_cert_sign):
        return False
    key = authority.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < LEAST_KEY_BITS:
        return False
    return constraints.path_length is None or below <= constraints.path_length


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        if is_weakly_signed(certificate):
            return False
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _revocation(
    certificate: x509.Certificate,
    issuer: x509.Certificate,
    revocations: Sequence[x509.CertificateRevocationList],
    now: datetime,
) -> _Revocation:
    found = _Revocation.UNKNOWN
    for revocation in revocations:
        if revocation.issuer != issuer.subject or not is_signed_by(revocation, issuer):
            continue
        if revocation.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None:
            return _Revocation.REVOKED
        ends = revocation.next_update_utc
        if revocation.last_update_utc <= now and (ends is None or now <= ends):
            found = _Revocation.CURRENT
    return found


def is_signed_by(revocations: x509.CertificateRevocationList, issuer: x509.Certificate) -> bool:
    """Return whether an authority has signed a revocation list."""
    key = issuer.public_key()
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        return False
    try:
        return revocations.is_signature_valid(key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
