"""A gateway process, an OPC UA client and the command line: second factor, throttle across a restart, sessions."""

import contextlib
import hashlib
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyotp
import pytest
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from asyncua.ua.uaerrors import BadUserAccessDenied, UaError
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.free_ports import free_port
from tests.opcua_client import patient_client
from tests.outside.servers import EDGE, Gateway, Store, ended, wait_for

PASSWORD = "correct horse"
_URI = "urn:example:client"
_FREE_FAILURES = 3


@dataclass
class Site:
    """A gateway with encryption only, and a trusted client."""

    gateway: Gateway
    store: Store
    client: Path
    url: str
    pki: Path
    settings: Path

    def edge(self, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this site."""
        return subprocess.run(
            [EDGE, *arguments, "--settings", self.settings],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(self.settings.parent)} | environment,
        )

    def add(self, name: str, role: str) -> None:
        """Add a user."""
        assert self.edge("users", "add", name, "--role", role, "--password-stdin", given=PASSWORD).returncode == 0

    @contextlib.asynccontextmanager
    async def connected(self, user: str, secret: str) -> AsyncIterator[Client]:
        """Connect the client as a user."""
        client = patient_client(self.url)
        client.application_uri = _URI
        files = self.client / "own.der", self.client / "own.pem"
        server = (self.pki / "own.der").read_bytes()
        mode = ua.MessageSecurityMode.SignAndEncrypt
        await client.set_security(SecurityPolicyBasic256Sha256, *files, server_certificate=server, mode=mode)
        client.set_user(user)
        client.set_password(secret)
        async with client:
            yield client

    async def logs_in(self, user: str, secret: str) -> bool:
        """Return whether a user may connect."""
        try:
            async with self.connected(user, secret):
                return True
        except BadUserAccessDenied:
            return False

    def sessions(self) -> list[dict[str, Any]]:
        """Return what `edge sessions list` prints."""
        listed: list[dict[str, Any]] = json.loads(self.edge("sessions", "list", "--json").stdout)
        return listed


def make_certificate(directory: Path) -> None:
    """Make the key and the certificate of an OPC UA application."""
    directory.mkdir()
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=9))
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(_URI)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (directory / "own.der").write_bytes(certificate.public_bytes(Encoding.DER))
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / "own.pem").write_bytes(plain)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store, port = Store(tmp_path / "store"), free_port()
    directory = tmp_path / "gateway"
    text = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = ""\n'
        f'[opcua]\nendpoint = "opc.tcp://127.0.0.1:{port}"\npki = "{directory}/pki"\n'
        f'trusted = "{directory}/trusted"\n'
        f'[users]\nfile = "{directory}/users"\ntotp = ["engineer"]\ncli = "login"\n'
        'second_person = ["skip"]\n'
    )
    gateway = Gateway(directory, "edge", text)
    client = tmp_path / "client"
    make_certificate(client)
    (directory / "trusted").mkdir()
    (directory / "trusted" / "client.der").write_bytes((client / "own.der").read_bytes())
    with ended(store, gateway):
        store.start()
        gateway.start()
        yield Site(gateway, store, client, f"opc.tcp://127.0.0.1:{port}", directory / "pki", gateway.settings)


def next_code(secret: str, used: set[str], clock: Callable[[], float] = time.time) -> str:
    """Return a valid code that was not used."""
    totp = pyotp.TOTP(secret)
    for step in (0, 30):
        if (code := totp.at(int(clock()) + step)) not in used:
            used.add(code)
            return code
    raise AssertionError("both codes are used")


def _lengthen_wait(store: Store, name: str) -> None:
    """Set the stored failures of a user to those after a minute of guessing: the first waits end during a restart."""
    attempt = hashlib.sha256(f"loopback\n{name}".encode()).hexdigest()[:32]
    (key,) = store.cli("KEYS", f"*:2fa:{attempt}").split()
    store.cli("SET", key, "9 900000", "PX", "964000")


_CONTROL = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl"
_WAITING = {
    "steps": [{"name": "Scan", "initial": True}],
    "actions": [
        {"name": "scan", "step": "Scan", "qualifier": "N", "interaction": "pull_event", "type_id": "scan.v1"},
    ],
    "interventions": ["skip"],
}


async def _skip(site: Site, user: str) -> int:
    """Skip the action as a user over OPC UA; return the ReturnStatus."""
    async with site.connected(user, PASSWORD) as client:
        texts = ("J1", "scan", "", "label torn off")
        request = ua.CallMethodRequest()
        request.ObjectId = ua.NodeId.from_string(_CONTROL)
        request.MethodId = ua.NodeId.from_string(f"{_CONTROL}/SkipAction")
        request.InputArguments = [*(ua.Variant(text, ua.VariantType.String) for text in texts), ua.Variant()]
        (result,) = await client.uaclient.call([request])
        return int(result.OutputArguments[0].Value)


def _start_job(site: Site) -> None:
    recipe, order = site.settings.with_name("recipe.json"), site.settings.with_name("order.json")
    recipe.write_text(json.dumps(_WAITING))
    order.write_text(json.dumps({"JobOrderID": "J1", "WorkMasterID": [{"ID": "WM-1"}]}))
    site.add("boss", "engineer")
    made = json.loads(site.edge("users", "totp", "boss", "--json").stdout)
    site.edge("users", "login", "boss", "--password-stdin", given=PASSWORD + made["recovery_codes"][0])
    for command in (("station", "set", "workmaster", recipe, "--id", "WM-1"), ("jobs", "store", order, "--start")):
        done = site.edge(*map(str, command))
        assert done.returncode == 0, done.stderr
    wait_for(lambda: "scan of Scan: waiting" in site.edge("jobs", "why", "J1").stdout, "the job waits")


@pytest.mark.long  # it starts a dozen processes
async def test_two_opcua_users_confirm_an_intervention(site: Site) -> None:
    for name in ("anna", "ben"):
        site.add(name, "operator")
    _start_job(site)
    assert [await _skip(site, "anna") for _ in range(2)] == [1 << 34, 1 << 34]
    assert "asked for by anna: waits for a second person" in site.edge("jobs", "why", "J1").stdout
    assert await _skip(site, "ben") == 1
    wait_for(lambda: "Ended" in site.edge("jobs", "list").stdout, "the job ends")
    records = json.loads(site.edge("audit", "list", "--json").stdout)
    assert [record["user"] for record in records if "SkipAction" in record["action"]] == ["anna", "anna", "ben"]


@pytest.mark.long  # it starts a dozen processes
async def test_second_factor_and_throttle_across_a_restart(site: Site) -> None:
    site.add("anna", "engineer")
    site.add("ben", "operator")
    assert not await site.logs_in("anna", PASSWORD), "the role requires a second factor"
    made = json.loads(site.edge("users", "totp", "anna", "--json").stdout)
    used: set[str] = set()
    code = next_code(made["secret"], used)
    async with site.connected("anna", PASSWORD + code) as client:
        await client.get_namespace_array()
        assert not await site.logs_in("anna", PASSWORD + code), "a code is valid once"
        # The same session may repeat it, as a client does that moves to a new connection.
        await client.activate_session(username="anna", password=PASSWORD + code)
        wait_for(lambda: [entry["user"] for entry in site.sessions()] == ["anna"], "the session is listed")
        (session,) = site.sessions()
        assert (session["role"], session["way"], session["address"]) == ("engineer", "opcua", "127.0.0.1")
        refused = site.edge("sessions", "end", session["id"])
        assert "require a login" in refused.stderr
        login = site.edge("users", "login", "anna", "--password-stdin", given=PASSWORD + made["recovery_codes"][0])
        assert login.stdout == "logged in as anna, engineer\n"
        assert site.edge("sessions", "end", session["id"]).returncode == 0
        wait_for(lambda: [entry["way"] for entry in site.sessions()] == ["cli"], "the session ends")
        with pytest.raises((UaError, ConnectionError)):
            await client.get_namespace_array()
    for _ in range(_FREE_FAILURES):
        assert not await site.logs_in("ben", "wrong")
    assert not await site.logs_in("ben", PASSWORD), "the right password waits, too"
    _lengthen_wait(site.store, "ben")
    site.gateway.stop()
    site.gateway.start()
    assert not await site.logs_in("ben", PASSWORD), "the wait survives the restart"
    assert await site.logs_in("anna", PASSWORD + made["recovery_codes"][1]), "another user does not wait"
    assert not await site.logs_in("anna", PASSWORD + made["recovery_codes"][1]), "a recovery code is valid once"
    statuses = [load["status"] for load in json.loads(site.edge("audit", "list", "--json").stdout)]
    assert any("too many failures" in status for status in statuses)
    assert site.edge("audit", "verify").returncode == 0
