"""Locks of killed processes: those of a user expire, those of a job stay with the job."""

import contextlib
import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTEN_ACTION
from tests.outside.servers import EDGE, wait_for

pytestmark = pytest.mark.slow

KINDS = ("equipment", "station", "job", "operation")


def test_locks_of_a_killed_process_expire_and_waiters_continue_in_order(plant: Plant, tmp_path: Path) -> None:
    order = tmp_path / "order"

    def hold(kind: str, name: str, *command: str) -> subprocess.Popen[bytes]:
        settings = ("--settings", str(plant.gateway.settings))
        options = ("--reason", name, "--wait", "60", *settings)
        return subprocess.Popen([str(EDGE), "locks", "hold", *options, kind, "it", *command])

    def waiting(number: int) -> bool:
        listed = json.loads(plant.gateway.cli("locks", "list", "--json"))
        return len(listed) == len(KINDS) and all(len(value["waiters"]) == number for value in listed)

    holders = [hold(kind, "first", "sleep", "600") for kind in KINDS]
    wait_for(lambda: waiting(0), "all kinds are held")
    others = []
    for number, name in enumerate(("second", "third"), 1):
        others += [hold(kind, name, "sh", "-c", f"echo {kind} {name} >> {order}") for kind in KINDS]
        wait_for(partial(waiting, number), f"{name} waits for all kinds")
    refused = subprocess.run(
        [str(EDGE), "locks", "delete", "job", "--settings", str(plant.gateway.settings)],
        capture_output=True,
        check=False,
    )
    assert refused.returncode == 1
    assert b"is alive" in refused.stderr
    children = [_child_of(popen.pid) for popen in holders]
    for holder in holders:
        holder.kill()
        holder.wait()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGTERM)
    assert [other.wait(60) for other in others] == [0] * len(others)
    lines = order.read_text().splitlines()
    assert [[line for line in lines if line.startswith(kind)] for kind in KINDS] == [
        [f"{kind} second", f"{kind} third"] for kind in KINDS
    ]
    assert json.loads(plant.gateway.cli("locks", "list", "--json")) == []


def _child_of(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]


def test_jobs_of_one_tool_do_not_alternate_after_a_gateway_kill(plant: Plant) -> None:
    """Two bolts of a part under one lock: the other job waits, says so, and its turn comes after both bolts."""
    actions = [TIGHTEN_ACTION | {"name": name, "step": name} for name in ("First", "Second")]
    plant.mes.configure(
        recipe={
            "steps": [
                {"name": "First", "initial": True, "lock": ["wrench"]},
                {"name": "Second", "lock": ["wrench"]},
                {"name": "Done"},
            ],
            "transitions": [
                {"source": "First", "target": "Second", "condition": "always"},
                {"source": "Second", "target": "Done", "condition": "always"},
            ],
            "actions": actions,
        }
    )
    wrench, jobs = plant.wrench, ("J1", "J2", "J3")
    wrench.holds = True
    for job in jobs:
        assert plant.mes.start_job(job).status == 1
    wrench.client.wait(wrench.starts, "the tool has the first command")

    def waits() -> bool:
        return all("lock wrench: held by job J1" in plant.gateway.cli("jobs", "why", job) for job in jobs[1:])

    wait_for(waits, "the others wait for the lock")
    plant.gateway.kill()
    listed = json.loads(plant.gateway.cli("locks", "list", "--json"))
    assert [value["owner"] for value in listed] == ["job J1"]
    plant.gateway.start()
    wrench.release()
    for job in jobs:
        plant.mes.wait_for_state(job, "Ended", 60)
    worked = dict.fromkeys(wrench.starts())
    order = [next(job for job in jobs if job in text) for text in worked]
    assert order in [[a, a, b, b, c, c] for a, b, c in [("J1", "J2", "J3"), ("J1", "J3", "J2")]]
    assert json.loads(plant.gateway.cli("locks", "list", "--json")) == []
