"""Certificates for the tests of MessagePack-RPC on TLS: an authority, and those that it signed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one who is vouched for."""

    cert_file: str
    key_file: str
    ca_file: str


class Authority:
    """Vouches for a day for who may call and who may be called on the loopback address."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, directory.name)])
        directory.mkdir()
        self.file = directory / "ca.pem"
        certificate = self._build(self._name, self._key.public_key(), authority=True)
        self.file.write_bytes(certificate.public_bytes(Encoding.PEM))

    def issue(self, name: str) -> Files:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._build(subject, key.public_key(), authority=False)
        cert_file, key_file = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        cert_file.write_bytes(certificate.public_bytes(Encoding.PEM))
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return Files(str(cert_file), str(key_file), str(self.file))

    def _build(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, *, authority: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        own = self._key.public_key()
        return (
            x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(_usage(authority=authority), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
