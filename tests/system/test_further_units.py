"""Further units of the package: the volatile sample store and workers for site node kinds."""

import json

import pytest

from tests.system.machine import Machine

pytestmark = [
    pytest.mark.system,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(360),
]

SETTINGS = """\
[opcua]
advertise = true
[telemetry]
keep = "volatile"
[flows]
run = "on"
nodes = "/etc/microdcs-edge/nodes"
"""
KIND = '''\
"""Doubles a number."""

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output


class DoubleConfig(NodeConfig, frozen=True):
    """No members."""


def run(config: DoubleConfig, attempt: Attempt) -> Output:
    return Output(2 * attempt.input)


KIND = NodeKind("site.double", "Doubles a number.", DoubleConfig, Inputs.ONE, Compute(run))
'''
FLOW = {
    "id": "doubled",
    "interval_seconds": 0,
    "nodes": [
        {"id": "number", "kind": "constant", "config": {"value": 21}},
        {"id": "twice", "kind": "site.double", "config": {}},
    ],
    "edges": [["number", "twice"]],
}


async def install(machine: Machine) -> None:
    """Install the gateway with settings for both units."""
    only_ours = "-o Dir::Etc::sourcelist=sources.list.d/microdcs-edge.sources -o Dir::Etc::sourceparts=-"
    await machine.run(f"apt-get update {only_ours} -o APT::Get::List-Cleanup=0 && apt-get install --yes microdcs-edge")
    etc = machine.root / "etc/microdcs-edge"
    (etc / "conf.d").mkdir(exist_ok=True)
    (etc / "conf.d/60-units.toml").write_text(SETTINGS)
    (etc / "nodes").mkdir()
    (etc / "nodes/double.py").write_text(KIND)
    (machine.root / "opt/flow.json").write_text(json.dumps(FLOW))
    # As avahi-daemon has it.
    await machine.run("mkdir -p /etc/avahi/services")
    await machine.run("chgrp -R microdcs-edge /etc/microdcs-edge/conf.d /etc/microdcs-edge/nodes")
    await machine.run("chmod 640 /etc/microdcs-edge/conf.d/60-units.toml && systemctl restart microdcs-edge")


async def test_store_of_samples_starts_with_the_gateway_and_writes_no_file(machine: Machine) -> None:
    await install(machine)
    unit = "microdcs-edge-telemetry-store"
    assert await machine.run(f"systemctl is-active {unit}") == "active"
    socket = "/run/redis-microdcs-telemetry/redis.sock"
    persistence = await machine.run(f"redis-cli -s {socket} info persistence")
    assert "aof_enabled:0" in persistence
    assert "volatile" in await machine.run("edge hw volatile; edge doctor | grep -i volatile")
    await machine.run(f"systemctl kill --signal SIGKILL {unit}")
    await machine.run(f"until redis-cli -s {socket} ping; do sleep 0.2; done")
    assert await machine.run("systemctl is-active microdcs-edge") == "active"


async def test_store_with_zeros_at_its_end_starts_again_by_itself(machine: Machine) -> None:
    """ext4 leaves zeros at the end of a file after a power cut."""
    await machine.run("systemctl kill --signal SIGKILL redis-server@microdcs; systemctl stop redis-server@microdcs")
    await machine.run("head -c 512 /dev/zero >> $(ls -t /var/lib/redis-microdcs/appendonlydir/*.incr.aof | head -n 1)")
    await machine.run("systemctl start redis-server@microdcs || true")
    await machine.run("timeout 60 sh -c 'until systemctl is-active redis-server@microdcs; do sleep 0.2; done'")
    assert "512 bytes cut off" in await machine.run("journalctl -u redis-server@microdcs --no-pager")
    await machine.run("timeout 60 sh -c 'until systemctl is-active microdcs-edge; do sleep 0.2; done'")
    assert "repaired" in await machine.run("edge doctor || true")
    await machine.run("rm -r /var/lib/redis-microdcs/repaired")


async def test_worker_unit_runs_a_node_of_the_site(machine: Machine) -> None:
    await machine.run("systemctl enable --now microdcs-edge-worker@1")
    await machine.run("edge flows put /opt/flow.json && edge flows start doubled")
    shown = "edge flows show doubled --json"
    await machine.run(f'until {shown} | grep -q \'"status":"completed"\'; do sleep 0.2; done')
    cycle = json.loads(await machine.run(shown))["cycle"]
    assert [node["output"] for node in cycle["nodes"] if node["node"] == "twice"] == [42]
    exposure = await machine.run("systemd-analyze security --no-pager microdcs-edge-worker@1 | tail -n 1")
    assert float(exposure.split(":")[1].split()[0]) <= 1.5
    await machine.run("systemctl stop microdcs-edge-worker@1")
    assert "success" in await machine.run("systemctl show --property Result microdcs-edge-worker@1")


async def test_mdns_announcement_exists_while_the_gateway_runs(machine: Machine) -> None:
    file = "/etc/avahi/services/microdcs-edge.service"
    await machine.run(f"until test -e {file}; do sleep 0.2; done; grep -q '<port>4840</port>' {file}")
    assert await machine.run(f"stat --format '%U %a' {file}") == "root 644"
    assert "by mDNS" in await machine.run("edge doctor | grep announcement")
    await machine.run(f"systemctl stop microdcs-edge && ! test -e {file}")
    await machine.run(f"systemctl start microdcs-edge && until test -e {file}; do sleep 0.2; done")
    await machine.run(f"apt-get remove --yes microdcs-edge && ! test -e {file}")
    await machine.run("! systemctl is-failed --quiet microdcs-edge-mdns")
