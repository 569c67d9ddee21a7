"""Only trusted applications can connect, as soon as an administrator trusts them."""

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

from edge.opcua.x509 import certificate_files
from edge.uaserver.certificates import thumbprint
from edge.uaserver.trust import RejectedList, TrustList, find_certificates

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


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
def test_trust_is_given_and_taken_while_the_server_runs(
    trust: TrustList, trusted: Path, form: serialization.Encoding
) -> None:
    client = certificate()
    assert trust.fault(client) == "it is not trusted"
    add_certificate(trusted, client, form=form)
    assert trust.fault(client) == ""
    next(trusted.iterdir()).unlink()
    assert trust.fault(client) == "it is not trusted"


def test_a_missing_directory_trusts_no_client(tmp_path: Path) -> None:
    assert TrustList(tmp_path / "none").fault(certificate()) == "it is not trusted"


def test_an_authority_vouches_for_its_applications(trust: TrustList, trusted: Path) -> None:
    add_certificate(trusted, certificate("plant", is_authority=True, uri=""))
    assert trust.fault(certificate(issuer="plant")) == ""
    assert trust.fault(certificate(issuer="plant", signed_with=OTHER_KEY)) == "it is not trusted"


@pytest.mark.parametrize("uri", ["urn:client", ""])
def test_a_trusted_application_issues_no_trust(trust: TrustList, trusted: Path, uri: str) -> None:
    application = certificate("plant", is_authority=bool(uri), uri=uri)
    add_certificate(trusted, application)
    assert trust.fault(application) == ""
    assert trust.fault(certificate(issuer="plant")) == "it is not trusted"


def test_what_an_authority_revoked_is_turned_away(trust: TrustList, trusted: Path) -> None:
    add_certificate(trusted, certificate("plant", is_authority=True, uri=""))
    lost, kept = certificate(issuer="plant"), certificate("kept", issuer="plant")
    assert trust.fault(lost) == ""
    (trusted / "plant.crl").write_bytes(revocation(lost, "plant", KEY))
    assert trust.fault(lost) == "its authority has revoked it"
    assert trust.fault(kept) == ""


def test_only_the_issuer_revokes_a_certificate(trust: TrustList, trusted: Path) -> None:
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


def test_an_expired_certificate_is_turned_away_though_it_is_trusted(trust: TrustList, trusted: Path) -> None:
    old = certificate(days=-1)
    add_certificate(trusted, old)
    assert trust.fault(old) == "it has expired or is not valid yet"


def test_a_file_that_is_no_certificate_does_no_harm(trust: TrustList, trusted: Path) -> None:
    client = certificate()
    add_certificate(trusted, client)
    (trusted / "notes.pem").write_text("-----BEGIN nonsense")
    (trusted / "README").write_text("who is who")
    assert trust.fault(client) == ""


async def test_the_rejected_are_kept_but_not_without_end(rejected: Path) -> None:
    for number in range(RejectedList.MOST):
        file = rejected / f"{number}.der"
        file.write_bytes(b"x")
        os.utime(file, (number, number))
    client, kept = certificate(), RejectedList(rejected)
    await kept.keep(client)
    await kept.keep(client)
    left = names_in(rejected)
    assert len(left) == RejectedList.MOST
    assert "0.der" not in left
    assert [entry.certificate for entry in certificate_files(rejected)] == [client]


async def test_strangers_without_end_have_no_more_written_than_a_few_a_minute(rejected: Path) -> None:
    now = 0.0
    kept = RejectedList(rejected, lambda: now)
    strangers = [certificate(f"stranger {number}") for number in range(RejectedList.MOST_NEW + 2)]
    for stranger in strangers:
        await kept.keep(stranger)
    assert {entry.certificate for entry in certificate_files(rejected)} == set(strangers[:-2])
    now = RejectedList.WITHIN_S
    await kept.keep(strangers[-1])
    assert strangers[-1] in [entry.certificate for entry in certificate_files(rejected)]


async def test_who_tries_again_and_again_leaves_room_for_others(rejected: Path) -> None:
    kept = RejectedList(rejected)
    persistent, newcomer = certificate("persistent"), certificate("newcomer")
    for _ in range(RejectedList.MOST_NEW):
        await kept.keep(persistent)
    await kept.keep(newcomer)
    assert {entry.certificate for entry in certificate_files(rejected)} == {persistent, newcomer}


async def test_a_rejected_certificate_that_a_power_cut_left_empty_is_kept_again(rejected: Path) -> None:
    client = certificate()
    (rejected / f"{thumbprint(client)}.der").touch()
    await RejectedList(rejected).keep(client)
    assert [entry.certificate for entry in certificate_files(rejected)] == [client]


async def test_a_stranger_does_not_have_the_event_loop_wait_for_the_disk(
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
    await RejectedList(rejected).keep(certificate())
    assert len(written_by) == 1
    assert threading.current_thread() not in written_by
    assert synced == []


async def test_a_place_that_cannot_be_written_turns_strangers_away_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "rejected").write_text("a file where a directory should be")
    with structlog.testing.capture_logs() as logs:
        await RejectedList(tmp_path / "rejected").keep(certificate())
    assert [record["event"] for record in logs] == ["rejected certificate not stored"]


def test_a_certificate_is_found_by_the_beginning_of_its_thumbprint(trusted: Path) -> None:
    client = certificate()
    add_certificate(trusted, client)
    digits = thumbprint(client)
    spelled = ":".join(digits[at : at + 2].lower() for at in range(0, len(digits), 2))
    for wanted in (digits, digits[:6], spelled):
        assert [entry.certificate for entry in find_certificates([trusted], wanted)] == [client]
    assert find_certificates([trusted], "") == []
    assert find_certificates([trusted], "not a thumbprint") == []
