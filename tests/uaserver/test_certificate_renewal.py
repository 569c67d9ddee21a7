"""The gateway renews its certificate by itself only while no client can trust it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import structlog
from cryptography import x509

from edge.config import OpcuaSettings
from edge.opcua.application_certificate import application_uris, host_names
from edge.opcua.server_core import ServerCore
from edge.uaserver import certificates
from edge.uaserver.application_trust import add_certificate, issuers_directory, rejected_directory
from edge.uaserver.certificate_renewal import CertificateRenewal
from edge.uaserver.certificates import OwnCertificate, signing_request
from edge.uaserver.security import AccessControl, serve_certificate
from tests.conftest import WaitUntil
from tests.uaserver import pki

URI = "urn:gateway:microdcs-edge:edge"
NEW = "line.example.com"


@pytest.fixture
def settings(tmp_path: Path) -> OpcuaSettings:
    return OpcuaSettings(endpoint="opc.tcp://127.0.0.1:0", pki=str(tmp_path / "pki"), trusted=str(tmp_path / "trusted"))


@pytest.fixture
def first(settings: OpcuaSettings) -> OwnCertificate:
    """The certificate of the first start; later clients use one more name."""
    return certificates.load_or_make(Path(settings.pki), URI, ("given.example.com", "192.0.2.7"))


def started(settings: OpcuaSettings, uri: str = URI, *, is_shared: bool = False) -> OwnCertificate:
    """Return the certificate of a start with a further name."""
    return CertificateRenewal(msgspec.structs.replace(settings, hosts=(NEW,)), uri, is_shared=is_shared).load()


def test_untrusted_certificate_is_renewed_for_a_new_name(settings: OpcuaSettings, first: OwnCertificate) -> None:
    renewed = started(settings)
    assert {NEW, "given.example.com", "192.0.2.7"} <= set(host_names(renewed.certificate))
    # A signing request that an authority has by now is one for this key.
    assert renewed.key.private_numbers() == first.key.private_numbers()
    assert certificates.load_certificate(Path(settings.pki)) == renewed.certificate
    assert started(settings).certificate == renewed.certificate


def test_untrusted_certificate_is_renewed_for_a_renamed_host(settings: OpcuaSettings, first: OwnCertificate) -> None:
    renewed = started(settings, "urn:renamed:microdcs-edge:edge")
    assert application_uris(renewed.certificate) == ["urn:renamed:microdcs-edge:edge"]
    assert "given.example.com" not in host_names(renewed.certificate)
    assert renewed.certificate != first.certificate


def test_untrusted_certificate_is_renewed_before_it_expires(settings: OpcuaSettings, first: OwnCertificate) -> None:
    soon = first.certificate.not_valid_after_utc - timedelta(days=10)
    renewed = CertificateRenewal(settings, URI, lambda: soon).load()
    assert renewed.certificate != first.certificate


@pytest.mark.parametrize(
    "place",
    [
        lambda value: Path(value.trusted),
        lambda value: issuers_directory(Path(value.trusted)),
        lambda value: rejected_directory(Path(value.pki)),
    ],
)
def test_certificate_that_a_client_may_trust_is_kept(
    settings: OpcuaSettings, first: OwnCertificate, place: Callable[[OpcuaSettings], Path]
) -> None:
    """A client that was turned away has accepted the certificate of the gateway before."""
    add_certificate(pki.self_signed("client"), place(settings))
    assert started(settings).certificate == first.certificate


@pytest.mark.parametrize(
    "change",
    [
        {"security_admins": ("gds",)},
        {"reverse_connect": ("opc.tcp://scada:4841",)},
        {"discovery_server": "opc.tcp://lds:4840"},
    ],
)
def test_certificate_given_to_others_beforehand_is_kept(
    settings: OpcuaSettings, first: OwnCertificate, change: dict[str, object]
) -> None:
    assert started(msgspec.structs.replace(settings, **change)).certificate == first.certificate


def test_certificate_of_the_station_page_is_kept(settings: OpcuaSettings, first: OwnCertificate) -> None:
    assert started(settings, is_shared=True).certificate == first.certificate


def test_certificate_of_an_authority_is_kept(settings: OpcuaSettings, first: OwnCertificate) -> None:
    authority = pki.root()
    issued = authority.sign(x509.load_der_x509_csr(signing_request(first, first.key)))
    certificates.store(Path(settings.pki), OwnCertificate(issued, first.key, (authority.certificate,)))
    assert started(settings, "urn:renamed:microdcs-edge:edge").certificate == issued


def test_certificate_that_was_installed_since_the_start_is_kept(settings: OpcuaSettings, first: OwnCertificate) -> None:
    renewal = CertificateRenewal(msgspec.structs.replace(settings, hosts=(NEW,)), URI)
    installed = certificates.renew(Path(settings.pki), URI, ("given.example.com",))
    assert renewal.renewed(first) is None
    assert certificates.load_certificate(Path(settings.pki)) == installed.certificate


def test_renewal_in_a_directory_that_cannot_be_written_is_logged_once(
    settings: OpcuaSettings, first: OwnCertificate
) -> None:
    """It was logged every 10 s."""
    Path(settings.pki, ".own.pem.partial").mkdir()
    renewal = CertificateRenewal(msgspec.structs.replace(settings, hosts=(NEW,)), URI)
    with structlog.testing.capture_logs() as logs:
        assert [renewal.renewed(first) for _ in range(3)] == [None] * 3
    assert [record["event"] for record in logs] == ["OPC UA certificate not renewed"]


async def test_trusted_certificate_with_faults_is_reported_once(
    settings: OpcuaSettings, first: OwnCertificate, wait_until: WaitUntil
) -> None:
    add_certificate(pki.self_signed("client"), Path(settings.trusted))
    late = first.certificate.not_valid_after_utc - timedelta(days=3)
    renewal = CertificateRenewal(msgspec.structs.replace(settings, hosts=(NEW,)), URI, lambda: late)
    core = ServerCore(None, AccessControl(settings), 30.0)
    serve_certificate(core, first)
    with structlog.testing.capture_logs() as logs:
        task = asyncio.create_task(renewal.watch(core))
        await wait_until(lambda: len(logs) == 2)
        task.cancel()
    assert [record["reason"] for record in logs] == ["it expires in 3 days", f"it does not name {NEW}"]
    assert core.certificate == first.certificate


async def test_renewed_certificate_is_served_without_a_restart(
    settings: OpcuaSettings, first: OwnCertificate, wait_until: WaitUntil
) -> None:
    renewal = CertificateRenewal(msgspec.structs.replace(settings, hosts=(NEW,)), URI, lambda: datetime.now(UTC))
    core = ServerCore(None, AccessControl(settings), 30.0)
    serve_certificate(core, first)
    task = asyncio.create_task(renewal.watch(core))
    await wait_until(lambda: core.certificate != first.certificate)
    task.cancel()
    assert NEW in host_names(core.certificate)
