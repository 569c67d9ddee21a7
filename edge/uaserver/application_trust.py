"""The trusted and the rejected OPC UA applications and users: certificates in directories.

    <trusted>/*.der, *.crt, *.cer, *.pem   trusted applications or users, or authorities that issue for trusted ones
    <trusted>/*.crl                        the certificates revoked by an authority
    <trusted>/issuers/*                    authorities, with revocation lists, that only complete chains
    <rejected>/<thumbprint>.der            rejected applications, newest last; `edge opcua trust` reads them

An administrator can change the files while the server runs: the server reads the list when a client opens a channel.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from msgspec import Struct

from edge.foundation.files import make_directory, replace_atomically, write_atomically
from edge.links.rate_limit import RateLimit
from edge.opcua.application_certificate import CertificateFile, certificate_fault, certificate_files
from edge.uaserver.authority_chains import KnownCertificates, chain_fault
from edge.uaserver.certificates import thumbprint

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
            return fault
        return chain_fault(certificate, sent, self._current(), now)

    def _current(self) -> KnownCertificates:
        directories = self._trusted, issuers_directory(self._trusted)
        state = tuple(found for directory in directories for found in _state(directory))
        if state != self._content.state:
            trusted, issuers = (
                tuple(entry.certificate for entry in certificate_files(directory)) for directory in directories
            )
            revocations = tuple(found for directory in directories for _, found in revocation_files(directory))
            known = KnownCertificates(trusted, issuers, revocations, self._requires_revocations)
            self._content = _Content(state, known)
            logger.info("OPC UA trust list read", directory=str(self._trusted), certificates=len(trusted))
        return self._content.known


class RejectedList:
    """The certificates of rejected applications, stored for the administrator.

    An attacker can generate any number of certificates: the number of stored files and the rate of new ones are
    limited.
    """

    MOST = 50
    MOST_NEW = 20
    WITHIN_S = 60.0

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._new = RateLimit(self.MOST_NEW, self.WITHIN_S, clock)
        self._writing = asyncio.Lock()

    async def keep(self, certificate: x509.Certificate) -> None:
        """Store a certificate; discard it when the rate of new ones exceeds the limit."""
        async with self._writing:
            await asyncio.to_thread(self._keep, certificate)

    def _keep(self, certificate: x509.Certificate) -> None:
        path = _certificate_path(certificate, self._directory)
        der = certificate.public_bytes(serialization.Encoding.DER)
        try:
            # The content is compared, as a power cut may leave an empty file: the writes are not synced.
            if (path.exists() and path.read_bytes() == der) or not self._new.try_acquire():
                return
            make_directory(self._directory, _OPEN_DIRECTORY)
            with replace_atomically(path, _OPEN_FILE) as file:
                file.write(der)
            kept = sorted(self._directory.glob("*.der"), key=lambda file: file.stat().st_mtime_ns)
            for oldest in kept[: -self.MOST]:
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
