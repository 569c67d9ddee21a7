"""A power cut that leaves zeros at the end of the store's file costs no job, and no hand."""

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import Gateway, wait_for


def processes_in(directory: Path) -> list[int]:
    """Return the processes whose command line names a directory."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and str(directory) in (process / "cmdline").read_text():
                found.append(int(process.name))
    return found


def end_store(store: Path) -> None:
    """End the server that a killed gateway leaves running in a directory."""
    for pid in processes_in(store):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not processes_in(store), "the store has ended")


def cut_power(gateway: Gateway, store: Path) -> None:
    """End gateway and store at once, and leave what ext4 does: zeros where data were allocated."""
    gateway.kill()
    end_store(store)
    (file,) = store.glob("appendonlydir/*.incr.aof")
    with file.open("ab") as content:
        content.write(bytes(512))


@pytest.mark.slow
def test_gateway_continues_after_a_power_cut_with_zeros_in_its_store(plant: Plant, tmp_path: Path) -> None:
    store = tmp_path / "embedded"
    plant.gateway.kill()
    gateway = plant.new_gateway("cut", None)
    gateway.settings.write_text(
        gateway.settings.read_text().replace(f"unix://{plant.store.socket}", f"embedded:{store}")
    )
    gateway.start()
    plant.mes.configure()
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended", 60)
    cut_power(gateway, store)
    gateway.start()
    jobs = json.loads(gateway.cli("jobs", "list", "--json"))
    assert [job["job_order_id"] for job in jobs] == ["J1"]
    assert plant.mes.start_job("J2").status == 1
    plant.mes.wait_for_state("J2", "Ended", 60)
    findings = json.loads(gateway.cli("doctor", "--json"))["findings"]
    (repaired,) = [finding for finding in findings if finding["subject"] == "store repaired"]
    assert "512 bytes were cut off" in repaired["found"]
    gateway.kill()
    end_store(store)
