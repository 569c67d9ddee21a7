"""`edge opcua` shows and changes trusted certificates and OPC UA users."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography import x509
from msgspec import structs

from edge.access.users import read_users
from edge.cli import main
from edge.model.user import Role
from edge.opcua.application_certificate import application_uris
from edge.uaserver import certificates
from edge.uaserver.application_trust import TrustList, add_certificate
from edge.uaserver.certificates import public_certificate, thumbprint
from tests.uaserver import pki

pytestmark = pytest.mark.slow

PASSWORD = "correct horse"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "edge.toml"
    places = {"pki": "pki", "trusted": "etc/trusted", "users_file": "etc/users"}
    lines = [f'{key} = "{tmp_path / place}"' for key, place in places.items()]
    path.write_text("\n".join(["[opcua]", *lines]))
    return path


@pytest.fixture
def stranger(tmp_path: Path) -> x509.Certificate:
    """An application that was turned away."""
    certificate = certificates.load_or_make(tmp_path / "stranger", "urn:stranger", ("here",)).certificate
    add_certificate(certificate, tmp_path / "pki" / "rejected")
    return certificate


def trust_list(directory: Path) -> TrustList:
    return TrustList(directory / "etc" / "trusted")


def opcua(file: Path, *arguments: str, text: str | None = None) -> Result:
    """Call `edge opcua`."""
    return CliRunner().invoke(main, ["opcua", *arguments, "--settings", str(file)], input=text)


def listed(file: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(opcua(file, "list", "--json").output)
    return answer


def test_list_before_the_first_start_is_empty(file: Path) -> None:
    assert listed(file) == {
        "own": None,
        "trusted": [],
        "issuers": [],
        "revocations": [],
        "rejected": [],
        "users": [],
    }
    assert "the first start generates it" in opcua(file, "list").output


def test_certificates_and_users_are_listed(file: Path, stranger: x509.Certificate) -> None:
    opcua(file, "renew", "--host", "gateway.example.com")
    opcua(file, "password", "alice", "--role", "operator", "--password-stdin", text=f"{PASSWORD}\n")
    found = listed(file)
    assert "gateway.example.com" in found["own"]["hosts"]
    (rejected,) = found["rejected"]
    assert {name: value for name, value in rejected.items() if name != "file"} == structs.asdict(
        public_certificate(stranger, "rejected")
    ) | {"applications": list(application_uris(stranger))}
    assert (found["own"]["state"], found["own"]["subject"].partition("=")[0]) == ("own", "O")
    assert found["users"] == [{"name": "alice", "role": "operator"}]
    printed = opcua(file, "list").output
    for expected in (found["own"]["thumbprint"], thumbprint(stranger), "alice  operator"):
        assert expected in printed
    assert "argon2" not in printed


def test_rejected_certificate_is_trusted_by_a_thumbprint_prefix(
    file: Path, tmp_path: Path, stranger: x509.Certificate
) -> None:
    answer = opcua(file, "trust", thumbprint(stranger)[:6])
    assert answer.exit_code == 0
    assert trust_list(tmp_path).fault(stranger) == ""
    assert (len(listed(file)["trusted"]), len(listed(file)["rejected"])) == (1, 0)


def test_trusted_certificate_is_rejected(file: Path, tmp_path: Path, stranger: x509.Certificate) -> None:
    opcua(file, "trust", thumbprint(stranger))
    assert opcua(file, "reject", thumbprint(stranger)[:4].lower()).exit_code == 0
    assert trust_list(tmp_path).fault(stranger) == "it is not trusted"
    assert (len(listed(file)["trusted"]), len(listed(file)["rejected"])) == (0, 1)


def test_certificate_from_a_file_is_trusted(file: Path, tmp_path: Path) -> None:
    brought = certificates.load_or_make(tmp_path / "brought", "urn:brought", ()).certificate
    assert opcua(file, "trust", str(tmp_path / "brought" / "own.der")).exit_code == 0
    assert trust_list(tmp_path).fault(brought) == ""
    assert (tmp_path / "brought" / "own.der").exists()


def test_certificate_trusted_by_a_file_leaves_the_rejected_list(
    file: Path, tmp_path: Path, stranger: x509.Certificate
) -> None:
    assert opcua(file, "trust", str(tmp_path / "stranger" / "own.der")).exit_code == 0
    assert (len(listed(file)["trusted"]), len(listed(file)["rejected"])) == (1, 0)
    assert trust_list(tmp_path).fault(stranger) == ""


def test_reject_applies_to_every_file_of_a_certificate(file: Path, tmp_path: Path, stranger: x509.Certificate) -> None:
    opcua(file, "trust", thumbprint(stranger))
    shutil.copy(tmp_path / "stranger" / "own.der", tmp_path / "etc" / "trusted" / "by-hand.cer")
    assert opcua(file, "reject", thumbprint(stranger)[:4]).exit_code == 0
    assert trust_list(tmp_path).fault(stranger) == "it is not trusted"
    assert (len(listed(file)["trusted"]), len(listed(file)["rejected"])) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("renew", "--host", "opc.tcp://gateway:4840"), "neither a host name nor an address"),
        (("trust", "ABCDEF"), "no certificate in"),
        (("reject", "ABCDEF"), "no certificate in"),
        (("trust", __file__), "is not a certificate"),
        (("password", "a:b", "--role", "observer", "--password-stdin"), "is not a valid user name"),
        (("password", "bob", "--role", "observer", "--password-stdin"), "between 8 and"),
    ],
)
def test_invalid_arguments_are_reported_with_the_reason(file: Path, arguments: tuple[str, ...], reported: str) -> None:
    answer = opcua(file, *arguments, text="short\n")
    assert answer.exit_code == 1
    assert reported in answer.output


def test_unwritable_certificate_directory_is_reported(file: Path, tmp_path: Path, stranger: x509.Certificate) -> None:
    (tmp_path / "etc").write_text("a file where a directory should be")
    answer = opcua(file, "trust", thumbprint(stranger))
    assert answer.exit_code == 1
    assert "trusted" in answer.output


def test_member_of_the_group_lists_without_reading_the_key(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opcua(file, "renew")
    before, access = listed(file), os.access
    key = tmp_path / "pki" / "own.pem"
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != key and access(path, mode))
    key.write_text("not for you")
    assert listed(file) == before


@pytest.mark.parametrize("arguments", [("list",), ("trust", "3F86A0")], ids=" ".join)
def test_directory_that_this_user_may_not_list_does_not_look_empty(
    file: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def deny(path: Path) -> list[str]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", deny)
    answer = opcua(file, *arguments)
    assert answer.exit_code == 1
    assert "Permission denied" in answer.output
    assert "as root (sudo)" in answer.output


def test_password_prompt_repeats_once_and_hides_the_input(file: Path, tmp_path: Path) -> None:
    answer = opcua(file, "password", "alice", "--role", "engineer", text=f"{PASSWORD}\n{PASSWORD}\n")
    assert answer.exit_code == 0
    assert PASSWORD not in answer.output
    (user,) = read_users(tmp_path / "etc" / "users").values()
    assert (user.name, user.role) == ("alice", Role.ENGINEER)
    assert user.password_hash.startswith("$argon2id$")


def test_renewed_certificate_is_readable_by_its_owner_only(file: Path, tmp_path: Path) -> None:
    opcua(file, "renew")
    before = listed(file)["own"]
    assert opcua(file, "renew").exit_code == 0
    assert listed(file)["own"]["thumbprint"] != before["thumbprint"]
    assert (tmp_path / "pki" / "own.pem").stat().st_mode & 0o077 == 0


def with_users(file: Path, tmp_path: Path) -> None:
    file.write_text(f'{file.read_text()}\ntrusted_users = "{tmp_path / "etc" / "users-trusted"}"\n')


def test_a_certificate_of_a_user_is_trusted_listed_and_rejected(file: Path, tmp_path: Path) -> None:
    with_users(file, tmp_path)
    opcua(file, "password", "alice", "--role", "operator", "--password-stdin", text=f"{PASSWORD}\n")
    certificate = pki.self_signed("alice")
    path = pki.write_pem(tmp_path / "alice.pem", certificate)
    answer = opcua(file, "trust", str(path), "--user")
    assert answer.exit_code == 0
    assert "alice is operator" in answer.output
    (shown,) = listed(file)["trusted_users"]
    assert (shown["user"], shown["thumbprint"]) == ("alice", thumbprint(certificate))
    assert "trusted user " in opcua(file, "list").output
    assert TrustList(tmp_path / "etc" / "users-trusted").fault(certificate) == ""
    assert listed(file)["trusted"] == []
    assert opcua(file, "reject", thumbprint(certificate)[:6], "--user").exit_code == 0
    assert [user["user"] for user in listed(file)["rejected_users"]] == ["alice"]
    assert opcua(file, "trust", thumbprint(certificate)[:6], "--user").exit_code == 0
    assert listed(file)["rejected_users"] == []


def test_a_certificate_without_user_is_trusted_with_advice(file: Path, tmp_path: Path) -> None:
    with_users(file, tmp_path)
    answer = opcua(file, "trust", str(pki.write_pem(tmp_path / "bob.pem", pki.self_signed("bob"))), "--user")
    assert "edge users add" in answer.output


def test_users_are_not_trusted_before_the_setting_names_a_directory(file: Path, tmp_path: Path) -> None:
    answer = opcua(file, "trust", str(pki.write_pem(tmp_path / "bob.pem", pki.self_signed("bob"))), "--user")
    assert answer.exit_code != 0
    assert "trusted_users" in answer.output


def test_a_requested_certificate_is_installed_with_its_authorities(file: Path, tmp_path: Path) -> None:
    opcua(file, "renew")
    request = x509.load_pem_x509_csr(opcua(file, "request", "--subject", "CN=gateway,O=plant").output.encode())
    root = pki.root("plant")
    line = root.authority("line", 2)
    issued = pki.write_pem(tmp_path / "issued.pem", line.sign(request))
    above = str(pki.write_pem(tmp_path / "line.pem", line.certificate))
    answer = opcua(file, "install", str(issued), "--authority", above)
    assert answer.exit_code == 0, answer.output
    assert "restart the gateway" in answer.output
    own = certificates.load(tmp_path / "pki")
    assert own
    assert own.authorities == (line.certificate,)
    assert listed(file)["own"]["thumbprint"] == thumbprint(own.certificate)


def test_a_certificate_for_another_key_is_not_installed(file: Path, tmp_path: Path) -> None:
    assert "no certificate yet" in opcua(file, "request").output
    opcua(file, "renew")
    before = (tmp_path / "pki" / "own.pem").read_bytes()
    stranger = pki.write_pem(tmp_path / "stranger.pem", pki.self_signed("x"))
    answer = opcua(file, "install", str(stranger))
    assert answer.exit_code != 0
    assert "another application" in answer.output
    assert "is not a name" in opcua(file, "request", "--subject", "nonsense").output
    assert (tmp_path / "pki" / "own.pem").read_bytes() == before


def test_authorities_and_their_revocation_lists_are_listed(file: Path, tmp_path: Path) -> None:
    root = pki.root("plant")
    directory = tmp_path / "etc" / "trusted"
    add_certificate(root.certificate, directory / "issuers")
    (directory / "plant.crl").write_bytes(root.revoke(pki.self_signed("lost")).public_bytes(pki.DER))
    found = listed(file)
    assert [issuer["thumbprint"] for issuer in found["issuers"]] == [thumbprint(root.certificate)]
    assert [(revocation["authority"], revocation["revoked"]) for revocation in found["revocations"]] == [
        ("CN=plant", 1)
    ]
    printed = opcua(file, "list").output
    assert "revoked   1 by CN=plant" in printed
    assert "issuer " in printed
