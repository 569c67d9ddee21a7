"""The role installs a running gateway on a fresh Debian, predicts its changes, and changes nothing the second time."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.system.machine import Machine

pytestmark = [pytest.mark.system, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SUITE = os.environ.get("SUITE", "trixie")
RELEASE = {"bookworm": 12, "trixie": 13}[SUITE]
FOLDER = ROOT / "build" / "ansible-machine"
PLAYBOOK = ROOT / "ansible" / "line.yml"
# Packages that the role installs in addition to the gateway, and those that Ansible needs for apt.
FROM_DEBIAN = "python3-apt mosquitto redis-tools nftables unattended-upgrades python3-systemd"

PASSWORD = "kept: in $ a vault"  # with what shells and YAML might take for theirs
VARIABLES: dict[str, object] = {
    "ansible_become": False,  # we come as root; a bare Debian has no sudo
    "gateway_repository_url": "file:///shared/repo",
    "gateway_repository_key": str(FOLDER / "shared/repo/microdcs-edge.asc"),
    "gateway_settings": {
        "gateway": {"name": "station-1", "scopes": ["left", "right"]},
        "mqtt": {"username": "edge", "password_file": "password_mqtt"},
        "southbound": {"wrench": {"type_ids": ["com.example.station.tighten.v1"]}},
        "source": {
            "line": {"topic": "sensors/#"},
            "press": {"kind": "redis", "url": "redis://127.0.0.1:6379/0", "patterns": ["press:*"], "interval": 0.5},
        },
        "mirror": {"carriers": {"url": "redis://127.0.0.1:6379/0", "key": "carriers"}},
    },
    "gateway_passwords": {"mqtt": PASSWORD},
    "gateway_users": [{"name": "alice", "role": "operator", "password": "correct horse battery"}],
    "gateway_broker_users": [{"name": "edge", "password": PASSWORD}],
    "gateway_redis_maxmemory": "128mb",
    "gateway_board": "sim",
    "gateway_firewall": True,
    "gateway_firewall_rules": [{"port": 4840, "sources": ["10.4.0.0/16", "169.254.77.1"]}],
    "gateway_unattended_upgrades": True,
    "gateway_backup": True,
}


@pytest.fixture(scope="module")
def fresh() -> Machine:
    """A Debian as it comes, switched off, that can have what it needs without any network."""
    shared = FOLDER / "shared"
    shutil.rmtree(FOLDER, ignore_errors=True)
    shared.mkdir(parents=True)
    for package in (ROOT / "dist").glob(f"microdcs-edge_*+deb{RELEASE}u*_amd64.deb"):
        shutil.copy(package, shared)
    subprocess.run([ROOT / ".ci/repo", shared], check=True, stdout=subprocess.DEVNULL)
    made = subprocess.run([ROOT / ".ci/root", "boot", SUITE], check=True, capture_output=True, text=True)
    machine = Machine.unpack(ROOT / made.stdout.strip(), FOLDER / "root", shared)
    _keep_packages(machine.root)
    return machine


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def machine(fresh: Machine) -> AsyncIterator[Machine]:
    """The same, running."""
    try:
        await fresh.boot()
        yield fresh
    finally:
        await fresh.cut_power()
        fresh.remove()


def _keep_packages(root: Path) -> None:
    """Fetch what comes from Debian, and make it the only Debian that the machine knows."""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    quietly = "apt-get -qq --yes"
    fetch = f"{quietly} update; {quietly} --download-only install {FROM_DEBIAN}"
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["chroot", root, "sh", "-ec", fetch], check=True, env=environment, stdout=subprocess.DEVNULL)
    (root / "etc/resolv.conf").write_text("")
    kept = root / "srv/debian"
    shutil.copytree(root / "var/cache/apt/archives", kept, ignore=shutil.ignore_patterns("partial", "lock"))
    listed = subprocess.run(["apt-ftparchive", "packages", "."], cwd=kept, check=True, capture_output=True)
    (kept / "Packages").write_bytes(listed.stdout)
    for source in (root / "etc/apt").glob("sources.list*"):
        shutil.rmtree(source) if source.is_dir() else source.unlink()
    (root / "etc/apt/sources.list.d").mkdir()
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:///srv/debian ./\n")
    subprocess.run(["chroot", root, "apt-get", "-qq", "update"], check=True, env=environment)


async def play(machine: Machine, *options: str, **variables: object) -> dict[str, int]:
    """Play the role against the machine; return Ansible's number of tasks by their result."""
    (FOLDER / "hosts.yml").write_text(json.dumps({"line": {"hosts": {"gateway": VARIABLES | variables}}}))
    environment = os.environ | {
        "MACHINE_INIT": str(machine._init),  # noqa: SLF001 - the connection enters there
        "ANSIBLE_SSH_EXECUTABLE": str(Path(__file__).with_name("connection")),
        "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
    }
    process = await asyncio.create_subprocess_exec(
        *(f"{ROOT}/build/ansible/bin/ansible-playbook", f"--inventory={FOLDER}/hosts.yml", str(PLAYBOOK), *options),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    print(printed)  # noqa: T201 - shown when a test fails
    assert PASSWORD not in printed
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", printed.rpartition("PLAY RECAP")[2])}


async def test_check_mode_on_a_fresh_machine_reports_changes_only(machine: Machine) -> None:
    before = await machine.run("find /etc -newer /etc/hostname | sort")
    status, _ = await machine.call("python3 -c 'import apt'")
    assert status != 0
    counts = await play(machine, "--check", "--diff")
    assert (counts["failed"], counts["changed"] > 0) == (0, True)
    assert await machine.run("find /etc -newer /etc/hostname | sort") == before


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"redsi": {"url": "redis://127.0.0.1"}}, "there is no such section: redsi"),
        ({"redis": {"ulr": "redis://127.0.0.1"}}, "gateway_settings.redis: there is no such key: ulr"),
        ({"southbound": {"wrench": {"typeids": []}}}, "southbound.wrench: there is no such key: typeids"),
        ({"source": {"line": {"topics": []}}}, "source.line: there is no such key: topics"),
        ({"mirror": {"carriers": {"set": "s"}}}, "mirror.carriers: there is no such key: set"),
    ],
)
async def test_unknown_settings_are_refused_before_any_change(
    machine: Machine, settings: dict[str, object], named: str
) -> None:
    with pytest.raises(AssertionError, match=named):
        await play(machine, gateway_settings=settings)
    assert not (machine.root / "usr/bin/edge").exists()


async def test_first_run_installs_a_running_gateway(machine: Machine) -> None:
    assert (await play(machine))["failed"] == 0
    assert await machine.run("systemctl is-active microdcs-edge") == "active"
    assert await machine.run("systemctl is-enabled microdcs-edge") == "enabled"
    assert "2 sources of samples" in await machine.run("systemctl show -P StatusText microdcs-edge")
    assert (
        await machine.run("redis-cli -s /run/redis-microdcs/redis.sock config get maxmemory") == "maxmemory\n134217728"
    )


async def test_board_firewall_and_backup_are_set_up(machine: Machine) -> None:
    await machine.run("test -e /etc/udev/rules.d/60-microdcs-edge.rules")
    assert "tcp dport 4840 drop" in await machine.run("nft list table inet microdcs_edge")
    assert await machine.run("systemctl is-active microdcs-edge-backup.timer") == "active"


async def test_passwords_are_readable_by_root_and_the_gateway_only(machine: Machine) -> None:
    assert await machine.run("stat -c '%a %U' /etc/microdcs-edge/passwords/mqtt") == "600 root"
    assert await machine.run("stat -c '%a %U %G' /etc/microdcs-edge/conf.d/50-site.toml") == "640 root microdcs-edge"


async def test_configured_user_is_in_the_opcua_users_file(machine: Machine) -> None:
    assert (await machine.run("cat /etc/microdcs-edge/opcua-users")).startswith("alice:operator:")
    assert await machine.run("stat -c '%a %G' /etc/microdcs-edge/opcua-users") == "640 microdcs-edge"


async def test_second_run_changes_nothing(machine: Machine) -> None:
    assert (await play(machine))["changed"] == 0
    assert (await play(machine, "--check", "--diff"))["changed"] == 0


async def test_invalid_setting_is_never_written(machine: Machine) -> None:
    settings = await machine.run("cat /etc/microdcs-edge/conf.d/50-site.toml")
    with pytest.raises(AssertionError, match=r"redis\.url: expected"):
        await play(machine, gateway_settings={"redis": {"url": "http://127.0.0.1"}})
    assert await machine.run("cat /etc/microdcs-edge/conf.d/50-site.toml") == settings
    assert await machine.run("systemctl is-active microdcs-edge") == "active"


async def test_package_is_installed_from_a_file(machine: Machine) -> None:
    (package,) = (FOLDER / "shared").glob("*.deb")
    counts = await play(machine, gateway_source="file", gateway_package=str(package))
    assert counts["failed"] == 0
    assert await machine.run("systemctl is-active microdcs-edge") == "active"
