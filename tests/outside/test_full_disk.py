"""A full disk stops no gateway: work waits, the status names the cause, and work continues afterwards."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, order
from tests.outside.servers import Store, wait_for

pytestmark = pytest.mark.slow

_MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'


def on_own_disk(size: str, directory: Path, *command: str | Path) -> tuple[str | Path, ...]:
    """Return a command that runs with a file system of its own, of this size, at a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    return ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh", size, directory, *command)


@pytest.fixture(autouse=True)
def _namespaces(tmp_path: Path) -> None:
    command = on_own_disk("1m", tmp_path / "probe", "true")
    if not shutil.which("unshare") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not permit unshare --user --mount")


class SmallStore(Store):
    """A redis-server whose disk can be filled."""

    @property
    def _filler(self) -> Path:
        return Path(f"/proc/{self.pid}/root{self.directory}/disk/filler")

    def start(self) -> None:
        """Start it with an empty disk."""
        self.socket.unlink(missing_ok=True)
        disk = self.directory / "disk"
        redis = ("redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", disk, "--save", "")
        options = ("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")
        self.launch(
            on_own_disk("12m", disk, *redis, *options),
            lambda: self.socket.exists() and self.cli("ping") == "PONG",
        )

    def fill(self) -> None:
        """Fill its disk; return once it refuses changes."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        wait_for(lambda: self.cli("set", "filling", "x" * 8192).startswith("MISCONF"), "the store refuses changes")

    def free(self) -> None:
        """Free its disk."""
        self._filler.unlink()


@pytest.fixture
def small(plant: Plant) -> Iterator[SmallStore]:
    """The store of the plant, on a disk of its own."""
    plant.gateway.stop()
    plant.store.kill()
    store = SmallStore(plant.store.directory)
    store.start()
    plant.gateway.start()
    plant.mes.configure()
    yield store
    store.kill()


def test_a_store_with_a_full_disk_delays_jobs_and_loses_none(plant: Plant, small: SmallStore) -> None:
    """Redis refuses changes (MISCONF); what the MES and the tool send meanwhile waits at the broker."""
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.mes.wait_for_state("J1", "Running")
    small.fill()
    waiting = plant.mes.send(METHOD.format("StoreAndStart"), order("J2"))
    plant.wrench.release()
    plant.gateway.wait_for_status(lambda line: "cannot write to its disk" in line, "the status names the disk")
    assert "MISCONF" in plant.gateway.cli("doctor")
    assert plant.mes.answer_to(waiting) is None
    small.free()
    plant.mes.client.wait(lambda: plant.mes.answer_to(waiting), "the call is answered", 60)
    for job in ("J1", "J2"):
        plant.mes.wait_for_state(job, "Ended", 60)
        assert plant.mes.states(job) == ["Running", "Ended"]
    assert len(set(plant.wrench.starts())) == 2
    plant.gateway.wait_for_status(lambda line: "disk" not in line, "the status is good again")


def test_a_full_log_stops_no_job(plant: Plant) -> None:
    """Every line of the log fails to be written."""
    plant.gateway.stop()
    plant.gateway.log = Path("/dev/full")
    plant.gateway.start()
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    assert plant.mes.call("Clear", {"JobOrderID": "J9"}).status == 2


def test_a_full_disk_of_certificates_delays_opc_ua_only(plant: Plant) -> None:
    """The first start cannot write the certificate of the server; it is written once there is room."""
    gateway = plant.gateway
    gateway.stop()
    disk, settings = gateway.directory / "disk", gateway.settings
    settings.write_text(settings.read_text().replace(f'pki = "{gateway.directory}/pki"', f'pki = "{disk}/pki"'))
    fill = 'dd if=/dev/zero of="$0/filler" bs=4k; exec "$@"'
    gateway.within = on_own_disk("64k", disk, "sh", "-c", fill, disk)
    gateway.start()
    gateway.wait_for_status(lambda line: "degraded" in line and "No space left" in line, "the status names the disk")
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    Path(f"/proc/{gateway.pid}/root{disk}/filler").unlink()
    gateway.wait_for_status(lambda line: "degraded" not in line, "OPC UA is served", 60)
