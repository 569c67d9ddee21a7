"""Requests for a new certificate of the gateway, and the check of what an authority has issued."""

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from edge.opcua.application_certificate import MOST_IN_CHAIN, application_uris, certificate_fault
from edge.uaserver.certificates import OwnCertificate, are_a_pair


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
        raise UnusableCertificate(fault)
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
