"""The validation of certificates, shared by the OPC UA server and the OPC UA client."""

import ipaddress
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from edge.opcua.application_certificate import (
    MOST_IN_CHAIN,
    application_uris,
    certificate_fault,
    certificate_files,
    chain_bytes,
    host_names,
    read_certificate,
    read_chain,
    user_name,
)
from tests.uaserver import pki

KEY = pki.key(pki.CLIENT)
NOW = datetime.now(UTC)
DAY = timedelta(days=1)

# The identifiers of algorithms differ in their last byte (RFC 8017, appendix C).
SHA256_WITH_RSA = bytes.fromhex("2a864886f70d01010b")
RSA = bytes.fromhex("2a864886f70d010101")
MD5, SHA1, UNKNOWN = 4, 5, 0x7F


def certificate(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = KEY, *names: x509.GeneralName
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "device")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - DAY, NOW + DAY)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256())


def altered(algorithm: bytes, last: int) -> x509.Certificate:
    """Return a certificate that names another algorithm, as no library generates one with a broken algorithm."""
    der = certificate().public_bytes(Encoding.DER)
    return x509.load_der_x509_certificate(der.replace(algorithm, algorithm[:-1] + bytes([last])))


def test_current_certificate_is_valid() -> None:
    assert str(certificate_fault(certificate(), NOW) or "") == ""


@pytest.mark.parametrize(
    "new_key",
    [
        partial(rsa.generate_private_key, 65537, 1024),
        partial(ec.generate_private_key, ec.SECP256R1()),
    ],
    ids=["short", "elliptic"],
)
def test_unsupported_key_is_a_fault(new_key: Callable[[], rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey]) -> None:
    assert str(certificate_fault(certificate(new_key()), NOW) or "") == "its key is not RSA of 2048 to 4096 bits"


@pytest.mark.parametrize("weak", [MD5, SHA1])
def test_a_weak_hash_is_a_fault(weak: int) -> None:
    assert str(certificate_fault(altered(SHA256_WITH_RSA, weak), NOW) or "") == "it is signed with a weak hash"


@pytest.mark.parametrize("algorithm", [SHA256_WITH_RSA, RSA])
def test_an_unknown_key_or_signature_algorithm_is_a_fault(algorithm: bytes) -> None:
    fault = "its key or its signature is of a kind that we do not know"
    assert str(certificate_fault(altered(algorithm, UNKNOWN), NOW) or "") == fault


@pytest.mark.parametrize("now", [NOW - 2 * DAY, NOW + 2 * DAY])
def test_certificate_outside_its_validity_period_is_a_fault(now: datetime) -> None:
    assert str(certificate_fault(certificate(), now) or "") == "it has expired or is not valid yet"


def test_application_uri_and_hosts_are_read_from_a_certificate() -> None:
    names = [
        x509.UniformResourceIdentifier("urn:device"),
        x509.DNSName("device"),
        x509.IPAddress(ipaddress.ip_address("192.0.2.7")),
    ]
    made = certificate(KEY, *names)
    assert application_uris(made) == ["urn:device"]
    assert host_names(made) == ["device", "192.0.2.7"]


def test_certificate_without_application_and_hosts_is_read() -> None:
    assert application_uris(certificate()) == []
    assert host_names(certificate()) == []


def with_names(content: bytes, instead: bytes) -> x509.Certificate:
    """Return a certificate for `urn:device` with an unknown extension; `content` is replaced after signing."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "device")])
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, NOW - DAY, NOW + DAY)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier("urn:device")]), False)
    builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.99"), b"\x30\x00"), False)
    der = builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)
    assert content in der
    return x509.load_der_x509_certificate(der.replace(content, instead))


TWICE = with_names(b"\x55\x1d\x63", b"\x55\x1d\x11")
OF_AN_OLD_KIND = with_names(b"\x86\x0aurn:device", b"\xa3\x0aurn:device")
OF_NO_KIND = with_names(b"\x86\x0aurn:device", b"\x8a\x0aurn:device")


@pytest.mark.parametrize("made", [TWICE, OF_AN_OLD_KIND, OF_NO_KIND], ids=["twice", "X.400", "unknown"])
def test_unreadable_names_of_a_certificate_are_empty(made: x509.Certificate) -> None:
    assert application_uris(made) == []
    assert host_names(made) == []


def test_duplicate_extension_is_a_fault() -> None:
    assert str(certificate_fault(TWICE, NOW) or "") == "one of its extensions is there twice"


@pytest.mark.parametrize("made", [OF_AN_OLD_KIND, OF_NO_KIND], ids=["X.400", "unknown"])
def test_unreadable_names_of_a_certificate_are_accepted(made: x509.Certificate) -> None:
    assert str(certificate_fault(made, NOW) or "") == ""


@pytest.mark.parametrize(
    ("form", "before"), [(Encoding.DER, b""), (Encoding.PEM, b""), (Encoding.PEM, b"subject=CN = device\n\n")]
)
def test_certificate_is_read_as_der_or_pem(tmp_path: Path, form: Encoding, before: bytes) -> None:
    made = certificate()
    (tmp_path / "device.crt").write_bytes(before + made.public_bytes(form))
    assert read_certificate(tmp_path / "device.crt") == made


def test_invalid_file_in_a_certificate_directory_is_logged(tmp_path: Path) -> None:
    made = certificate()
    (tmp_path / "device.der").write_bytes(made.public_bytes(Encoding.DER))
    (tmp_path / "half.pem").write_text("-----BEGIN CERT")
    (tmp_path / "README").write_text("who is who")
    with structlog.testing.capture_logs() as logs:
        assert [(entry.path.name, entry.certificate) for entry in certificate_files(tmp_path)] == [("device.der", made)]
    assert [Path(record["file"]).name for record in logs] == ["half.pem"]


def test_missing_directory_has_no_certificates(tmp_path: Path) -> None:
    assert list(certificate_files(tmp_path / "none")) == []


def test_certificate_chain_is_unchanged_after_write_and_read() -> None:
    own = certificate()
    assert read_chain(b"") == ()
    for length in range(1, MOST_IN_CHAIN + 1):
        assert read_chain(chain_bytes([own] * length)) == (own,) * length
    with pytest.raises(ValueError, match="too long"):
        read_chain(chain_bytes([own] * (MOST_IN_CHAIN + 1)))
    assert user_name(own) == "device"


@given(st.binary(max_size=40), st.integers(0, 700))
def test_damaged_chain_raises_value_error(garbage: bytes, size: int) -> None:
    for data in (garbage, chain_bytes([CERTIFICATE]) + garbage, chain_bytes([CERTIFICATE])[:size] + garbage):
        try:
            certificates = read_chain(data)
        except ValueError:
            continue
        assert chain_bytes(certificates) == data


CERTIFICATE = certificate()
