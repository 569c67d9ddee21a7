"""A signed command upgrades the package of a machine; the root unit refuses all other requests."""

import json
from typing import Any

import pytest
import pytest_asyncio

from tests.system.machine import Machine

pytestmark = [
    pytest.mark.system,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(360),
]

PASSWORD = "a long password"
SETTINGS = """\
[fleet]
listen = "store"
allow = ["status", "upgrade"]
"""
ONLY_OURS = "-o Dir::Etc::sourcelist=sources.list.d/microdcs-edge.sources -o Dir::Etc::sourceparts=-"
SEND_RAW = """\
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect("/run/microdcs-edge-upgrade.sock")
s.sendall(open("/opt/command").read().encode()); s.shutdown(socket.SHUT_WR); print(s.recv(9999).decode())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def installed(machine: Machine, versions: tuple[str, str]) -> None:
    """A gateway of the first version that takes commands of anna."""
    await machine.run(f"apt-get update {ONLY_OURS} -o APT::Get::List-Cleanup=0")
    await machine.run(f"apt-get install --yes microdcs-edge={versions[0]}")
    (machine.root / "etc/microdcs-edge/conf.d/60-fleet.toml").write_text(SETTINGS)
    await machine.run("chgrp microdcs-edge /etc/microdcs-edge/conf.d/60-fleet.toml")
    await machine.run("chmod 640 /etc/microdcs-edge/conf.d/60-fleet.toml")
    for name in ("anna", "ben"):
        await machine.run(f"echo '{PASSWORD}' | edge fleet keys create {name} /opt/{name}.pem --password-stdin")
    await machine.run("systemctl start microdcs-edge && edge fleet keys add /opt/anna.jwk")
    (machine.root / "opt/send.py").write_text(SEND_RAW)


async def send(machine: Machine, *arguments: str) -> dict[str, Any]:
    """Send a command to the gateway; return its result."""
    options = "--to edge --key /opt/anna.pem --password-stdin --wait 240 --json"
    _, printed = await machine.call(f"echo '{PASSWORD}' | edge fleet send {options} {' '.join(arguments)}")
    (result,) = json.loads(printed[printed.index("{") :])["results"]
    return dict(result)


async def pass_on(machine: Machine, command: str) -> str:
    """Pass a text on to the root unit, as a gateway in the hands of an attacker would; return the answer at its end."""
    (machine.root / "opt/command").write_text(command)
    answer = await machine.run("chmod 644 /opt/command && runuser -u microdcs-edge -- python3 /opt/send.py")
    ended = "! systemctl list-units --no-legend 'microdcs-edge-upgrade@*' | grep -q ."
    await machine.run(f'timeout 120 sh -c "until {ended}; do sleep 0.2; done"')
    return answer


async def sign(machine: Machine, key: str, command: str) -> str:
    """Sign a command without sending it to a gateway that listens."""
    (machine.root / "opt/sign.py").write_text(
        "import sys, time, secrets; sys.path.insert(0, '/usr/lib/microdcs-edge')\n"
        "from pathlib import Path\n"
        "from edge.features.fleet.signature import FleetCommand, sign\n"
        "from edge.features.fleet.signing_keys import read_private\n"
        f"key, kid = read_private(Path('/opt/{key}.pem'), '{PASSWORD}'); now = int(time.time())\n"
        f"word, *rest = {command!r}.split()\n"
        "claims = dict(jti=secrets.token_hex(16), aud=('*',), iat=now, exp=now + 600, cmd=word, args=tuple(rest))\n"
        "print(sign(FleetCommand(**claims), key, kid))\n"
    )
    return await machine.run("python3 -I /opt/sign.py")


async def test_root_unit_is_off_at_first_and_refuses_unsigned_commands(machine: Machine) -> None:
    result = await send(machine, "upgrade")
    assert result["state"] == "failed"
    assert "systemctl enable --now microdcs-edge-upgrade.socket" in result["reason"]
    await machine.run("systemctl enable --now microdcs-edge-upgrade.socket")
    exposure = await machine.run("systemd-analyze security --no-pager microdcs-edge-upgrade@1 | tail -n 1")
    assert float(exposure.split(":")[1].split()[0]) <= 4.0
    assert "no signed command" in await pass_on(machine, "microdcs-edge; rm -rf /")
    assert "key unknown" in await pass_on(machine, await sign(machine, "ben", "upgrade"))
    assert "is not a version" in await pass_on(
        machine, await sign(machine, "anna", "upgrade --version=-oDir::Etc=/tmp")
    )
    stranger = await machine.call("runuser -u nobody -- python3 /opt/send.py")
    assert "PermissionError" in stranger[1]
    await machine.run("chmod 666 /etc/microdcs-edge/conf.d/60-fleet.toml")
    assert "others than root may change" in await pass_on(machine, await sign(machine, "anna", "upgrade"))
    await machine.run("chmod 640 /etc/microdcs-edge/conf.d/60-fleet.toml")


async def test_signed_command_upgrades_once_and_survives_the_restart(
    machine: Machine, versions: tuple[str, str]
) -> None:
    before = await machine.run("systemctl show --value --property MainPID microdcs-edge")
    result = await send(machine, "upgrade")
    assert result["state"] == "successful", result
    assert f"{versions[1]} replaces {versions[0]}" in result["output"]
    assert await machine.run("dpkg-query --show --showformat='${Version}' microdcs-edge") == versions[1]
    assert await machine.run("systemctl show --value --property MainPID microdcs-edge") != before
    assert await machine.run("systemctl is-active microdcs-edge microdcs-edge-upgrade.socket") == "active\nactive"
    assert "0 faults" in await machine.run("edge audit verify")
    older = await sign(machine, "anna", f"upgrade --version={versions[0]}")
    assert "executing" in await pass_on(machine, older)
    assert "is not newer" in await machine.run("cat /var/lib/microdcs-edge-upgrade/*.json")
    assert "executed before" in await pass_on(machine, older)
    await machine.run("apt-get purge --yes microdcs-edge")
    left = await machine.run("find /etc /run /usr /var -name '*microdcs*' -not -path '*/apt/*' -not -path '*/dpkg/*'")
    assert "upgrade" not in left
