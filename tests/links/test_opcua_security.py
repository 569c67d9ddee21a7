"""A session is encrypted and connects only to trusted servers, tested with the gateway's own server."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from edge.config import OpcuaEquipmentSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.links.opcua import open_client
from edge.uaserver.application_trust import add_certificate
from edge.uaserver.certificates import OwnCertificate, renew
from tests.uaserver.running import SETTINGS, served


def pem(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption | None = None
) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


@pytest.fixture
def own(tmp_path: Path) -> OwnCertificate:
    own_certificate = renew(tmp_path / "own", "urn:test:client", ["127.0.0.1"])
    (tmp_path / "key.pem").write_bytes(pem(own_certificate.key))
    (tmp_path / "cert.pem").write_bytes(own_certificate.certificate.public_bytes(Encoding.PEM))
    (tmp_path / "trusted").mkdir()
    return own_certificate


def settings(url: str, directory: Path) -> OpcuaEquipmentSettings:
    return OpcuaEquipmentSettings(
        kind="vision",
        type_ids=("a",),
        url=url,
        cert_file=str(directory / "cert.pem"),
        key_file=str(directory / "key.pem"),
        trusted=str(directory / "trusted"),
    )


async def test_client_and_server_with_mutual_trust_connect_encrypted(tmp_path: Path, own: OwnCertificate) -> None:
    pki, clients = tmp_path / "pki", tmp_path / "clients"
    add_certificate(own.certificate, clients)
    strict = msgspec.structs.replace(SETTINGS, security="encrypted", pki=str(pki), trusted=str(clients))
    async with served(strict) as server:
        (certificate,) = pki.glob("*.der")
        add_certificate(x509.load_der_x509_certificate(certificate.read_bytes()), tmp_path / "trusted")
        async with open_client(server.endpoint, settings=settings(server.endpoint, tmp_path)) as session:
            assert (await session.find("Machines")).path.endswith(":Machines")


async def test_server_certificate_with_its_authorities_is_accepted(tmp_path: Path, own: OwnCertificate) -> None:
    pki, clients = tmp_path / "pki", tmp_path / "clients"
    add_certificate(own.certificate, clients)
    strict = msgspec.structs.replace(SETTINGS, security="encrypted", pki=str(pki), trusted=str(clients))
    async with served(strict) as server:
        (certificate,) = pki.glob("*.der")
        add_certificate(x509.load_der_x509_certificate(certificate.read_bytes()), tmp_path / "trusted")
        for endpoint in server._core.endpoints:  # noqa: SLF001  our own server sends none
            endpoint.ServerCertificate += own.certificate.public_bytes(Encoding.DER)
        async with open_client(server.endpoint, settings=settings(server.endpoint, tmp_path)) as session:
            assert (await session.find("Machines")).path.endswith(":Machines")


@pytest.mark.usefixtures("own")
async def test_unknown_server_is_not_trusted(tmp_path: Path) -> None:
    strict = msgspec.structs.replace(SETTINGS, security="encrypted", pki=str(tmp_path / "pki"))
    async with served(strict) as server:
        with pytest.raises(Unavailable, match="is not trusted"):
            async with open_client(server.endpoint, settings=settings(server.endpoint, tmp_path)):
                pass


@pytest.mark.usefixtures("own")
async def test_trusted_server_with_a_bad_certificate_is_refused(tmp_path: Path) -> None:
    strict = msgspec.structs.replace(SETTINGS, security="encrypted", pki=str(tmp_path / "pki"))
    name, now, key = x509.Name([]), datetime.now(UTC), rsa.generate_private_key(65537, 1024)  # noqa: S505 - on purpose
    weak = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1)).sign(key, SHA256())
    add_certificate(weak, tmp_path / "trusted")
    async with served(strict) as server:
        for endpoint in server._core.endpoints:  # noqa: SLF001  our own server has a good one
            endpoint.ServerCertificate = weak.public_bytes(Encoding.DER)
        with pytest.raises(Unavailable, match="cannot be used: its key is not RSA of 2048"):
            async with open_client(server.endpoint, settings=settings(server.endpoint, tmp_path)):
                pass


@pytest.mark.usefixtures("own")
async def test_unreadable_own_certificate_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("not a certificate")
    with pytest.raises(SettingsError, match=r"cert\.pem: not a certificate"):
        async with open_client("opc.tcp://127.0.0.1:1", settings=settings("opc.tcp://127.0.0.1:1", tmp_path)):
            pass


@pytest.mark.parametrize(
    ("new_key", "reported"),
    [
        (lambda: b"junk", r"key\.pem: not a private key"),
        (lambda: pem(ec.generate_private_key(ec.SECP256R1())), r"key\.pem: not an RSA key"),
        (lambda: pem(rsa.generate_private_key(65537, 2048)), r"key\.pem: not the key of our certificate"),
        (lambda: pem(rsa.generate_private_key(65537, 2048), BestAvailableEncryption(b"?")), "without a password"),
    ],
    ids=["junk", "elliptic", "another", "encrypted"],
)
@pytest.mark.usefixtures("own")
async def test_unusable_key_is_reported_before_connecting(
    tmp_path: Path, new_key: Callable[[], bytes], reported: str
) -> None:
    (tmp_path / "key.pem").write_bytes(new_key())
    with pytest.raises(SettingsError, match=reported):
        async with open_client("opc.tcp://127.0.0.1:1", settings=settings("opc.tcp://127.0.0.1:1", tmp_path)):
            pass


async def test_own_certificate_without_application_uri_is_reported(tmp_path: Path, own: OwnCertificate) -> None:
    name, now = x509.Name([]), datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, own.key.public_key(), 1, now, now + timedelta(days=1))
    plain = builder.sign(own.key, SHA256())
    (tmp_path / "cert.pem").write_bytes(plain.public_bytes(Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(b"junk")
    with pytest.raises(SettingsError) as refused:
        async with open_client("opc.tcp://127.0.0.1:1", settings=settings("opc.tcp://127.0.0.1:1", tmp_path)):
            pass
    no_uri, no_key = refused.value.problems
    assert "cert.pem: has no URI" in no_uri
    assert "key.pem: not a private key" in no_key


@pytest.mark.usefixtures("own")
async def test_half_written_trusted_file_does_not_end_the_gateway(tmp_path: Path) -> None:
    (tmp_path / "trusted" / "half.pem").write_text("-----BEGIN CERT")
    strict = msgspec.structs.replace(SETTINGS, security="encrypted", pki=str(tmp_path / "pki"))
    async with served(strict) as server:
        with pytest.raises(Unavailable, match="is not trusted"):
            async with open_client(server.endpoint, settings=settings(server.endpoint, tmp_path)):
                pass
