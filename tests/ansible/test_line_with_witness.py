"""The playbook sets up a line of two gateways and a witness, and changes nothing after a failover."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.ansible.playing import ROOT, boot_archive, connection, keep_packages, make_repository, play_book
from tests.system.line import ASK_SENTINEL, STORE, Line, until
from tests.system.machine import Machine, Place, Switch

pytestmark = [pytest.mark.system, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

FOLDER = ROOT / "build" / "ansible-line"
FROM_DEBIAN = f"python3-apt mosquitto {STORE}-server {STORE}-sentinel nftables python3-systemd openssl"
SECRETS = {name: f"kept-in-a-vault-{name}" for name in ("store", "sentinel", "gateway")}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def line() -> AsyncIterator[Line]:
    """Three machines on which nothing is set up."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    make_repository(FOLDER / "shared")
    async with Switch() as switch:
        machines: list[Machine] = []
        try:
            for number, name in enumerate(("gateway-1", "gateway-2", "witness")):
                place = Place(switch, number, name)
                machines.append(Machine.unpack(boot_archive(), FOLDER / name / "root", FOLDER / "shared", place))
                keep_packages(machines[-1].root, FROM_DEBIAN)
            await asyncio.gather(*(machine.boot() for machine in machines))
            yield Line(machines)
        finally:
            for item in machines:
                await item.cut_power()
                item.remove()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def certificates(line: Line) -> Path:
    """The folder that step 2 of the page makes."""
    (first, _, _) = line.machines
    for heading in ("Names of this line: every machine", "Certificates and passwords: first machine"):
        await first.run(line.commands(heading, first))
    folder = FOLDER / "certificates"
    shutil.copytree(first.root / "etc/line", folder)
    return folder


async def play(line: Line, certificates: Path, *options: str) -> dict[str, dict[str, int]]:
    """Play the book; return the number of tasks of each host by their result."""
    names = ("gateway-1", "gateway-2", "witness")
    hosts = {name: connection(machine, FOLDER) for name, machine in zip(names, line.machines, strict=True)}
    witness = line.machines[2].address
    variables: dict[str, object] = {
        "line_store_addresses": {name: machine.address for name, machine in zip(names, line.machines, strict=True)},
        "line_store_witness": "witness",
        "line_store_certificates": str(certificates),
        "line_store_password": SECRETS["store"],
        "line_store_sentinel_password": SECRETS["sentinel"],
        "line_store_broker_users": [{"name": "gateway", "password": SECRETS["gateway"]}],
        "gateway_topology": "line",
        "gateway_repository_url": "file:///shared/repo",
        "gateway_repository_key": str(FOLDER / "shared/repo/microdcs-edge.asc"),
        "gateway_settings": {
            "gateway": {"name": "{{ inventory_hostname }}", "scopes": ["station-1"]},
            "mqtt": {
                "url": f"mqtts://{witness}:8883",
                "ca_file": "/etc/microdcs-edge/line-ca.pem",
                "username": "gateway",
                "password_file": "password_mqtt",
            },
        },
        "gateway_passwords": {"mqtt": SECRETS["gateway"]},
    }
    gateways = {"hosts": {name: hosts[name] for name in names[:2]}}
    inventory = {
        "line": {"children": {"gateways": gateways}, "hosts": {"witness": hosts["witness"]}, "vars": variables}
    }
    printed, counts = await play_book("line-with-witness.yml", inventory, FOLDER, *options)
    assert not [name for name, secret in SECRETS.items() if secret in printed]
    return counts


async def _primary(line: Line) -> str:
    asked = ASK_SENTINEL.replace("$(cat /etc/line/sentinel.password)", SECRETS["sentinel"])
    asked = asked.replace(". /etc/line/names; ", f"STORE={STORE}; ").replace("$HERE", line.machines[0].address)
    printed = await line.machines[0].run(f"{asked} get-master-addr-by-name line")
    return printed.split()[0]


async def test_book_sets_up_a_line_of_three_machines(line: Line, certificates: Path) -> None:
    assert [entry["failed"] for entry in (await play(line, certificates)).values()] == [0, 0, 0]
    for machine in line.machines[:2]:
        assert await machine.run("systemctl is-active microdcs-edge") == "active"
        assert await machine.run(f"stat -c %a /etc/{STORE}/{STORE}-line.conf") == "640"
    assert await _primary(line) == line.machines[0].address


async def test_second_run_changes_nothing_also_after_a_failover(line: Line, certificates: Path) -> None:
    assert [entry["changed"] for entry in (await play(line, certificates)).values()] == [0, 0, 0]
    first = line.machines[0]
    await first.run(f"systemctl stop {STORE}-server@line")

    async def switched() -> bool:
        return await _primary(line) != first.address

    await until(switched, "the other store is the primary")
    await first.run(f"systemctl start {STORE}-server@line")
    assert [entry["changed"] for entry in (await play(line, certificates)).values()] == [0, 0, 0]
