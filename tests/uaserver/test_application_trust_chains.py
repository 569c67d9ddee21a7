"""A certificate is trusted by its chain of authorities, unless one of them has expired or revoked it."""

from datetime import UTC, datetime
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from edge.uaserver.application_trust import REVOKED, UNTRUSTED, KnownCertificates, chain_fault
from tests.uaserver import pki

ROOT = pki.root()
PLANT = ROOT.authority("plant", 2)
LINE = PLANT.authority("line", 3)
LEAF = LINE.issue("scada", uri="urn:scada")
CHAIN = (LINE.certificate, PLANT.certificate, ROOT.certificate)
CURRENT = (ROOT.revoke(), PLANT.revoke(), LINE.revoke())
EXPIRED = "the certificate of its authority has expired or is not valid yet"
NO_LIST = "there is no current revocation list of its authority"
STRICT: Final = True


def known(
    *trusted: object, issuers: tuple[object, ...] = (), lists: tuple[object, ...] = (), strict: bool = False
) -> KnownCertificates:
    return KnownCertificates(trusted, issuers, lists, strict)  # type: ignore[arg-type]


def fault(certificate: object, given: KnownCertificates, *sent: object) -> str:
    return chain_fault(certificate, sent, given, datetime.now(UTC))  # type: ignore[arg-type]


def test_client_of_an_intermediate_authority_is_trusted_by_its_root() -> None:
    assert fault(LEAF, known(ROOT.certificate), *CHAIN) == ""
    assert fault(LEAF, known(ROOT.certificate, issuers=CHAIN)) == ""
    assert fault(LEAF, known(PLANT.certificate), LINE.certificate) == ""


def test_a_chain_with_a_gap_is_not_trusted() -> None:
    assert fault(LEAF, known(ROOT.certificate), PLANT.certificate) == UNTRUSTED
    assert fault(LEAF, known(ROOT.certificate)) == UNTRUSTED


def test_chain_sent_by_a_client_does_not_establish_trust() -> None:
    assert fault(LEAF, known(), *CHAIN) == UNTRUSTED
    assert fault(LEAF, known(issuers=CHAIN), *CHAIN) == UNTRUSTED
    assert fault(LEAF, known(pki.root("root", 4).certificate), *CHAIN) == UNTRUSTED


def test_expired_authority_is_not_trusted() -> None:
    old = ROOT.authority("plant", 2, days=-1)
    line = old.authority("line", 3)
    leaf = line.issue("scada")
    assert fault(leaf, known(ROOT.certificate), line.certificate, old.certificate) == EXPIRED
    assert fault(leaf, known(ROOT.certificate), line.certificate, old.certificate, PLANT.certificate) == ""


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ((LINE.revoke(LEAF),), REVOKED),
        ((PLANT.revoke(LINE.certificate),), REVOKED),
        ((ROOT.revoke(PLANT.certificate),), REVOKED),
        ((LINE.revoke(LEAF, days=-1),), REVOKED),
        ((LINE.revoke(), LINE.revoke(LEAF)), REVOKED),
        ((LINE.revoke(PLANT.certificate),), ""),
        ((pki.root("line", 4).revoke(LEAF),), ""),
    ],
)
def test_each_authority_of_a_chain_can_revoke_its_certificates(lists: tuple[object, ...], reason: str) -> None:
    assert fault(LEAF, known(ROOT.certificate, lists=lists), *CHAIN) == reason


def test_explicitly_trusted_certificate_can_be_revoked() -> None:
    assert fault(LEAF, known(LEAF)) == ""
    assert fault(LEAF, known(LEAF, issuers=CHAIN, lists=(LINE.revoke(LEAF),))) == REVOKED


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        (CURRENT, ""),
        ((), NO_LIST),
        (CURRENT[:2], NO_LIST),
        ((*CURRENT[:2], LINE.revoke(days=-1)), NO_LIST),
        ((*CURRENT[:2], pki.root("line", 4).revoke()), NO_LIST),
    ],
)
def test_missing_or_old_required_revocation_list_is_refused(lists: tuple[object, ...], reason: str) -> None:
    assert fault(LEAF, known(ROOT.certificate, lists=lists, strict=STRICT), *CHAIN) == reason
    assert fault(LEAF, known(ROOT.certificate, lists=lists), *CHAIN) == ""


def test_chain_beyond_the_path_length_of_its_authority_is_not_trusted() -> None:
    short = pki.root("short", 1, path_length=0)
    below = short.authority("below", 2)
    assert fault(short.issue("client"), known(short.certificate)) == ""
    assert fault(below.issue("client"), known(short.certificate), below.certificate) == UNTRUSTED


def test_certificate_issued_by_an_application_is_not_trusted() -> None:
    application = ROOT.authority("scada", 2, uri="urn:scada")
    assert fault(application.issue("client"), known(ROOT.certificate), application.certificate) == UNTRUSTED


def test_authority_with_an_elliptic_curve_key_can_revoke() -> None:
    own = ec.generate_private_key(ec.SECP256R1())
    modern = pki.Authority(ROOT.issue("modern", own=own, is_authority=True), own)
    leaf = modern.issue("client")
    assert fault(leaf, known(modern.certificate)) == ""
    assert fault(leaf, known(modern.certificate, lists=(modern.revoke(leaf),))) == REVOKED
