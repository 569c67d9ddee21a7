"""The certificate of the OPC UA server: generated, stored, renewed.

It is a self-signed application instance certificate (OPC 10000-6, 6.2.2) with the application URI and with the host
names and addresses under which clients reach the server.
"""

import errno
import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

from edge.config import OpcuaSettings, Settings
from edge.config.hosts import is_any_address, is_loopback
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.files import make_directory, write_atomically
from edge.foundation.text import Text
from edge.links.host_addresses import host_addresses
from edge.model.certificate import CertificateState, PublicCertificate
from edge.opcua.application_certificate import MOST_IN_CHAIN, application_uris, certificate_fault, host_names

VALID_FOR = timedelta(days=5 * 365)
WARN_BEFORE = timedelta(days=60)

_KEY_BITS = 2048  # all three security policies and every client support this length
_OTHERS = 0o077
_ORGANIZATION = "microdcs-edge"


class OwnCertificate(Struct, frozen=True):
    """A certificate with its private key, and the authorities above it; a self-signed one has none."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey
    authorities: tuple[x509.Certificate, ...] = ()

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """The certificate and its authorities."""
        return self.certificate, *self.authorities


def load_or_make(directory: Path, application_uri: str, hosts: Iterable[str]) -> OwnCertificate:
    """Return the certificate stored in `directory`; generate it when there is none.

    Raises SettingsError when the file cannot be read or written, or when other users can access it; Unavailable when
    the disk is full.
    """
    path = own_path(directory)
    try:
        if path.exists():
            own = _load(path)
            _publish(directory, own)
        else:
            own = renew(directory, application_uri, hosts)
    except OSError as error:
        raise _no_access(error, path) from error
    return own


def load(directory: Path) -> OwnCertificate | None:
    """Return the certificate stored in `directory`, if there is one. Raises SettingsError when it cannot be read."""
    path = own_path(directory)
    try:
        return _load(path) if path.exists() else None
    except OSError as error:
        raise _no_access(error, path) from error


def load_certificate(directory: Path) -> x509.Certificate | None:
    """Return the stored certificate, also for a user who may not read its key. Raises SettingsError."""
    public = _public_path(directory)
    if os.access(public, os.R_OK) and not os.access(own_path(directory), os.R_OK):
        return x509.load_der_x509_certificate(public.read_bytes())
    own = load(directory)
    return own.certificate if own else None


def renew(
    directory: Path,
    application_uri: str,
    hosts: Iterable[str],
    valid_for: timedelta = VALID_FOR,
    key: rsa.RSAPrivateKey | None = None,
) -> OwnCertificate:
    """Generate a certificate, and a new key unless one is passed; replace the stored ones. Raises OSError."""
    own = _make(application_uri, hosts, datetime.now(UTC), valid_for, key or generate_key())
    store(directory, own)
    return own


def store(directory: Path, own: OwnCertificate) -> None:
    """Replace the stored certificate and key. Raises OSError."""
    make_directory(directory, 0o750)
    content = own.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in own.chain)
    # One file holds key and certificates: after a power cut the pair always matches.
    write_atomically(own_path(directory), content, 0o600)
    _publish(directory, own)


def generate_key() -> rsa.RSAPrivateKey:
    """Return a new key; it takes a second on a small machine."""
    return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)


def warnings(
    certificate: x509.Certificate, application_uri: str, now: datetime, reachable: Iterable[str] = ()
) -> Iterator[Text]:
    """Yield every reason why clients reject this certificate now or soon; they use the names that are `reachable`.

    A certificate of an authority names what the authority decided.
    """
    left = certificate.not_valid_after_utc - now
    if left < WARN_BEFORE:
        yield Text.of("it has expired") if left < timedelta() else Text.of("it expires in {days} days", days=left.days)
    if application_uri not in application_uris(certificate):
        yield Text.of("it was made for another application than {uri}", uri=application_uri)
    if is_self_made(certificate):
        named = {host.lower() for host in host_names(certificate)}
        if missing := [host for host in reachable if _canonical(host) not in named]:
            yield Text.of("it does not name {hosts}", hosts=", ".join(missing))


def is_self_made(certificate: x509.Certificate) -> bool:
    """Return whether the gateway has made a certificate itself, rather than an authority or an administrator."""
    organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    names = [organization.value for organization in organizations]
    return certificate.issuer == certificate.subject and names == [_ORGANIZATION]


def thumbprint(certificate: x509.Certificate) -> str:
    """Return the thumbprint that OPC UA clients display: SHA-1 in hexadecimal digits."""
    return certificate.fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303 - an identifier, not a security proof


def public_certificate(certificate: x509.Certificate, state: CertificateState) -> PublicCertificate:
    """Return the public form of a certificate."""
    return PublicCertificate(
        state=state,
        thumbprint=thumbprint(certificate),
        subject=certificate.subject.rfc4514_string(),
        applications=tuple(application_uris(certificate)),
        expires=certificate.not_valid_after_utc.date().isoformat(),
    )


def own_hosts(*configured: str) -> Iterator[str]:
    """Yield the configured names, and every name and address of this host.

    The call blocks while the host resolves its own name.
    """
    # A computer on a direct cable has a link-local one only; it is named, and not missed.
    addresses = map(str, host_addresses(with_link_local=True))
    names = [*configured, socket.gethostname(), socket.getfqdn(), *addresses, "localhost", "127.0.0.1"]
    yield from dict.fromkeys(name for name in names if name and not is_any_address(name))


def listening_hosts(settings: Settings) -> Iterator[str]:
    """Yield the hosts at which the OPC UA server listens, and what else uses the same certificate."""
    if settings.opcua.endpoint:
        yield urlsplit(settings.opcua.endpoint).hostname or ""
    yield from settings.certificate_hosts


def server_hosts(settings: OpcuaSettings, *listening: str) -> Iterator[str]:
    """Yield every name and address that the certificate of servers is to name that listen at these hosts.

    The call blocks while the host resolves its own name.
    """
    yield from own_hosts(*listening, *settings.hosts, *_mdns_name(settings))


def reachable_hosts(settings: OpcuaSettings, *listening: str) -> Iterator[str]:
    """Yield the names and addresses by which clients reach servers that listen at these hosts; ask no name server."""
    names = [*settings.hosts, *_mdns_name(settings)]
    for host in listening:
        if not host or is_any_address(host):
            version = 6 if ":" in host else 4
            names += [str(address) for address in host_addresses() if address.version == version]
        elif not is_loopback(host):
            names.append(host)
    yield from dict.fromkeys(names)


def _mdns_name(settings: OpcuaSettings) -> tuple[str, ...]:
    return (f"{socket.gethostname()}.local",) if settings.advertise else ()


def own_path(directory: Path) -> Path:
    """Return the file of our certificate and its key."""
    return directory / "own.pem"


def _public_path(directory: Path) -> Path:
    return directory / "own.der"


def _publish(directory: Path, own: OwnCertificate) -> None:
    """Write the certificate without its key to `own.der`; an administrator copies that file to the clients."""
    der = own.certificate.public_bytes(serialization.Encoding.DER)
    path = _public_path(directory)
    if not path.exists() or path.read_bytes() != der:
        write_atomically(path, der, 0o644)


def _load(path: Path) -> OwnCertificate:
    if path.stat().st_mode & _OTHERS:
        raise SettingsError(
            [Text.of("opcua.pki: the key in {path} is open to others", path=path)],
            Text.of("Close it: chmod 600 {path}", path=path),
        )
    content = path.read_bytes()
    advice = "Remove the file, and the next start makes a new one; clients will have to trust it again."
    try:
        # The test of its primes takes a tenth of the start, and so much each minute; `are_a_pair` finds damage, too.
        key = serialization.load_pem_private_key(content, password=None, unsafe_skip_rsa_key_validation=True)
        certificate, *authorities = x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise SettingsError(
            [Text.of("opcua.pki: {path} is damaged: {reason}", path=path, reason=error)], advice
        ) from error
    if not isinstance(key, rsa.RSAPrivateKey) or not are_a_pair(key, certificate):
        raise SettingsError(
            [Text.of("opcua.pki: key and certificate in {path} do not belong together", path=path)], advice
        )
    return OwnCertificate(certificate, key, tuple(authorities))


def are_a_pair(key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> bool:
    """Return whether the certificate verifies what the key signs; a damaged key signs wrongly or not at all."""
    public = certificate.public_key()
    if not isinstance(public, rsa.RSAPublicKey) or key.public_key() != public:
        return False
    signed, scheme = b"a pair", padding.PKCS1v15()
    try:
        public.verify(key.sign(signed, scheme, hashes.SHA256()), signed, scheme, hashes.SHA256())
    except (InvalidSignature, ValueError, InternalError):
        return False
    return True


def _make(
    application_uri: str, hosts: Iterable[str], now: datetime, valid_for: timedelta, key: rsa.RSAPrivateKey
) -> OwnCertificate:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, application_uri[-64:]),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION),
        ]
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=True,
        key_encipherment=True,
        data_encipherment=True,
        key_agreement=False,
        key_cert_sign=True,  # required of self-signed certificates
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    alternatives = x509.SubjectAlternativeName(
        [x509.UniformResourceIdentifier(application_uri), *(_general_name(host) for host in hosts)]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # the clock of a client may be late
        .not_valid_after(now + valid_for)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier(identifier.digest, None, None), critical=False)
        .sign(key, hashes.SHA256())
    )
    return OwnCertificate(certificate, key)


def _canonical(host: str) -> str:
    """Return a host as `host_names` returns it, in lower case: one form for each IPv6 address, without a zone."""
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return host.lower()


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _no_access(error: OSError, path: Path) -> SettingsError | Unavailable:
    """Return the error to raise; Unavailable for a full disk, as a retry can succeed. A write error names no file."""
    problem = Text.of("opcua.pki: {filename}: {reason}", filename=error.filename or path, reason=error.strerror)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Unavailable(
            problem, Text.of("Free space on the disk of {parent}; the gateway retries.", parent=path.parent)
        )
    if error.errno == errno.EACCES:
        return SettingsError(
            [problem],
            Text.of("The gateway has to own {parent}. Call other commands as root (sudo).", parent=path.parent),
        )
    return SettingsError([problem], "Name a directory that the gateway may write to.")


class UnusableCertificate(Exception):
    """The certificate cannot be that of this gateway; the message says why."""


def signing_request(own: OwnCertificate, key: rsa.RSAPrivateKey, subject: x509.Name | None = None) -> bytes:
    """Return a signing request (PKCS #10, DER) for a key, with the names of the present certificate."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject or own.certificate.subject)
    try:
        names = own.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        builder = builder.add_extension(names.value, critical=False)
    except x509.ExtensionNotFound:
        pass
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def read_subject(text: str) -> x509.Name | None:
    """Read a subject such as CN=gateway,O=plant; the parts may be separated by slashes. Raises ValueError."""
    given = text.strip().strip("/")
    if not given:
        return None
    # The first part of RFC 4514 is the last one of the name.
    parts = [word.strip() for word in given.replace("/", ",").split(",")]
    return x509.Name.from_rfc4514_string(",".join(reversed(parts)))


def read_key(pem: bytes) -> rsa.RSAPrivateKey:
    """Read a private key in PEM. Raises UnusableCertificate."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableCertificate("the private key is damaged, or has a password") from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UnusableCertificate("the private key is not RSA")
    return key


def check_issued(
    certificate: x509.Certificate,
    issuers: Sequence[x509.Certificate],
    keys: Sequence[rsa.RSAPrivateKey],
    application_uri: str,
    now: datetime,
) -> OwnCertificate:
    """Return the new certificate with its key, one of these, and its chain. Raises UnusableCertificate."""
    if fault := certificate_fault(certificate, now):
        raise UnusableCertificate(str(fault))
    if application_uri not in application_uris(certificate):
        raise UnusableCertificate(f"it was made for another application than {application_uri}")
    key = next((rsa_private_key for rsa_private_key in keys if are_a_pair(rsa_private_key, certificate)), None)
    if key is None:
        raise UnusableCertificate("it belongs to another key")
    return OwnCertificate(certificate, key, _chain(certificate, issuers))


def _chain(certificate: x509.Certificate, issuers: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Return the authorities in the order of the chain. Raises UnusableCertificate for one that has no place in it."""
    chain: list[x509.Certificate] = []
    left, current = list(issuers), certificate
    while left and len(chain) < MOST_IN_CHAIN - 1:
        issuer = next((item for item in left if _has_issued(item, current)), None)
        if issuer is None:
            break
        chain.append(issuer)
        left.remove(issuer)
        current = issuer
    if left:
        raise UnusableCertificate("a certificate of the authorities does not belong to the chain")
    return tuple(chain)


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
