"""Only applications that an administrator trusts come in, from the moment they are trusted."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from edge.uaserver.certificates import thumbprint
from edge.uaserver.trust import REJECTED_KEPT, TrustList, entries, find

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


def lay(directory: Path, given: x509.Certificate, form: serialization.Encoding = serialization.Encoding.DER) -> None:
    suffix = "pem" if form is serialization.Encoding.PEM else "der"
    (directory / f"{thumbprint(given)}.{suffix}").write_bytes(given.public_bytes(form))


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    (tmp_path / "trusted").mkdir()
    return tmp_path / "trusted"


@pytest.fixture
def trust(trusted: Path, tmp_path: Path) -> TrustList:
    return TrustList(trusted, tmp_path / "rejected")


@pytest.mark.parametrize("form", [serialization.Encoding.DER, serialization.Encoding.PEM])
def test_trust_is_given_and_taken_while_the_server_runs(
    trust: TrustList, trusted: Path, form: serialization.Encoding
) -> None:
    client = certificate()
    assert trust.fault(client) == "it is not trusted"
    lay(trusted, client, form=form)
    assert trust.fault(client) == ""
    next(trusted.iterdir()).unlink()
    assert trust.fault(client) == "it is not trusted"


def test_a_directory_that_is_not_there_trusts_nobody(tmp_path: Path) -> None:
    assert TrustList(tmp_path / "none", tmp_path / "rejected").fault(certificate()) == "it is not trusted"


def test_an_authority_vouches_for_its_applications(trust: TrustList, trusted: Path) -> None:
    lay(trusted, certificate("plant", is_authority=True, uri=""))
    assert trust.fault(certificate(issuer="plant")) == ""
    assert trust.fault(certificate(issuer="plant", signed_with=OTHER_KEY)) == "it is not trusted"


@pytest.mark.parametrize("uri", ["urn:client", ""])
def test_a_trusted_application_vouches_for_nobody(trust: TrustList, trusted: Path, uri: str) -> None:
    application = certificate("plant", is_authority=bool(uri), uri=uri)
    lay(trusted, application)
    assert trust.fault(application) == ""
    assert trust.fault(certificate(issuer="plant")) == "it is not trusted"


def test_what_an_authority_revoked_is_turned_away(trust: TrustList, trusted: Path) -> None:
    lay(trusted, certificate("plant", is_authority=True, uri=""))
    lost, kept = certificate(issuer="plant"), certificate("kept", issuer="plant")
    assert trust.fault(lost) == ""
    (trusted / "plant.crl").write_bytes(revocation(lost, "plant", KEY))
    assert trust.fault(lost) == "its authority has revoked it"
    assert trust.fault(kept) == ""


def test_nobody_else_revokes_what_an_authority_issued(trust: TrustList, trusted: Path) -> None:
    client = certificate(issuer="plant")
    lay(trusted, certificate("plant", is_authority=True, uri=""))
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
    lay(trusted, old)
    assert trust.fault(old) == "it has expired or is not valid yet"


def test_a_weak_or_unusual_key_is_turned_away(trust: TrustList) -> None:
    now = datetime.now(UTC)
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - on purpose
    for key in (weak, ec.generate_private_key(ec.SECP256R1())):
        made = x509.CertificateBuilder(
            named("weak"), named("weak"), key.public_key(), 1, now, now + timedelta(days=1)
        ).sign(key, hashes.SHA256())
        assert trust.fault(made) == "its key is not RSA of 2048 to 4096 bits"


def test_a_file_that_is_no_certificate_does_no_harm(trust: TrustList, trusted: Path) -> None:
    client = certificate()
    lay(trusted, client)
    (trusted / "notes.pem").write_text("-----BEGIN nonsense")
    (trusted / "README").write_text("who is who")
    assert trust.fault(client) == ""


def test_the_rejected_are_kept_but_not_without_end(trust: TrustList, tmp_path: Path) -> None:
    rejected = tmp_path / "rejected"
    rejected.mkdir()
    for number in range(REJECTED_KEPT):
        file = rejected / f"{number}.der"
        file.write_bytes(b"x")
        os.utime(file, (number, number))
    client = certificate()
    trust.remember_rejected(client)
    trust.remember_rejected(client)
    names = {path.name for path in rejected.iterdir()}
    assert len(names) == REJECTED_KEPT
    assert "0.der" not in names
    assert [entry.certificate for entry in entries(rejected)] == [client]


def test_a_certificate_is_found_by_the_beginning_of_its_thumbprint(trusted: Path) -> None:
    client = certificate()
    lay(trusted, client)
    digits = thumbprint(client)
    spelled = ":".join(digits[at : at + 2].lower() for at in range(0, len(digits), 2))
    for wanted in (digits, digits[:6], spelled):
        assert [entry.certificate for entry in find([trusted], wanted)] == [client]
    assert find([trusted], "") == []
    assert find([trusted], "not a thumbprint") == []
