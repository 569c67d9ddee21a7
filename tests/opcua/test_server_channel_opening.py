"""An OpenSecureChannel is decrypted for a trusted application only, in a few blocks and once (OPC 10000-6, 6.7.2)."""

import time
from pathlib import Path

import pytest
from asyncua import ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from asyncua.ua.ua_binary import struct_to_binary
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from edge.uaserver import certificates
from edge.uaserver.server import UaServer
from tests.uaserver.clients import Application, own_certificate
from tests.uaserver.running import SETTINGS
from tests.uaserver.wire import Wire

BLOCK = 256
OAEP = padding.OAEP(mgf=padding.MGF1(algorithm=hashes.SHA1()), algorithm=hashes.SHA1(), label=None)  # noqa: S303 - the scheme of the policy


def encrypted(blocks: int) -> bytes:
    """Return blocks that the server can decrypt."""
    key = x509.load_der_x509_certificate(own_certificate()).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    return key.encrypt(bytes(BLOCK - 42), OAEP) * blocks


def asked_by(certificate: bytes, blocks: int) -> bytes:
    """Return the body of an OpenSecureChannel with the certificate in its clear header."""
    header = ua.AsymmetricAlgorithmHeader(
        SecurityPolicyURI=SecurityPolicyBasic256Sha256.URI, SenderCertificate=certificate
    )
    return bytes(struct_to_binary(header)) + encrypted(blocks)


async def seconds_of(server: UaServer, body: bytes) -> float:
    """Return the processor time in which the server refuses an OpenSecureChannel."""
    async with Wire.to(server.endpoint) as wire:
        await wire.hello()
        started = time.thread_time()
        wire.send(b"OPN", body)
        await wire.is_ended_with(ua.StatusCodes.BadSecurityChecksFailed)
        return time.thread_time() - started


def seconds_of_decryption(blocks: int) -> float:
    own = certificates.load(Path(SETTINGS.pki))
    assert own
    data = encrypted(1)
    started = time.thread_time()
    for _ in range(blocks):
        own.key.decrypt(data, OAEP)
    return time.thread_time() - started


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("who", ["friend", "stranger"])
async def test_open_of_200_blocks_is_refused_undecrypted(
    secure: UaServer, friend: Application, stranger: Application, who: str
) -> None:
    """51 KB without a login held the event loop as long as 400 decryptions; anybody has a public certificate."""
    certificate = {"friend": friend, "stranger": stranger}[who].certificate
    await seconds_of(secure, asked_by(certificate, 1))
    assert await seconds_of(secure, asked_by(certificate, 200)) < seconds_of_decryption(50)
