"""Authorities, certificates and revocation lists for tests. Keys are slow to generate: two serve all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

DER = serialization.Encoding.DER


CLIENT = 0
"""The key of clients and users; 1 and above are those of authorities."""


@cache
def key(number: int) -> rsa.RSAPrivateKey:
    """Return one of the keys."""
    del number
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority: its certificate and its key."""

    certificate: x509.Certificate
    key: Any

    def issue(self, subject: str, **others: Any) -> x509.Certificate:
        """Return a certificate that it has issued."""
        return _certificate(subject, self.certificate.subject, self.key, **others)

    def sign(self, request: x509.CertificateSigningRequest) -> x509.Certificate:
        """Return the certificate that it issues for a request."""
        assert request.is_signature_valid
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(extensions=list(request.extensions)).subject_name(request.subject)
        builder = builder.issuer_name(self.certificate.subject).public_key(request.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        return builder.not_valid_after(now + timedelta(days=90)).sign(self.key, hashes.SHA256())

    def authority(self, subject: str, number: int, **others: Any) -> "Authority":
        """Return an authority below it."""
        certificate = self.issue(subject, own=key(number), is_authority=True, **others)
        return Authority(certificate, key(number))

    def revoke(self, *lost: x509.Certificate, days: float = 1) -> x509.CertificateRevocationList:
        """Return its revocation list, which is valid for these days."""
        now = datetime.now(UTC)
        ends = now + timedelta(days=days)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject)
        builder = builder.last_update(min(now, ends) - timedelta(days=2)).next_update(ends)
        for certificate in lost:
            entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(now)
            builder = builder.add_revoked_certificate(entry.build())
        return builder.sign(self.key, hashes.SHA256())


def root(subject: str = "root", number: int = 1, **others: Any) -> Authority:
    """Return a self-signed authority."""
    certificate = _certificate(subject, name(subject), key(number), own=key(number), is_authority=True, **others)
    return Authority(certificate, key(number))


def self_signed(subject: str, **others: Any) -> x509.Certificate:
    """Return a self-signed certificate with the key of clients."""
    return _certificate(subject, name(subject), key(CLIENT), **others)


def _certificate(
    subject: str,
    issuer: x509.Name,
    signed_with: Any,
    *,
    own: Any = None,
    is_authority: bool = False,
    path_length: int | None = None,
    uri: str = "",
    hosts: Sequence[str] = (),
    days: float = 1,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(issuer)
        .public_key((own or key(CLIENT)).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=path_length), critical=True)
        .add_extension(_usage(is_authority=is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key((own or key(CLIENT)).public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_with.public_key()), critical=False)
    )
    if uri:
        names = [x509.UniformResourceIdentifier(uri), *(x509.DNSName(host) for host in hosts)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signed_with, hashes.SHA256())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=not is_authority,
        key_encipherment=not is_authority,
        data_encipherment=not is_authority,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def write_pem(path: Path, *chain: x509.Certificate) -> Path:
    """Write certificates in PEM, the own one first."""
    path.write_bytes(b"".join(item.public_bytes(serialization.Encoding.PEM) for item in chain))
    return path


def write_key(path: Path, number: int = CLIENT) -> Path:
    """Write a key in PEM."""
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(key(number).private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return path
