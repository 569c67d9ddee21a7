"""Security of a client session: the strongest policy of the server, with certificates that both sides trust."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from asyncua import Client, ua
from asyncua.crypto import security_policies
from asyncua.crypto.uacrypto import CertProperties, x509_from_der
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from edge.config import OpcuaEquipmentSettings, password_of
from edge.foundation.errors import SettingsError
from edge.foundation.text import Text
from edge.links.connection_fault import ConnectionFailed
from edge.model.equipment_connection import ConnectionFault
from edge.opcua.application_certificate import application_uris, certificate_fault, certificate_files, read_certificate

# The strongest first (OPC 10000-7); older policies are broken and not listed.
_POLICIES = (
    security_policies.SecurityPolicyAes256Sha256RsaPss,
    security_policies.SecurityPolicyAes128Sha256RsaOaep,
    security_policies.SecurityPolicyBasic256Sha256,
)
_RENEW = "Compare the clocks of both; else have it make a new one, with RSA of 2048 bits or more and SHA-256."


async def secure(client: Client, settings: OpcuaEquipmentSettings) -> None:
    """Set the user and the encryption of a client that is not connected yet; accept only a trusted server.

    Raises Unavailable when the server offers no accepted policy or is not trusted, SettingsError when our certificate
    or key cannot be used.
    """
    if settings.username:
        client.set_user(settings.username)
        client.set_password(password_of(settings))
    if settings.security == "none":
        return
    own = _own(settings.cert_file)
    if problems := [*_uri_problems(own, settings.cert_file), *_key_problems(own, settings.key_file)]:
        raise SettingsError(problems, "docs/how-to/opcua-equipment.md describes how to make both.")
    # A server compares the URI of the certificate with that of the client (OPC 10000-4, 6.1.3).
    client.application_uri = application_uris(own)[0]
    endpoints = await client.connect_and_get_server_endpoints()
    for policy in _POLICIES:
        for endpoint in endpoints:
            if (
                endpoint.SecurityPolicyUri == policy.URI
                and endpoint.SecurityMode is ua.MessageSecurityMode.SignAndEncrypt
            ):
                theirs = _trusted(endpoint.ServerCertificate, Path(settings.trusted), settings.url)
                await client.set_security(
                    policy,
                    CertProperties(own.public_bytes(Encoding.DER), "der"),
                    CertProperties(settings.key_file, "pem"),
                    server_certificate=CertProperties(theirs.public_bytes(Encoding.DER), "der"),
                )
                return
    raise _not_accepted(
        Text.of("the OPC UA server {url} offers no encryption that we take", url=settings.url), "Look at its settings."
    )


def _uri_problems(own: x509.Certificate, cert_file: str) -> Iterator[str | Text]:
    if not application_uris(own):
        yield Text.of(
            "{cert_file}: has no URI as subjectAltName, which names the gateway as an OPC UA application",
            cert_file=cert_file,
        )


def _key_problems(own: x509.Certificate, key_file: str) -> Iterator[str | Text]:
    try:
        key = load_pem_private_key(Path(key_file).read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        yield Text.of(
            "{key_file}: not a private key, in PEM and without a password, that we can read: {reason}",
            key_file=key_file,
            reason=error,
        )
        return
    if not isinstance(key, RSAPrivateKey):
        yield Text.of("{key_file}: not an RSA key, which alone the security policies of OPC UA take", key_file=key_file)
    elif key.public_key() != own.public_key():
        yield Text.of("{key_file}: not the key of our certificate", key_file=key_file)


def _trusted(der: bytes, trusted: Path, url: str) -> x509.Certificate:
    try:
        # The certificates of its authorities may follow it.
        certificate: x509.Certificate | None = x509_from_der(der)
    except ValueError as error:
        raise _not_accepted(
            Text.of("the OPC UA server {url} has a certificate that we cannot read: {reason}", url=url, reason=error)
        ) from error
    if certificate is None:
        raise _not_accepted(Text.of("the OPC UA server {url} has no certificate", url=url))
    if fault := certificate_fault(certificate, datetime.now(UTC)):
        raise _not_accepted(
            Text.of("the certificate of the OPC UA server {url} cannot be used: {fault}", url=url, fault=fault), _RENEW
        )
    if certificate not in (entry.certificate for entry in certificate_files(trusted)):
        name = certificate.subject.rfc4514_string()
        raise _not_accepted(
            Text.of("the OPC UA server {url} is not trusted: {name}", url=url, name=name),
            Text.of("If it is yours, copy its certificate to {trusted}.", trusted=trusted),
        )
    return certificate


def _not_accepted(message: str | Text, advice: str | Text = "") -> ConnectionFailed:
    return ConnectionFailed(ConnectionFault.CERTIFICATE, message, advice)


def _own(cert_file: str) -> x509.Certificate:
    try:
        return read_certificate(Path(cert_file))
    except (OSError, ValueError) as error:
        raise SettingsError(
            [Text.of("{cert_file}: not a certificate that we can read: {reason}", cert_file=cert_file, reason=error)]
        ) from error
