"""A gateway process, an OPC UA client and the command line: second factor, throttle across a restart, sessions."""

import contextlib
import hashlib
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyotp
import pytest
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from asyncua.ua.uaerrors import BadUserAccessDenied, UaError

from edge.ops.login_throttle import LoginThrottle
from tests.conftest import WaitUntil
from tests.outside.servers import ROOT, Gateway, Store, ended, free_port
from tests.uaserver.clients import Application, make_application

PASSWORD = "correct horse"


@dataclass
class Site:
    """A gateway with encryption only, and a trusted client."""

    gateway: Gateway
    store: Store
    application: Application
    url: str
    pki: Path
    settings: Path

    def edge(self, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of this site."""
        return subprocess.run(
            [ROOT / ".venv/bin/edge", *arguments, "--settings", self.settings],
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
        client = Client(self.url, timeout=20)
        client.application_uri = self.application.uri
        files = self.application.directory / "own.der", self.application.directory / "own.pem"
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


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store, port = Store(tmp_path / "store"), free_port()
    directory = tmp_path / "gateway"
    text = (
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = ""\n'
        f'[opcua]\nendpoint = "opc.tcp://127.0.0.1:{port}"\npki = "{directory}/pki"\n'
        f'trusted = "{directory}/trusted"\n'
        f'[users]\nfile = "{directory}/users"\ntotp = ["engineer"]\ncli = "login"\n'
    )
    gateway = Gateway(directory, "edge", text)
    application = make_application(tmp_path / "client")
    (directory / "trusted").mkdir()
    (directory / "trusted" / "client.der").write_bytes((application.directory / "own.der").read_bytes())
    with ended(store, gateway):
        store.start()
        gateway.start()
        yield Site(gateway, store, application, f"opc.tcp://127.0.0.1:{port}", directory / "pki", gateway.settings)


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
    attempt = hashlib.sha256(f"127.0.0.1\n{name}".encode()).hexdigest()[:32]
    (key,) = store.cli("KEYS", f"*:2fa:{attempt}").split()
    store.cli("SET", key, "9 900000", "PX", "964000")


async def test_second_factor_and_throttle_across_a_restart(site: Site, wait_until: WaitUntil) -> None:
    site.add("anna", "engineer")
    site.add("ben", "operator")
    assert not await site.logs_in("anna", PASSWORD), "the role requires a second factor"
    made = json.loads(site.edge("users", "totp", "anna", "--json").stdout)
    used: set[str] = set()
    code = next_code(made["secret"], used)
    async with site.connected("anna", PASSWORD + code) as client:
        await client.get_namespace_array()
        assert not await site.logs_in("anna", PASSWORD + code), "a code is valid once"
        await wait_until(lambda: [each["user"] for each in site.sessions()] == ["anna"])
        (session,) = site.sessions()
        assert (session["role"], session["way"], session["address"]) == ("engineer", "opcua", "127.0.0.1")
        refused = site.edge("sessions", "end", session["id"])
        assert "require a login" in refused.stderr
        login = site.edge("users", "login", "anna", "--password-stdin", given=PASSWORD + made["recovery_codes"][0])
        assert login.stdout == "logged in as anna, engineer\n"
        assert site.edge("sessions", "end", session["id"]).returncode == 0
        await wait_until(lambda: [each["way"] for each in site.sessions()] == ["cli"])
        with pytest.raises((UaError, ConnectionError)):
            await client.get_namespace_array()
    for _ in range(LoginThrottle.FREE):
        assert not await site.logs_in("ben", "wrong")
    assert not await site.logs_in("ben", PASSWORD), "the right password waits, too"
    _lengthen_wait(site.store, "ben")
    site.gateway.stop()
    site.gateway.start()
    assert not await site.logs_in("ben", PASSWORD), "the wait survives the restart"
    assert await site.logs_in("anna", PASSWORD + made["recovery_codes"][1]), "another user does not wait"
    assert not await site.logs_in("anna", PASSWORD + made["recovery_codes"][1]), "a recovery code is valid once"
    statuses = [each["status"] for each in json.loads(site.edge("audit", "list", "--json").stdout)]
    assert any("too many failures" in each for each in statuses)
    assert site.edge("audit", "verify").returncode == 0
