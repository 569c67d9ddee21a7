"""The package for the other architecture installs and runs under qemu-user where available."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.conftest import ROOT, SUITE

HANDLER = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
# Redis looks for a fault of old arm64 kernels with a call that qemu does not know.
SERVER = """\
#!/bin/bash
exec -a redis-server /usr/bin/redis-check-rdb "$@" --ignore-warnings ARM64-COW-BUG
"""

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.environ.get("ARCH") != "arm64", reason="takes minutes: make system-test ARCH=arm64"),
    pytest.mark.skipif(not HANDLER.exists(), reason="qemu-user is not set up here: apt install qemu-user-static"),
]


@pytest.fixture(scope="module")
def root(repository: Path) -> Iterator[Path]:
    """A root of that architecture with the package, installed as `apt` does without running services."""
    made = subprocess.run(
        [ROOT / ".ci/root", "boot", SUITE, "arm64"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    root = repository.parent / "root-arm64"
    root.mkdir()
    subprocess.run(["tar", "--extract", f"--directory={root}", f"--file={ROOT / made}"], check=True)
    (package,) = (ROOT / "dist").glob(f"*deb{ {'bookworm': 12, 'trixie': 13}[SUITE] }u*_arm64.deb")
    shutil.copy(package, root / "opt/microdcs-edge.deb")
    inside(root, "apt-get", "install", "--yes", "/opt/microdcs-edge.deb")
    server = root / "usr/local/bin/redis-server"
    server.write_text(SERVER)
    server.chmod(0o755)
    yield root
    shutil.rmtree(root)


def inside(root: Path, *command: str) -> str:
    environment = {
        "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    return subprocess.run(
        ["chroot", root, *command], env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_edge_reports_its_version_on_the_other_architecture(root: Path) -> None:
    assert "microdcs-edge" in inside(root, "edge", "--version")


def test_demo_runs_a_complete_job_on_the_other_architecture(root: Path) -> None:
    output = inside(root, "edge", "demo", "--chart", "/opt/demo.svg")
    assert "DEMO OK" in output
    assert (root / "opt/demo.svg").exists()


def test_gateway_becomes_ready_and_stops_on_the_other_architecture(root: Path) -> None:
    socket = root / "opt/redis.sock"
    options = "--port 0 --unixsocket /opt/redis.sock --dir /opt --appendonly yes"
    store = subprocess.Popen(
        ["chroot", root, "/usr/local/bin/redis-server", *options.split()], stdout=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 120
        while not socket.exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        environment = {
            "PATH": "/usr/sbin:/usr/bin",
            "EDGE_REDIS__URL": "unix:///opt/redis.sock",
            "EDGE_MQTT__URL": "",
            "EDGE_OPCUA__ENDPOINT": "opc.tcp://127.0.0.1:0",
            "EDGE_LOGGING__FORMAT": "json",
        }
        command = ["chroot", str(root), "edge", "run"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as gateway:
            assert gateway.stderr
            for line in gateway.stderr:
                if '"ready"' in line:
                    gateway.send_signal(signal.SIGTERM)
        assert gateway.returncode == 0
    finally:
        store.terminate()
        store.wait()
