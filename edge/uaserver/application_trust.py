"""The trusted and the rejected OPC UA applications and users: certificates in directories.

    <trusted>/*.der, *.crt, *.cer, *.pem   trusted applications or users, or authorities that issue for trusted ones
    <trusted>/*.crl                        the certificates revoked by an authority
    <trusted>/issuers/*                    authorities, with revocation lists, that only complete chains
    <rejected>/<thumbprint>.der            rejected applications, newest last; `edge opcua trust` reads them

An administrator can change the files while the server runs: the server reads the list when a client opens a channel.
"""

import asyncio
import hashlib
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from edge.foundation.files import make_directory, replace_atomically, write_atomically
from edge.foundation.rate_limit import LimitByKey, RateLimit
from edge.opcua.application_certificate import (
    LEAST_KEY_BITS,
    MOST_IN_CHAIN,
    SUFFIXES,
    CertificateFile,
    application_uris,
    certificate_fault,
    certificate_files,
    extension,
    is_valid,
    is_weakly_signed,
    read_certificate,
)
from edge.uaserver.certificates import thumbprint

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
            and may_sign(candidate, below)
            and _has_signed(candidate, certificate)
        ):
            yield candidate


def may_sign(authority: x509.Certificate, below: int = 0) -> bool:
    """Return whether a certificate is that of an authority with at most so many authorities below it in a chain."""
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


logger = structlog.get_logger(__name__)

_OPEN_DIRECTORY, _OPEN_FILE = 0o755, 0o644  # the service reads files that root has written


class _Content(Struct, frozen=True):
    """The trust list for one state of its files: their names, inodes, modification times and sizes."""

    state: tuple[tuple[str, int, int, int], ...]
    known: KnownCertificates


class TrustList:
    """The trust list; each query checks the directory, and reads the files only when one has changed.

    With `requires_revocations` each authority needs a current revocation list.
    """

    def __init__(self, trusted: Path, *, requires_revocations: bool = False) -> None:
        self._trusted = trusted
        self._requires_revocations = requires_revocations
        self._content = _Content((), KnownCertificates(requires_revocations=requires_revocations))

    def fault(self, certificate: x509.Certificate, sent: Sequence[x509.Certificate] = ()) -> str:
        """Return why the owner of this certificate is not trusted; empty when trusted.

        `sent` are the certificates of authorities that came with it.
        """
        now = datetime.now(UTC)
        if fault := certificate_fault(certificate, now):
            return str(fault)
        return chain_fault(certificate, sent, self._current(), now)

    def _current(self) -> KnownCertificates:
        directories = self._trusted, issuers_directory(self._trusted)
        state = tuple(found for directory in directories for found in _state(directory))
        if state != self._content.state:
            trusted, issuers = (
                tuple(entry.certificate for entry in certificate_files(directory)) for directory in directories
            )
            revocations = tuple(found for directory in directories for _, found in revocation_files(directory))
            known_certificates = KnownCertificates(trusted, issuers, revocations, self._requires_revocations)
            self._content = _Content(state, known_certificates)
            logger.info("OPC UA trust list read", directory=str(self._trusted), certificates=len(trusted))
        return self._content.known


class RejectedList:
    """The certificates of rejected applications, stored for the administrator.

    An attacker can generate any number of certificates: the number of stored files and the rate of new ones are
    limited, also for each address, so that a flood of one does not keep out a newcomer.
    """

    MOST = 50
    MOST_NEW = 20
    MOST_NEW_OF_ADDRESS = 10
    WITHIN_S = 60.0

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._new = RateLimit(self.MOST_NEW, self.WITHIN_S, clock)
        self._new_of = LimitByKey(self.MOST_NEW_OF_ADDRESS, self.WITHIN_S, clock)
        self._writing = asyncio.Lock()

    async def keep(self, certificate: x509.Certificate, address: str) -> None:
        """Store a certificate that came from an address; discard it when the rate of new ones exceeds the limit."""
        async with self._writing:
            await asyncio.to_thread(self._keep, certificate, address)

    def _keep(self, certificate: x509.Certificate, address: str) -> None:
        path = _certificate_path(certificate, self._directory)
        der = certificate.public_bytes(serialization.Encoding.DER)
        try:
            # The content is compared, as a power cut may leave an empty file: the writes are not synced.
            if path.exists() and path.read_bytes() == der:
                return
            if not (self._new_of.try_acquire(address) and self._new.try_acquire()):
                return
            make_directory(self._directory, _OPEN_DIRECTORY)
            with replace_atomically(path, _OPEN_FILE) as file:
                file.write(der)
            paths = sorted(self._directory.glob("*.der"), key=lambda file: file.stat().st_mtime_ns)
            for oldest in paths[: -self.MOST]:
                oldest.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("rejected certificate not stored", file=error.filename, reason=error.strerror)


def rejected_directory(pki: Path) -> Path:
    """Return the directory of the certificates of rejected applications."""
    return pki / "rejected"


def rejected_users_directory(pki: Path) -> Path:
    """Return the directory of the certificates of rejected users."""
    return pki / "rejected-users"


def issuers_directory(trusted: Path) -> Path:
    """Return the directory of the authorities that complete chains and are not trusted themselves."""
    return trusted / "issuers"


def add_certificate(certificate: x509.Certificate, directory: Path) -> Path:
    """Write a certificate to a directory, named by its thumbprint; return the path. Raises OSError."""
    make_directory(directory, _OPEN_DIRECTORY)
    path = _certificate_path(certificate, directory)
    write_atomically(path, certificate.public_bytes(serialization.Encoding.DER), _OPEN_FILE)
    return path


def _certificate_path(certificate: x509.Certificate, directory: Path) -> Path:
    return directory / f"{thumbprint(certificate)}.der"


def _state(directory: Path) -> Iterator[tuple[str, int, int, int]]:
    for path in sorted(directory.glob("*")):
        try:
            status = path.stat()
        except FileNotFoundError:  # removed since the listing
            continue
        yield path.name, status.st_ino, status.st_mtime_ns, status.st_size


def revocation_files(directory: Path) -> Iterator[tuple[Path, x509.CertificateRevocationList]]:
    """Yield every revocation list of a directory with its file; a file without one is logged and skipped."""
    for path in sorted(directory.glob("*.crl")):
        try:
            content = path.read_bytes()
            is_pem = content.lstrip().startswith(b"-----BEGIN")
            yield path, x509.load_pem_x509_crl(content) if is_pem else x509.load_der_x509_crl(content)
        except (OSError, ValueError) as error:
            logger.warning("revocation list unusable", file=str(path), reason=str(error))


def find_certificates(directories: Sequence[Path], wanted: str) -> list[CertificateFile]:
    """Find certificates by the start of their thumbprint; ignore case, spaces and colons."""
    digits = wanted.replace(":", "").replace(" ", "").upper()
    return [
        entry
        for directory in directories
        for entry in certificate_files(directory)
        if digits and thumbprint(entry.certificate).startswith(digits)
    ]


_JOURNAL = ".update"
"""A complete new list, written before the first file of it: an interrupted update is finished from it."""
_COUNT = struct.Struct("<i")
_MASKS = struct.Struct("<I")


class InvalidTrustList(Exception):
    """The bytes is not trust list, or one of its certificates or revocation lists is damaged."""


class TrustLists(Struct, frozen=True):
    """The four lists of a trust list, each a tuple of DER."""

    trusted: tuple[bytes, ...] = ()
    trusted_crls: tuple[bytes, ...] = ()
    issuers: tuple[bytes, ...] = ()
    issuer_crls: tuple[bytes, ...] = ()

    @property
    def lists(self) -> tuple[tuple[bytes, ...], ...]:
        """The lists in the order of their mask bits (OPC 10000-12, 7.8.2.7)."""
        return self.trusted, self.trusted_crls, self.issuers, self.issuer_crls

    def masked(self, masks: int) -> "TrustLists":
        """Return the lists of these mask bits; the others are empty."""
        return TrustLists(*(row if masks & 1 << bit else () for bit, row in enumerate(self.lists)))

    def updated(self, masks: int, others: "TrustLists") -> "TrustLists":
        """Return these lists, with those of the mask bits replaced by others."""
        pairs = zip(self.lists, others.lists, strict=True)
        return TrustLists(*(new if masks & 1 << bit else old for bit, (old, new) in enumerate(pairs)))


ALL_LISTS = 15


def read_lists(directory: Path) -> TrustLists:
    """Read the trust list of a directory. Raises OSError."""
    found = []
    for path in (directory, issuers_directory(directory)):
        certificates = (entry.certificate.public_bytes(Encoding.DER) for entry in certificate_files(path))
        revocations = (entry.public_bytes(Encoding.DER) for _, entry in revocation_files(path))
        found += [tuple(dict.fromkeys(certificates)), tuple(dict.fromkeys(revocations))]
    return TrustLists(*found)


def replace_lists(directory: Path, lists: TrustLists) -> None:
    """Replace the trust list of a directory; after a power cut it is the old or the new one. Raises OSError.

    `finish_update` completes what was interrupted.
    """
    make_directory(directory, _OPEN_DIRECTORY)
    write_atomically(directory / _JOURNAL, encode_lists(ALL_LISTS, lists), _OPEN_FILE)
    finish_update(directory)


def finish_update(directory: Path) -> None:
    """Complete an update that was interrupted, if there is one. Raises OSError."""
    journal = directory / _JOURNAL
    try:
        _, lists = decode_lists(journal.read_bytes())
    except FileNotFoundError:
        return
    except InvalidTrustList as error:
        logger.warning("trust list update unusable", file=str(journal), reason=str(error))
        journal.unlink()
        return
    # All files are written before the first one is removed: a client that connects meanwhile meets no gap.
    issuers = issuers_directory(directory)
    _add(directory, lists.trusted, lists.trusted_crls)
    _add(issuers, lists.issuers, lists.issuer_crls)
    _remove(directory, {*lists.trusted, *lists.trusted_crls})
    _remove(issuers, {*lists.issuers, *lists.issuer_crls})
    journal.unlink()


def encode_lists(masks: int, lists: TrustLists) -> bytes:
    """Encode lists as TrustListDataType."""
    parts = [_MASKS.pack(masks)]
    for pair in lists.lists:
        parts.append(_COUNT.pack(len(pair)))
        parts += [_COUNT.pack(len(entry)) + entry for entry in pair]
    return b"".join(parts)


def decode_lists(data: bytes) -> tuple[int, TrustLists]:
    """Decode and check a TrustListDataType; return its masks and its lists. Raises InvalidTrustList."""
    try:
        (masks,) = _MASKS.unpack_from(data)
        at, found = _MASKS.size, []
        for _ in range(4):
            (count,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            entries = []
            for _ in range(max(count, 0)):
                (size,) = _COUNT.unpack_from(data, at)
                at += _COUNT.size
                entries.append(data[at : at + size])
                at += size
                if size < 0 or at > len(data):
                    raise InvalidTrustList("an entry is longer than the list")
            found.append(tuple(dict.fromkeys(entries)))
    except struct.error as error:
        raise InvalidTrustList("it ends too early") from error
    if at != len(data) or masks > ALL_LISTS:
        raise InvalidTrustList("it is longer than its content, or has unknown masks")
    lists = TrustLists(*found)
    _check(lists)
    return masks, lists


def _check(lists: TrustLists) -> None:
    try:
        for issuer in (*lists.trusted, *lists.issuers):
            x509.load_der_x509_certificate(issuer).public_key()
        for crl in (*lists.trusted_crls, *lists.issuer_crls):
            x509.load_der_x509_crl(crl)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidTrustList("one of its entries is damaged") from error


def _add(directory: Path, certificates: Sequence[bytes], revocations: Sequence[bytes]) -> None:
    if not (certificates or revocations):
        return
    make_directory(directory, _OPEN_DIRECTORY)
    there = {content for _, content in _files(directory)}
    for certificate in certificates:
        if certificate not in there:
            path = directory / f"{thumbprint(x509.load_der_x509_certificate(certificate))}.der"
            write_atomically(path, certificate, _OPEN_FILE)
    for revocation in revocations:
        if revocation not in there:
            write_atomically(
                directory / f"{hashlib.sha256(revocation).hexdigest()[:40].upper()}.crl", revocation, _OPEN_FILE
            )


def _remove(directory: Path, wanted: set[bytes]) -> None:
    for path, content in _files(directory):
        if content not in wanted:
            path.unlink(missing_ok=True)


def _files(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the files with certificates and revocation lists, each with its DER; other files do not belong to it."""
    for path in sorted(directory.glob("*")):
        if path.suffix.lower() in SUFFIXES:
            with suppress(OSError, ValueError):
                yield path, read_certificate(path).public_bytes(Encoding.DER)
    yield from ((path, entry.public_bytes(Encoding.DER)) for path, entry in revocation_files(directory))
