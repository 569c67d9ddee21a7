"""Local peers are distinguished from remote ones; a role includes the permissions of all lower roles."""

from pathlib import Path

import pytest
from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto import uacrypto
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256, SecurityPolicyNone, sign_asymmetric
from asyncua.ua.ua_binary import Primitives
from cryptography import x509

from edge.model.user import Role
from edge.opcua.access import Peer, read_certificate_token, read_password
from edge.opcua.application_certificate import chain_bytes
from edge.uaserver import certificates
from tests.passwords import PASSWORD
from tests.uaserver import pki
from tests.uaserver.clients import own_certificate
from tests.uaserver.running import SETTINGS


@pytest.mark.parametrize(
    ("address", "is_local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.0.2.7", False),
     ("::ffff:192.0.2.7", False), ("fe80::1", False), ("", False), ("localhost", False)],
)  # fmt: skip
def test_only_loopback_addresses_are_local(address: str, is_local: bool) -> None:  # noqa: FBT001 - a table
    assert Peer(address, is_encrypted=False).is_local is is_local


def test_roles_are_ordered_by_permission() -> None:
    assert Role.OBSERVER < Role.OPERATOR < Role.ENGINEER


NONCE = b"n" * 32


def our_policy() -> SecurityPolicyBasic256Sha256:
    own = certificates.load_or_make(Path(SETTINGS.pki), "urn:x", ())
    return SecurityPolicyBasic256Sha256(
        own.certificate, own.certificate, own.key, ua.MessageSecurityMode.SignAndEncrypt
    )


def encrypted(password: str, nonce: bytes) -> ua.UserNameIdentityToken:
    our_policy()
    key = x509.load_der_x509_certificate(own_certificate()).public_key()
    secret = uacrypto.encrypt_rsa_oaep(key, Primitives.Bytes.pack(password.encode() + nonce))
    return ua.UserNameIdentityToken("username", "alice", secret, SecurityPolicyBasic256Sha256.AsymmetricEncryptionURI)


def test_password_with_another_nonce_is_refused() -> None:
    policy, nonce = our_policy(), b"n" * 32
    assert read_password(policy, nonce, encrypted(PASSWORD, nonce)) == ("alice", PASSWORD)
    assert read_password(policy, nonce, encrypted("", nonce)) == ("alice", "")
    for wrong in (b"o" * 32, b"", b"n" * 31):
        with pytest.raises(ServiceError):
            read_password(policy, nonce, encrypted(PASSWORD, wrong))


@pytest.mark.parametrize("algorithm", ["http://www.w3.org/2001/04/xmlenc#rsa-1_5", "urn:none"])
def test_password_encrypted_with_another_algorithm_is_refused(algorithm: str) -> None:
    token = encrypted(PASSWORD, b"n" * 32)
    token.EncryptionAlgorithm = algorithm
    with pytest.raises(ServiceError):
        read_password(our_policy(), b"n" * 32, token)


@pytest.mark.parametrize("secret", [b"", b"x", bytes(255), bytes(256), bytes(1000)])
def test_unreadable_password_is_refused(secret: bytes) -> None:
    token = encrypted(PASSWORD, b"n" * 32)
    token.Password = secret
    with pytest.raises(ServiceError):
        read_password(our_policy(), b"n" * 32, token)


def test_password_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ServiceError):
        read_password(our_policy(), b"", ua.UserNameIdentityToken("", "alice", b"\xff\xfe", ""))


def test_certificate_is_proved_by_a_signature_of_the_server_nonce() -> None:
    policy, user = our_policy(), pki.self_signed("alice")
    token = ua.X509IdentityToken(CertificateData=chain_bytes([user]))
    for data, is_proved in (
        (policy.host_certificate + NONCE, True),
        (policy.host_certificate + b"o" * 32, False),
        (NONCE, False),
    ):
        signature, algorithm = sign_asymmetric(pki.key(pki.CLIENT), data, policy.URI)
        certificate_token = read_certificate_token(policy, NONCE, token, ua.SignatureData(algorithm, signature))
        assert (certificate_token.chain, certificate_token.is_proved) == ((user,), is_proved)
    assert not read_certificate_token(policy, NONCE, token, None).is_proved
    assert not read_certificate_token(policy, NONCE, token, ua.SignatureData(policy.AsymmetricSignatureURI)).is_proved


def test_certificate_token_on_an_unencrypted_channel_is_refused() -> None:
    token = ua.X509IdentityToken(CertificateData=chain_bytes([pki.self_signed("alice")]))
    with pytest.raises(ServiceError):
        read_certificate_token(SecurityPolicyNone(), NONCE, token, ua.SignatureData("", b""))
