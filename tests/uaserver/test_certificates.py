"""The certificate of the gateway: generated once, valid for the application, its key readable by the owner only."""

import errno
import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from edge.config import OpcuaSettings, Settings
from edge.foundation.errors import SettingsError, Unavailable
from edge.opcua.application_certificate import application_uris, host_names
from edge.uaserver import certificates
from edge.uaserver.certificates import UnusableCertificate, check_issued, read_key, read_subject, signing_request
from tests.uaserver import pki

URI = "urn:gateway:microdcs-edge:edge"
HOSTS = ("gateway", "192.0.2.7", "2001:db8::7")


def test_certificate_contains_the_application_uri_and_every_host(tmp_path: Path) -> None:
    certificate = certificates.load_or_make(tmp_path, URI, HOSTS).certificate
    assert application_uris(certificate) == [URI]
    assert host_names(certificate) == list(HOSTS)


def test_certificate_is_kept_after_a_restart(tmp_path: Path) -> None:
    first = certificates.load_or_make(tmp_path, URI, HOSTS)
    again = certificates.load_or_make(tmp_path, "urn:other", ("elsewhere",))
    assert again.certificate == first.certificate
    assert again.key.private_numbers() == first.key.private_numbers()


def test_key_file_is_readable_by_the_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "pki"
    own = certificates.load_or_make(directory, URI, HOSTS)
    assert (directory / "own.pem").stat().st_mode & 0o777 == 0o600
    # Members of the group read our certificate and the rejected ones, no other user does.
    assert directory.stat().st_mode & 0o777 == 0o750
    assert x509.load_der_x509_certificate((directory / "own.der").read_bytes()) == own.certificate
    assert b"PRIVATE" not in (directory / "own.der").read_bytes()


def test_key_readable_by_others_is_refused(tmp_path: Path) -> None:
    certificates.load_or_make(tmp_path, URI, HOSTS)
    (tmp_path / "own.pem").chmod(0o640)
    with pytest.raises(SettingsError, match="open to others"):
        certificates.load_or_make(tmp_path, URI, HOSTS)


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\n", b"\xff" * 100])
def test_error_names_the_damaged_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "own.pem"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(SettingsError, match=r"own.pem is damaged"):
        certificates.load_or_make(tmp_path, URI, HOSTS)


@pytest.mark.parametrize("damage", [{"d": 2}, {"d": 2, "dmp1": 2}, {"d": 2, "iqmp": 1}])
def test_a_damaged_key_signs_correctly_or_is_refused(tmp_path: Path, damage: dict[str, int]) -> None:
    own = certificates.load_or_make(tmp_path, URI, HOSTS)
    rsa_private_numbers = own.key.private_numbers()
    parts = {name: getattr(rsa_private_numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    parts |= {name: parts[name] + change for name, change in damage.items()}
    damaged = rsa.RSAPrivateNumbers(**parts, public_numbers=rsa_private_numbers.public_numbers).private_key(
        unsafe_skip_rsa_key_validation=True
    )
    encoded = damaged.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "own.pem").write_bytes(encoded + own.certificate.public_bytes(serialization.Encoding.PEM))
    if set(damage) == {"d"}:
        # The exponent is not used while the other parts are right.
        loaded = certificates.load_or_make(tmp_path, URI, HOSTS)
        signature = loaded.key.sign(b"x", padding.PKCS1v15(), hashes.SHA256())
        own.key.public_key().verify(signature, b"x", padding.PKCS1v15(), hashes.SHA256())
        return
    with pytest.raises(SettingsError, match=r"own.pem do not belong together"):
        certificates.load_or_make(tmp_path, URI, HOSTS)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    own = certificates.load_or_make(tmp_path / "one", URI, HOSTS)
    other = certificates.load_or_make(tmp_path / "other", URI, HOSTS)
    path = tmp_path / "one" / "own.pem"
    key, separator, _ = path.read_bytes().partition(b"-----BEGIN CERTIFICATE")
    assert separator
    path.write_bytes(key + other.certificate.public_bytes(serialization.Encoding.PEM))
    assert own.certificate != other.certificate
    with pytest.raises(SettingsError, match="do not belong together"):
        certificates.load_or_make(tmp_path / "one", URI, HOSTS)


def test_unwritable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("a file where a directory should be")
    with pytest.raises(SettingsError, match=r"opcua.pki: .*pki"):
        certificates.load_or_make(tmp_path / "pki", URI, HOSTS)


def test_full_disk_at_first_start_reports_the_certificate_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(Unavailable, match=r"opcua.pki: .*own.pem: No space left on device") as caught:
        certificates.load_or_make(tmp_path, URI, HOSTS)
    assert "Free space on the disk" in caught.value.advice


def test_renewal_generates_a_new_key(tmp_path: Path) -> None:
    first = certificates.load_or_make(tmp_path, URI, HOSTS)
    renewed = certificates.renew(tmp_path, URI, HOSTS)
    assert certificates.load_or_make(tmp_path, URI, HOSTS).certificate == renewed.certificate != first.certificate
    assert renewed.key.private_numbers() != first.key.private_numbers()
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give something away")
def test_files_created_by_root_belong_to_the_service_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 4840, 4840)
    certificates.renew(tmp_path / "pki", URI, HOSTS)
    for path in (tmp_path / "pki", tmp_path / "pki" / "own.pem", tmp_path / "pki" / "own.der"):
        assert (path.stat().st_uid, path.stat().st_gid) == (4840, 4840)


def test_certificate_near_expiry_or_with_a_renamed_host_causes_a_warning(tmp_path: Path) -> None:
    certificate = certificates.load_or_make(tmp_path, URI, HOSTS).certificate
    now = datetime.now(UTC)
    end = certificate.not_valid_after_utc
    assert list(map(str, certificates.warnings(certificate, URI, now))) == []
    assert list(map(str, certificates.warnings(certificate, URI, end - timedelta(days=10)))) == [
        "it expires in 10 days"
    ]
    assert list(map(str, certificates.warnings(certificate, URI, end + timedelta(days=1)))) == ["it has expired"]
    (warning,) = map(str, certificates.warnings(certificate, "urn:renamed", now))
    assert "urn:renamed" in warning


def test_openssl_reads_the_own_certificate(tmp_path: Path) -> None:
    certificates.load_or_make(tmp_path, URI, HOSTS)
    printed = subprocess.check_output(
        ["openssl", "x509", "-in", tmp_path / "own.der", "-inform", "DER", "-noout", "-text"], text=True
    )
    for expected in (f"URI:{URI}", "DNS:gateway", "IP Address:192.0.2.7", "Data Encipherment", "sha256", "2048 bit"):
        assert expected in printed


def test_thumbprint_equals_the_one_shown_by_clients(tmp_path: Path) -> None:
    certificate = certificates.load_or_make(tmp_path, URI, HOSTS).certificate
    assert certificates.thumbprint(certificate) == certificate.fingerprint(hashes.SHA1()).hex().upper()  # noqa: S303


def test_wildcard_address_is_not_a_host_name_of_the_certificate() -> None:
    hosts = list(certificates.own_hosts("0.0.0.0"))  # noqa: S104
    assert "0.0.0.0" not in hosts  # noqa: S104
    assert {"localhost", "127.0.0.1"} <= set(hosts)
    assert next(certificates.own_hosts("gateway.example.com")) == "gateway.example.com"


def test_missing_address_is_a_fault_of_a_self_made_certificate(tmp_path: Path) -> None:
    certificate = certificates.load_or_make(tmp_path, URI, ("Gateway", "192.0.2.7", "2001:db8::7")).certificate
    now = datetime.now(UTC)
    named = ("gateway", "GATEWAY", "192.0.2.7", "2001:DB8:0::7", "2001:db8::7%eth0")
    assert list(map(str, certificates.warnings(certificate, URI, now, named))) == []
    (fault,) = map(str, certificates.warnings(certificate, URI, now, ("192.0.2.7", "192.0.2.8", "line.example.com")))
    assert fault == "it does not name 192.0.2.8, line.example.com"


def test_certificate_of_an_authority_names_what_the_authority_decided(tmp_path: Path) -> None:
    own = certificates.load_or_make(tmp_path, URI, HOSTS)
    request = x509.load_der_x509_csr(signing_request(own, own.key))
    issued = pki.root().sign(request)
    assert issued.subject == own.certificate.subject
    assert list(map(str, certificates.warnings(issued, URI, datetime.now(UTC), ("192.0.2.8",)))) == []


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("opc.tcp://127.0.0.1:4840", set()),
        ("opc.tcp://localhost:4840", set()),
        ("opc.tcp://192.0.2.9:4840", {"192.0.2.9"}),
        ("opc.tcp://gateway.example.com:4840", {"gateway.example.com"}),
    ],
)
def test_reachable_hosts_are_those_where_a_server_listens(endpoint: str, expected: set[str]) -> None:
    opcua = OpcuaSettings(endpoint=endpoint)
    listening = certificates.listening_hosts(Settings(opcua=opcua))
    assert set(certificates.reachable_hosts(opcua, *listening)) == expected


def test_every_reachable_host_is_named_by_a_new_certificate(tmp_path: Path) -> None:
    """Else a certificate would be renewed again and again."""
    opcua = OpcuaSettings(endpoint="opc.tcp://0.0.0.0:4840", hosts=("line.example.com",), advertise=True)
    listening = ("0.0.0.0", "::", "GATEWAY.example.com", "fe80::1%eth0")  # noqa: S104
    own = certificates.load_or_make(tmp_path, URI, certificates.server_hosts(opcua, *listening))
    reachable = list(certificates.reachable_hosts(opcua, *listening))
    assert {"line.example.com", f"{socket.gethostname()}.local"} <= set(reachable)
    assert list(map(str, certificates.warnings(own.certificate, URI, datetime.now(UTC), reachable))) == []


ROOT = pki.root("plant")
LINE = ROOT.authority("line", 2)
KEY = pki.key(pki.CLIENT)


def check(certificate: x509.Certificate, *issuers: x509.Certificate) -> certificates.OwnCertificate:
    return check_issued(certificate, issuers, [pki.key(9), KEY], URI, datetime.now(UTC))


def test_certificate_request_has_the_names_of_the_current_certificate(tmp_path: Path) -> None:
    own = certificates.load_or_make(tmp_path, URI, ("gateway", "192.0.2.7"))
    request = x509.load_der_x509_csr(signing_request(own, KEY))
    assert request.is_signature_valid
    assert request.subject == own.certificate.subject
    names = x509.SubjectAlternativeName
    expected = own.certificate.extensions.get_extension_for_class(names).value
    assert request.extensions.get_extension_for_class(names).value == expected


@pytest.mark.parametrize("text", ["CN=gateway,O=plant", "CN=gateway/O=plant", "/CN=gateway/O=plant/"])
def test_subject_is_parsed_with_commas_or_slashes(text: str) -> None:
    name = read_subject(text)
    assert name is not None
    assert [item.value for item in name] == ["gateway", "plant"]


def test_empty_subject_keeps_the_current_subject() -> None:
    assert read_subject(" ") is None


def test_certificate_chain_is_sorted() -> None:
    certificate = LINE.issue("gateway", uri=URI)
    own = check(certificate, ROOT.certificate, LINE.certificate)
    assert own.chain == (certificate, LINE.certificate, ROOT.certificate)
    assert own.key is KEY


@pytest.mark.parametrize(
    ("certificate", "issuers", "reason"),
    [
        (LINE.issue("gateway", uri="urn:other"), (), "another application"),
        (LINE.issue("gateway", uri=URI, days=-1), (), "expired"),
        (LINE.issue("gateway", uri=URI, own=pki.key(8)), (), "another key"),
        (LINE.issue("gateway", uri=URI), (ROOT.certificate,), "does not belong to the chain"),
    ],
)
def test_an_unusable_certificate_is_refused_with_the_reason(
    certificate: x509.Certificate, issuers: Any, reason: str
) -> None:
    with pytest.raises(UnusableCertificate, match=reason):
        check(certificate, *issuers)


@pytest.mark.parametrize("pem", [b"", b"garbage", b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_refused(pem: bytes) -> None:
    with pytest.raises(UnusableCertificate):
        read_key(pem)
