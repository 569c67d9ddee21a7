"""The role installs a running gateway on a fresh Debian, predicts its changes, and changes nothing the second time."""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.ansible.playing import ROOT, boot_archive, connection, keep_packages, make_repository, play_book
from tests.system.machine import Machine

pytestmark = [pytest.mark.system, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

FOLDER = ROOT / "build" / "ansible-machine"
# Packages that the role installs in addition to the gateway, and those that Ansible needs for apt.
FROM_DEBIAN = "python3-apt mosquitto redis-tools nftables unattended-upgrades python3-systemd"

PASSWORD = "kept: in $ a vault"  # with what shells and YAML might take for theirs
VARIABLES: dict[str, object] = {
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
    shutil.rmtree(FOLDER, ignore_errors=True)
    make_repository(FOLDER / "shared")
    machine = Machine.unpack(boot_archive(), FOLDER / "root", FOLDER / "shared")
    keep_packages(machine.root, FROM_DEBIAN)
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


async def play(machine: Machine, *options: str, **variables: object) -> dict[str, int]:
    """Play the role against the machine; return Ansible's number of tasks by their result."""
    host = VARIABLES | connection(machine, FOLDER) | variables
    printed, counts = await play_book("line.yml", {"line": {"hosts": {"gateway": host}}}, FOLDER, *options)
    assert PASSWORD not in printed
    return counts["gateway"]


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
