"""Requests of certificates, and what is accepted as the own certificate."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from edge.uaserver import certificates
from edge.uaserver.signing_requests import UnusableCertificate, check_issued, read_key, read_subject, signing_request
from tests.uaserver import pki

URI = "urn:gateway:microdcs-edge:edge"
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
