"""The addresses of this host are listed as the kernel has them, without those that no other host can reach."""

import shutil
import subprocess
import sys

import pytest

_UNSHARED = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec")
_INTERFACES = """
mount -t sysfs none /sys
ip link set lo up
ip link add plant0 type veth peer name far0
ip link set plant0 up
ip link set far0 up
ip addr add 10.0.0.5/24 dev plant0
ip addr add 10.0.0.6/24 dev plant0
ip addr add 10.0.9.7/24 dev plant0 label plant0:1
ip addr add 169.254.3.3/16 dev plant0
ip addr add fd00::5/64 dev plant0 nodad
ip addr add fd00::6/64 dev plant0 nodad preferred_lft 0
ip link add containers0 type bridge
ip link set containers0 up
ip addr add 172.17.0.1/16 dev containers0
ip link add inside0 type veth peer name inside1
ip link set inside0 master containers0
"""
_LISTED = "from edge.links.host_addresses import host_addresses; print(*host_addresses({}))"


def _in_a_network(commands: str, options: str = "") -> str:
    """Return the addresses that are listed in a network namespace made by these commands."""
    script = (*_UNSHARED, f'{commands}\nexec "$0" -c "{_LISTED.format(options)}"', sys.executable)
    ran = subprocess.run(script, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    probe = (*_UNSHARED, _INTERFACES)
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not permit network namespaces")


def test_addresses_of_all_interfaces_are_listed_but_local_ones() -> None:
    """Not listed: loopback, link-local, deprecated, and that of a bridge to containers only."""
    assert sorted(_in_a_network(_INTERFACES).split()) == ["10.0.0.5", "10.0.0.6", "10.0.9.7", "fd00::5"]


def test_link_local_addresses_of_ipv4_are_listed_on_demand() -> None:
    """A computer on a direct cable reaches the gateway by such an address."""
    listed = set(_in_a_network(_INTERFACES, "with_link_local=True").split())
    assert listed == {"10.0.0.5", "10.0.0.6", "10.0.9.7", "169.254.3.3", "fd00::5"}


def test_host_without_a_network_has_no_addresses() -> None:
    assert _in_a_network("ip link set lo up") == ""
