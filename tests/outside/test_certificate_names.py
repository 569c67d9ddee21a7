"""The certificate of the gateway names each of its addresses, as OpenSSL and an OPC UA client on another stack see it.

The gateway runs in a network namespace, whose addresses the test changes.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.outside.servers import EDGE, ROOT, Gateway, Store, ended, wait_for
from tests.outside.test_users import make_certificate

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

FIRST, SECOND, THIRD = "10.71.0.5", "10.71.0.6", "10.71.0.7"
PORT, PAGE = 4840, 8443
NETWORK = (
    "ip link set lo up; ip link add plant0 type veth peer name far0; ip link set plant0 up; ip link set far0 up; "
    f'ip addr add {FIRST}/24 dev plant0; exec "$@"'
)
UNSHARED = ("unshare", "--user", "--map-root-user", "--net", "sh", "-ec", NETWORK, "sh")


@dataclass(frozen=True)
class Site:
    """A gateway with a network of its own."""

    gateway: Gateway
    directory: Path

    @property
    def certificate(self) -> Path:
        """The certificate of the gateway, in DER."""
        return self.directory / "pki" / "own.der"

    def inside(self, *command: str | Path) -> str:
        """Run a command in the network of the gateway and return its output."""
        entered = ["nsenter", "--target", str(self.gateway.pid), "--user", "--preserve-credentials", "--net"]
        environment = {"PATH": f"{os.environ['PATH']}:/usr/sbin", "NODE_PATH": str(ROOT / ".node" / "node_modules")}
        ran = subprocess.run(
            [*entered, *map(str, command)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=60,
            env=environment,
        )
        assert ran.stdout or not ran.returncode, ran.stderr
        return ran.stdout

    def edge(self, *arguments: str) -> str:
        """Call `edge` on the machine of the gateway and return its output."""
        return self.inside(EDGE, *arguments, "--settings", self.gateway.settings)

    def add(self, address: str) -> None:
        """Add an address to the network of the gateway."""
        self.inside("ip", "addr", "add", f"{address}/24", "dev", "plant0")

    def names(self, address: str) -> bool:
        """Return whether OpenSSL finds an address in the certificate."""
        command = ["openssl", "x509", "-inform", "DER", "-in", str(self.certificate), "-noout", "-checkip", address]
        checked = subprocess.run(command, capture_output=True, text=True, check=True)
        return "does match" in checked.stdout

    def connect(self, address: str, trusted: Path) -> Any:
        """Return what a client reports that trusts this certificate of a server only."""
        script = Path(__file__).with_name("opcua_trust.js")
        return json.loads(
            self.inside("node", script, f"opc.tcp://{address}:{PORT}", self.directory / "client", trusted)
        )

    def copy(self, name: str) -> Path:
        """Return a copy of the certificate, as a client keeps it."""
        return Path(shutil.copy(self.certificate, self.directory / name))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not shutil.which("unshare") or subprocess.run([*UNSHARED, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not permit network namespaces")
    store = Store(tmp_path / "store")
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = ""\n[opcua]\nendpoint = "opc.tcp://0.0.0.0:{PORT}"\n'
        f'pki = "{tmp_path}/pki"\ntrusted = "{tmp_path}/trusted"\n'
    )
    gateway = Gateway(tmp_path / "gateway", "edge", settings)
    gateway.within = UNSHARED
    make_certificate(tmp_path / "client")
    with ended(gateway, store):
        store.start()
        gateway.start()
        yield Site(gateway, tmp_path)


def test_certificate_follows_the_addresses_until_a_client_connects(site: Site) -> None:
    assert site.names(FIRST)
    first = site.copy("first.der")
    site.add(SECOND)
    assert not site.names(SECOND)
    wait_for(lambda: site.names(SECOND), "the certificate names the second address")
    assert site.names(FIRST)
    # This client accepts the certificate, then the gateway turns the client away: it does not know it yet.
    second = site.copy("second.der")
    tried = site.connect(SECOND, second)
    assert (tried["names"], "BadCertificateUntrusted" in tried["session"]) == (True, False)
    assert len(list((site.directory / "pki" / "rejected").glob("*.der"))) == 1
    assert "BadCertificateUntrusted" in site.connect(SECOND, first)["session"]
    site.add(THIRD)
    expected = f"it does not name {THIRD}"
    wait_for(lambda: expected in site.gateway.log.read_text(), "the log names the address")
    assert site.certificate.read_bytes() == second.read_bytes()


def test_page_with_this_certificate_keeps_it_and_is_verified(site: Site) -> None:
    """Browsers leave no trace of what they trust, so a missing address is reported only."""
    site.gateway.stop()
    settings = site.gateway.settings.read_text()
    site.gateway.settings.write_text(f'{settings}[web]\nlisten = "tls://0.0.0.0:{PAGE}"\n')
    site.gateway.start()
    trusted = site.directory / "trusted.pem"
    certificate = x509.load_der_x509_certificate(site.certificate.read_bytes())
    trusted.write_bytes(certificate.public_bytes(Encoding.PEM))
    asked = ("openssl", "s_client", "-connect", f"{FIRST}:{PAGE}", "-CAfile", trusted, "-verify_ip")
    # The page listens a moment after the gateway is ready.
    listening = f"0.0.0.0:{PAGE}"
    wait_for(lambda: listening in site.inside("ss", "--listening", "--tcp", "--numeric"), "the page listens")
    assert "Verify return code: 0 (ok)" in site.inside(*asked, FIRST)
    assert "IP address mismatch" in site.inside(*asked, SECOND)
    site.add(SECOND)
    expected = f"it does not name {SECOND}"
    wait_for(lambda: expected in site.gateway.log.read_text(), "the log names the address")
    assert not site.names(SECOND)


def test_trusted_certificate_is_kept_and_a_missing_address_reported(site: Site) -> None:
    """Until the administrator renews it; then the clients trust again."""
    path = site.copy("kept.der")
    (site.directory / "trusted").mkdir()
    shutil.copy(site.directory / "client" / "own.der", site.directory / "trusted")
    assert site.connect(FIRST, path) == {"names": True, "session": "good"}
    site.gateway.stop()
    site.gateway.within = (*UNSHARED[:-2], NETWORK.replace(FIRST, THIRD), "sh")
    site.gateway.start()
    expected = f"it does not name {THIRD}"
    site.gateway.wait_for_status(lambda line: expected in line, "the status names the address")
    found = [
        finding
        for finding in json.loads(site.edge("doctor", "--json"))["findings"]
        if finding["subject"] == "OPC UA certificate"
    ]
    assert [(value["level"], value["found"]) for value in found] == [("warning", expected)]
    assert "edge opcua renew" in found[0]["advice"]
    assert site.connect(THIRD, path) == {"names": False, "session": "good"}
    assert site.certificate.read_bytes() == path.read_bytes()
    wait_for(lambda: "gateway.certificate_expiring" in site.gateway.cli("alarms", "list"), "the alarm")
    assert expected in site.gateway.log.read_text()
    site.edge("opcua", "renew")
    site.gateway.stop()
    site.gateway.start()
    assert site.names(THIRD)
    assert "good" not in site.connect(THIRD, path)["session"]
    assert site.connect(THIRD, site.copy("renewed.der")) == {"names": True, "session": "good"}
