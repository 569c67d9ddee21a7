"""Reads the user tokens of ActivateSession: passwords and certificates (OPC 10000-4, 7.40)."""

import hmac
import struct
from typing import Any

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.crypto.uacrypto import InvalidSignature as UaInvalidSignature
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec import Struct

from edge.opcua.application_certificate import read_chain

_LENGTH = struct.Struct("<I")


class CertificateToken(Struct, frozen=True):
    """The certificate of a user with its chain, and whether the client has its key."""

    chain: tuple[x509.Certificate, ...]
    is_proved: bool


def read_password(policy: SecurityPolicy, nonce: bytes, token: ua.UserNameIdentityToken) -> tuple[str, str]:
    """Return name and password of a token (OPC 10000-4, 7.40.2.2). Raises BadIdentityTokenInvalid.

    The password is plain text (`AccessControl` requires an encrypted channel), or encrypted once more by the algorithm
    of the channel together with the last server nonce, which prevents replay.
    """
    try:
        secret = token.Password or b""
        if token.EncryptionAlgorithm:
            if token.EncryptionAlgorithm != policy.AsymmetricEncryptionURI:
                raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
            plain = policy.asymmetric_cryptography.Decryptor.decrypt(secret)
            (length,) = _LENGTH.unpack_from(plain)
            password, answered = plain[4 : 4 + length - len(nonce)], plain[4 + length - len(nonce) : 4 + length]
            if not hmac.compare_digest(answered, nonce):
                raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
            secret = password
        return token.UserName or "", secret.decode()
    except (ValueError, struct.error) as error:
        raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid) from error


def read_certificate_token(
    policy: SecurityPolicy, nonce: bytes, token: ua.X509IdentityToken, signature: ua.SignatureData | None
) -> CertificateToken:
    """Read the certificate of a user, and verify the signature by the algorithm of the channel (OPC 10000-4, 7.40.2.4).

    Raises BadIdentityTokenInvalid for a damaged certificate, and on a channel without security.
    """
    try:
        chain = read_chain(token.CertificateData or b"")
        key = chain[0].public_key()
    except (ValueError, IndexError, UnsupportedAlgorithm) as error:
        raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid) from error
    if not policy.AsymmetricSignatureURI or not isinstance(key, rsa.RSAPublicKey):
        raise ServiceError(ua.StatusCodes.BadIdentityTokenInvalid)
    if signature is None or signature.Algorithm != policy.AsymmetricSignatureURI:
        return CertificateToken(chain, is_proved=False)
    # The class verifies with the key of any certificate, by the algorithm of the policy.
    verifier = type(policy.asymmetric_cryptography.Verifier)(chain[0])
    return CertificateToken(chain, has_signed(policy, verifier, nonce, signature.Signature))


def has_signed(policy: SecurityPolicy, verifier: Any, nonce: bytes, signature: bytes | None) -> bool:
    """Return whether a signature is that of the server's certificate and its last nonce.

    Some clients sign the certificate alone, others with the chain that they received with it.
    """
    own = policy.host_certificate or b""
    chain = b"".join(policy.host_certificate_chain)
    return any(_verifies(verifier, value + nonce, signature) for value in {own, own + chain})


def _verifies(verifier: Any, data: bytes, signature: bytes | None) -> bool:
    try:
        verifier.verify(data, signature)
    except (InvalidSignature, UaInvalidSignature, TypeError):
        return False
    return True
