"""Locks of a killed process: they expire, and those that wait go on in their order."""

import contextlib
import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, wait_for

KINDS = ("equipment", "station", "job", "operation")


def test_locks_of_a_killed_process_expire_and_waiters_go_on_in_order(plant: Plant, tmp_path: Path) -> None:
    order = tmp_path / "order"

    def hold(kind: str, name: str, *command: str) -> subprocess.Popen[bytes]:
        settings = ("--settings", str(plant.gateway.settings))
        options = ("--reason", name, "--wait", "60", *settings)
        return subprocess.Popen([str(EDGE), "locks", "hold", *options, kind, "it", *command])

    def waiting(number: int) -> bool:
        listed = json.loads(plant.gateway.cli("locks", "list", "--json"))
        return len(listed) == len(KINDS) and all(len(each.get("Waiters", ())) == number for each in listed)

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
    children = [_child_of(each.pid) for each in holders]
    for holder in holders:
        holder.kill()
        holder.wait()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGTERM)
    assert [each.wait(60) for each in others] == [0] * len(others)
    lines = order.read_text().splitlines()
    assert [[line for line in lines if line.startswith(kind)] for kind in KINDS] == [
        [f"{kind} second", f"{kind} third"] for kind in KINDS
    ]
    assert json.loads(plant.gateway.cli("locks", "list", "--json")) == []


def _child_of(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
