"""Only trusted applications can connect; a change of trust applies without a restart."""

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from edge.opcua.application_certificate import certificate_files
from edge.uaserver.application_trust import RejectedList, TrustList, find_certificates
from edge.uaserver.certificates import thumbprint
from tests.uaserver import pki

KEY = pki.key(pki.CLIENT)
OTHER_KEY = pki.key(1)
ADDRESS = "10.0.0.1"


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def certificate(
    name: str = "client",
    *,
    issuer: str = "",
    signed_with: rsa.RSAPrivateKey = KEY,
    is_authority: bool = False,
    uri: str = "urn:client",
    days: int = 1,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer or name))
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if uri:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=False
        )
    return builder.sign(signed_with, hashes.SHA256())


def add_certificate(
    directory: Path, given: x509.Certificate, form: serialization.Encoding = serialization.Encoding.DER
) -> None:
    suffix = "pem" if form is serialization.Encoding.PEM else "der"
    (directory / f"{thumbprint(given)}.{suffix}").write_bytes(given.public_bytes(form))


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    (tmp_path / "trusted").mkdir()
    return tmp_path / "trusted"


@pytest.fixture
def trust(trusted: Path) -> TrustList:
    return TrustList(trusted)


@pytest.fixture
def rejected(tmp_path: Path) -> Path:
    (tmp_path / "rejected").mkdir()
    return tmp_path / "rejected"


@pytest.mark.parametrize("form", [serialization.Encoding.DER, serialization.Encoding.PEM])
def test_trust_changes_apply_while_the_server_runs(
    trust: TrustList, trusted: Path, form: serialization.Encoding
) -> None:
    client = certificate()
    assert trust.fault(client) == "it is not trusted"
    add_certificate(trusted, client, form=form)
    assert trust.fault(client) == ""
    next(trusted.iterdir()).unlink()
    assert trust.fault(client) == "it is not trusted"


def test_missing_trust_directory_trusts_no_client(tmp_path: Path) -> None:
    assert TrustList(tmp_path / "none").fault(certificate()) == "it is not trusted"


def test_application_of_a_trusted_authority_is_trusted(trust: TrustList, trusted: Path) -> None:
    add_certificate(trusted, certificate("plant", is_authority=True, uri=""))
    assert trust.fault(certificate(issuer="plant")) == ""
    assert trust.fault(certificate(issuer="plant", signed_with=OTHER_KEY)) == "it is not trusted"


@pytest.mark.parametrize("uri", ["urn:client", ""])
def test_certificate_issued_by_a_trusted_application_is_refused(trust: TrustList, trusted: Path, uri: str) -> None:
    application = certificate("plant", is_authority=bool(uri), uri=uri)
    add_certificate(trusted, application)
    assert trust.fault(application) == ""
    assert trust.fault(certificate(issuer="plant")) == "it is not trusted"


def test_certificate_revoked_by_its_authority_is_refused(trust: TrustList, trusted: Path) -> None:
    add_certificate(trusted, certificate("plant", is_authority=True, uri=""))
    lost, kept = certificate(issuer="plant"), certificate("kept", issuer="plant")
    assert trust.fault(lost) == ""
    (trusted / "plant.crl").write_bytes(revocation(lost, "plant", KEY))
    assert trust.fault(lost) == "its authority has revoked it"
    assert trust.fault(kept) == ""


def test_revocation_list_with_an_invalid_signature_is_ignored(trust: TrustList, trusted: Path) -> None:
    client = certificate(issuer="plant")
    add_certificate(trusted, certificate("plant", is_authority=True, uri=""))
    (trusted / "forged.crl").write_bytes(revocation(client, "plant", OTHER_KEY))
    (trusted / "broken.crl").write_bytes(b"nonsense")
    assert trust.fault(client) == ""


def revocation(lost: x509.Certificate, issuer: str, key: rsa.RSAPrivateKey) -> bytes:
    now = datetime.now(UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(lost.serial_number).revocation_date(now).build()
    builder = x509.CertificateRevocationListBuilder().issuer_name(named(issuer)).add_revoked_certificate(entry)
    signed = builder.last_update(now).next_update(now + timedelta(days=1)).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.DER)


def test_expired_certificate_is_refused_even_if_trusted(trust: TrustList, trusted: Path) -> None:
    old = certificate(days=-1)
    add_certificate(trusted, old)
    assert trust.fault(old) == "it has expired or is not valid yet"


def test_file_that_is_not_a_certificate_is_ignored(trust: TrustList, trusted: Path) -> None:
    client = certificate()
    add_certificate(trusted, client)
    (trusted / "notes.pem").write_text("-----BEGIN nonsense")
    (trusted / "README").write_text("who is who")
    assert trust.fault(client) == ""


async def test_rejected_certificates_are_stored_up_to_a_limit(rejected: Path) -> None:
    for number in range(RejectedList.MOST):
        file = rejected / f"{number}.der"
        file.write_bytes(b"x")
        os.utime(file, (number, number))
    client, rejected_list = certificate(), RejectedList(rejected)
    await rejected_list.keep(client, ADDRESS)
    await rejected_list.keep(client, ADDRESS)
    left = names_in(rejected)
    assert len(left) == RejectedList.MOST
    assert "0.der" not in left
    assert [entry.certificate for entry in certificate_files(rejected)] == [client]


async def test_rejected_certificates_are_stored_at_a_limited_rate(rejected: Path) -> None:
    now = 0.0
    rejected_list = RejectedList(rejected, lambda: now)
    strangers = [certificate(f"stranger {number}") for number in range(RejectedList.MOST_NEW + 2)]
    for number, stranger in enumerate(strangers):
        await rejected_list.keep(stranger, f"10.0.0.{number}")
    assert {entry.certificate for entry in certificate_files(rejected)} == set(strangers[:-2])
    now = RejectedList.WITHIN_S
    await rejected_list.keep(strangers[-1], ADDRESS)
    assert strangers[-1] in [entry.certificate for entry in certificate_files(rejected)]


async def test_flood_of_one_address_leaves_room_for_another(rejected: Path) -> None:
    rejected_list = RejectedList(rejected)
    for number in range(RejectedList.MOST_NEW):
        await rejected_list.keep(certificate(f"stranger {number}"), ADDRESS)
    newcomer = certificate("newcomer")
    await rejected_list.keep(newcomer, "10.0.0.9")
    stored = {entry.certificate for entry in certificate_files(rejected)}
    assert newcomer in stored
    assert len(stored) == RejectedList.MOST_NEW_OF_ADDRESS + 1


async def test_repeated_rejected_certificate_is_counted_once(rejected: Path) -> None:
    rejected_list = RejectedList(rejected)
    persistent, newcomer = certificate("persistent"), certificate("newcomer")
    for _ in range(RejectedList.MOST_NEW_OF_ADDRESS):
        await rejected_list.keep(persistent, ADDRESS)
    await rejected_list.keep(newcomer, ADDRESS)
    assert {entry.certificate for entry in certificate_files(rejected)} == {persistent, newcomer}


async def test_rejected_certificate_left_empty_by_a_power_cut_is_stored_again(rejected: Path) -> None:
    client = certificate()
    (rejected / f"{thumbprint(client)}.der").touch()
    await RejectedList(rejected).keep(client, ADDRESS)
    assert [entry.certificate for entry in certificate_files(rejected)] == [client]


async def test_rejected_certificate_is_written_outside_the_event_loop(
    rejected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    written_by: list[threading.Thread] = []
    replace = os.replace

    def replaced(partial: Path, path: Path) -> None:
        written_by.append(threading.current_thread())
        replace(partial, path)

    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(os, "replace", replaced)
    await RejectedList(rejected).keep(certificate(), ADDRESS)
    assert len(written_by) == 1
    assert threading.current_thread() not in written_by
    assert synced == []


async def test_unwritable_rejected_directory_is_logged(tmp_path: Path) -> None:
    (tmp_path / "rejected").write_text("a file where a directory should be")
    with structlog.testing.capture_logs() as logs:
        await RejectedList(tmp_path / "rejected").keep(certificate(), ADDRESS)
    assert [record["event"] for record in logs] == ["rejected certificate not stored"]


def test_certificate_is_found_by_its_thumbprint_prefix(trusted: Path) -> None:
    client = certificate()
    add_certificate(trusted, client)
    digits = thumbprint(client)
    spelled = ":".join(digits[at : at + 2].lower() for at in range(0, len(digits), 2))
    for wanted in (digits, digits[:6], spelled):
        assert [entry.certificate for entry in find_certificates([trusted], wanted)] == [client]
    assert find_certificates([trusted], "") == []
    assert find_certificates([trusted], "not a thumbprint") == []
