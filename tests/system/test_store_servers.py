"""Redis or Valkey: the store stays with the server that wrote it, also when the other is installed."""

import pytest

from tests.system.conftest import SUITE
from tests.system.machine import Machine

pytestmark = [
    pytest.mark.system,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(360),
    pytest.mark.skipif(SUITE == "bookworm", reason="Debian 12 has no Valkey"),
]

REDIS, VALKEY = "redis-server@microdcs", "valkey-server@microdcs"
RESTART = "systemctl restart microdcs-edge"  # it ends once the gateway is ready
ORDER = '{"JobOrderID": "J1", "WorkMasterID": [{"ID": "bolt"}]}'
RECIPE = '{"steps": [{"name": "Wait", "initial": true}], "transitions": [], "actions": []}'


async def states(machine: Machine) -> list[str]:
    _, printed = await machine.call(f"systemctl is-active {REDIS} {VALKEY}")
    return printed.split()


async def test_installation_of_valkey_keeps_the_redis_store(machine: Machine) -> None:
    only_ours = "-o Dir::Etc::sourcelist=sources.list.d/microdcs-edge.sources -o Dir::Etc::sourceparts=-"
    await machine.run(f"apt-get update {only_ours} -o APT::Get::List-Cleanup=0")
    await machine.run(f"apt-get install --yes microdcs-edge && {RESTART}")
    await machine.run(f"echo '{RECIPE}' | edge station set workmaster - --id bolt")
    await machine.run(f"echo '{ORDER}' | edge jobs store -")
    store = f"systemctl show --value --property MainPID {REDIS}"
    before = await machine.run(store)
    await machine.run(f"apt-get install --yes valkey-server && {RESTART}")
    assert (await machine.run(store), await states(machine)) == (before, ["active", "inactive"])


async def test_backup_and_restore_move_the_store_to_valkey(machine: Machine) -> None:
    # Purged, redis-tools takes the directory of its settings along: those of the store are elsewhere.
    await machine.run("edge backup /opt/before.tar.gz && apt-get purge --yes redis-tools")
    await machine.run(f"systemctl stop microdcs-edge {REDIS} && rm -r /var/lib/redis-microdcs")
    await machine.run(f"systemctl start {VALKEY} && edge restore /opt/before.tar.gz && systemctl start microdcs-edge")
    assert await states(machine) == ["inactive", "active"]
    assert "J1" in await machine.run("edge jobs list")


async def test_valkey_store_with_zeros_at_its_end_starts_again_by_itself(machine: Machine) -> None:
    """Its unit permits few programs: those of the repair are among them."""
    await machine.run(f"systemctl kill --signal SIGKILL {VALKEY}; systemctl stop {VALKEY}")
    await machine.run("head -c 512 /dev/zero >> $(ls -t /var/lib/redis-microdcs/appendonlydir/*.incr.aof | head -n 1)")
    await machine.run(f"systemctl start {VALKEY} || true")
    await machine.run(f"timeout 60 sh -c 'until systemctl is-active {VALKEY}; do sleep 0.2; done'")
    assert "512 bytes cut off" in await machine.run(f"journalctl -u {VALKEY} --no-pager")
    await machine.run("timeout 60 sh -c 'until systemctl is-active microdcs-edge; do sleep 0.2; done'")
    assert "J1" in await machine.run("edge jobs list")


async def test_store_without_the_list_of_its_files_does_not_start_empty(machine: Machine) -> None:
    """It started without a job and without a word, and the next rewrite removed the files."""
    manifest = "/var/lib/redis-microdcs/appendonlydir/appendonly.aof.manifest"
    await machine.run(f"systemctl stop microdcs-edge {VALKEY} && mv {manifest} /opt/manifest")
    await machine.run(f"! systemctl start {VALKEY} && systemctl stop {VALKEY}")
    assert "has no manifest" in await machine.run(f"journalctl -u {VALKEY} --no-pager")
    await machine.run(f"mv /opt/manifest {manifest} && systemctl start {VALKEY}")
    await machine.run("systemctl start microdcs-edge")
    assert "J1" in await machine.run("edge jobs list")


async def test_installation_of_redis_tools_keeps_the_valkey_store(machine: Machine) -> None:
    await machine.run(f"apt-get install --yes redis-tools && systemctl restart {VALKEY} && {RESTART}")
    assert await states(machine) == ["inactive", "active"]
    assert "J1" in await machine.run("edge jobs list")
