"""Certificates of OPC UA applications: reading them, their names, and the faults for which they are refused.

It applies to the clients of our server and to the servers of our client.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from msgspec import Struct

from edge.foundation.text import Text

logger = structlog.get_logger(__name__)

SUFFIXES = frozenset({".der", ".crt", ".cer", ".pem"})
LEAST_KEY_BITS = 2048
_KEY_BITS = range(LEAST_KEY_BITS, 4097)  # of the three security policies (OPC 10000-7)
MOST_IN_CHAIN = 5
"""Most certificates of a chain, the own one and that of the root included."""
_LONG_LENGTH = 0x80
_DER_HEAD = 2
"""Bytes of a tag and of a short length."""
_WEAK_HASHES = frozenset({"md5", "sha1"})

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


class CertificateFile(Struct, frozen=True):
    """A certificate and its file."""

    path: Path
    certificate: x509.Certificate


def certificate_files(directory: Path) -> Iterator[CertificateFile]:
    """Yield every certificate of a directory; a file without one is logged and skipped."""
    for path in sorted(directory.glob("*")):
        if path.suffix.lower() in SUFFIXES:
            try:
                yield CertificateFile(path, read_certificate(path))
            except (OSError, ValueError) as error:
                logger.warning("not a certificate", file=str(path), reason=str(error))


def read_certificate(path: Path) -> x509.Certificate:
    """Read a certificate in either of its forms. Raises OSError or ValueError."""
    content = path.read_bytes()
    is_pem = b"-----BEGIN" in content  # words may stand before it, as OpenSSL writes them
    return x509.load_pem_x509_certificate(content) if is_pem else x509.load_der_x509_certificate(content)


def read_chain(data: bytes) -> tuple[x509.Certificate, ...]:
    """Read the certificates of a chain: one in DER behind the other, the own one first.

    Raises ValueError when one of them is damaged, and for more than MOST_IN_CHAIN.
    """
    certificates: list[x509.Certificate] = []
    while data:
        size = _der_size(data)
        if len(certificates) == MOST_IN_CHAIN or size > len(data):
            raise ValueError("the chain of certificates is damaged or too long")
        certificates.append(x509.load_der_x509_certificate(data[:size]))
        data = data[size:]
    return tuple(certificates)


def _der_size(data: bytes) -> int:
    """Return the size of the DER value that begins here, by its own length."""
    if len(data) < _DER_HEAD:
        raise ValueError("the certificate is cut off")
    length = data[1]
    if length < _LONG_LENGTH:
        return _DER_HEAD + length
    octets = length - _LONG_LENGTH
    return _DER_HEAD + octets + int.from_bytes(data[_DER_HEAD : _DER_HEAD + octets], "big")


def chain_bytes(chain: Iterable[x509.Certificate]) -> bytes:
    """Return a chain of certificates as it travels: one in DER behind the other."""
    return b"".join(certificate.public_bytes(serialization.Encoding.DER) for certificate in chain)


def application_uris(certificate: x509.Certificate) -> list[str]:
    """Return the application URIs of a certificate; a valid certificate has one."""
    names = extension(certificate, x509.SubjectAlternativeName)
    return names.get_values_for_type(x509.UniformResourceIdentifier) if names else []


def user_name(certificate: x509.Certificate) -> str:
    """Return the common name of a certificate: the name of the user that it logs in. Empty for none or several."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""


def host_names(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses of a certificate."""
    names = extension(certificate, x509.SubjectAlternativeName)
    if names is None:
        return []
    addresses = names.get_values_for_type(x509.IPAddress)
    return [*names.get_values_for_type(x509.DNSName), *(str(address) for address in addresses)]


def extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    """Return the extension of a kind; None when it is absent or the extensions cannot be read."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return None


def certificate_fault(certificate: x509.Certificate, now: datetime) -> Text | None:
    """Return the reason to refuse this certificate, trusted or not; None when it is valid."""
    try:
        key, is_weak = certificate.public_key(), is_weakly_signed(certificate)
    except (ValueError, UnsupportedAlgorithm):
        return Text("its key or its signature is of a kind that we do not know")
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size not in _KEY_BITS:
        return Text("its key is not RSA of 2048 to 4096 bits")
    if is_weak:
        return Text("it is signed with a weak hash")
    if _has_double_extension(certificate):
        return Text("one of its extensions is there twice")
    if not is_valid(certificate, now):
        return Text("it has expired or is not valid yet")
    return None


def is_weakly_signed(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is signed with a hash that is broken, or with none. Raises UnsupportedAlgorithm."""
    signed_with = certificate.signature_hash_algorithm
    return signed_with is None or signed_with.name in _WEAK_HASHES


def is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether an instant is within the validity of the certificate."""
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _has_double_extension(certificate: x509.Certificate) -> bool:
    """Return whether a certificate has an extension twice and is ambiguous (RFC 5280, 4.2)."""
    try:
        list(certificate.extensions)
    except x509.DuplicateExtension:
        return True
    except (x509.UnsupportedGeneralNameType, ValueError):
        # Names of unknown kinds are not a fault: devices use various kinds.
        return False
    return False
