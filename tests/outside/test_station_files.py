"""Station files fill an empty store once, and differences from them are shown and applied."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.outside.servers import EDGE, SCOPE, Gateway, Store, ended, wait_for

KEY = "microdcs-edge"
NUMBER = 400
RECIPE = {
    "steps": [{"name": "one", "initial": True}],
    "transitions": [],
    "actions": [{"step": "one", "name": "a", "qualifier": "N", "type_id": "t", "interaction": "push_command"}],
}


def write(folder: Path, name: str, content: object) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    found = Store(tmp_path / "store")
    found.start()
    with ended(found):
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Station files: many recipes, lists and the limit of a scope, a rule and a flow."""
    site = tmp_path / "station.d"
    for number in range(NUMBER):
        write(site, f"scopes/{SCOPE}/workmasters/axle-{number}.json", RECIPE)
    write(site, f"scopes/{SCOPE}/station.json", {"max_downloadable_job_orders": 7, "equipment": ["wrench"]})
    write(
        site, "rules/hot.json", {"id": "hot", "kind": "limit", "tag": "t", "severity": 1, "limits": {"high": {"at": 5}}}
    )
    node = {"id": "one", "kind": "constant", "config": {"value": 1}}
    write(site, "flows/count.json", {"id": "count", "interval_seconds": 60, "nodes": [node], "edges": []})
    return site


def gateway(store: Store, folder: Path, name: str, more: str = "") -> Gateway:
    return Gateway(
        folder.parent / name,
        name,
        f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = ""\n[opcua]\nendpoint = ""\n'
        f'[station]\nfiles = "{folder}"\ncompare = 1\n{more}',
    )


@pytest.mark.long
def test_killed_filling_of_a_store_is_continued_by_the_next_gateway(store: Store, folder: Path) -> None:
    masters = f"{KEY}:workmaster:list:{SCOPE}"
    gateways = [gateway(store, folder, f"gw{number}") for number in range(3)]
    command = [(EDGE, "run", "--settings", item.settings) for item in gateways]
    processes = [subprocess.Popen(row, stderr=subprocess.PIPE, text=True) for row in command]
    try:
        wait_for(lambda: int(store.cli("scard", masters)) > NUMBER // 10, "the filling has begun")
        # The owner of the lock is named by its process.
        holder = json.loads(store.cli("hget", f"{KEY}:locks:station", "station.d"))["holder"]["owner"]
        (killed,) = (process for process in processes if f" {process.pid} " in holder)
        os.kill(killed.pid, signal.SIGKILL)
        assert int(store.cli("scard", masters)) < NUMBER
        assert store.cli("get", f"{KEY}:initialized") == "0"
        wait_for(lambda: store.cli("get", f"{KEY}:initialized") == "1", "the next one continues")
        found = json.loads(gateways[0].cli("station", "diff", "--json"))
        assert (found["initialized"], found["differences"]) == ("filled", [])
        revisions = {
            int(store.cli("hget", f"{KEY}:workmaster:axle-{number}", "rev")) % 1_000_000
            for number in range(0, NUMBER, 40)
        }
        assert revisions == {1}
        (flow,) = json.loads(gateways[0].cli("flows", "list", "--json"))
        assert flow["status"] == "running"
    finally:
        for popen in processes:
            popen.kill()
            popen.communicate()


@pytest.mark.long
def test_difference_from_files_is_shown_and_applied(store: Store, folder: Path) -> None:
    port = free_port()
    served = gateway(store, folder, "gw", f'[metrics]\nlisten = "127.0.0.1:{port}"\n')
    served.start()
    with ended(served):
        write(folder, f"scopes/{SCOPE}/workmasters/axle-3.json", {"ID": "axle-3", "Description": {"Text": "by hand"}})
        served.cli("station", "set", "equipment", "saw")
        served.cli("station", "set", "workmaster", "axle-5", "--delete")
        expected = "station differs from its files: 1 missing, 1 changed, 1 not in the files"
        served.wait_for_status(lambda status: expected in status, "the status names the differences", 60)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
            counts = re.findall(r'station_drift\{change="(\w+)"\} (\S+)', page.read().decode())
        assert dict(counts) == {"missing": "1.0", "changed": "1.0", "extra": "1.0"}
        assert [line.split()[0] for line in served.cli("station", "diff").splitlines()[:-1]] == [
            *("extra", "changed", "missing")
        ]
        assert served.cli("station", "apply").endswith("2 objects changed\n")
        assert served.cli("station", "diff").startswith("extra    equipment station-1/saw\n")
        assert served.cli("station", "apply", "--delete").endswith("1 object changed\n")
        served.wait_for_status(lambda status: "differs" not in status, "the status is without differences", 60)
        exported = folder.parent / "exported"
        served.cli("station", "export", str(exported))
        assert served.cli("station", "diff", str(exported)) == f"{exported}: no difference\n"


@pytest.mark.slow
def test_faulty_files_are_not_applied_and_stop_only_an_empty_gateway(store: Store, folder: Path) -> None:
    served = gateway(store, folder, "gw")
    write(folder, "rules/bad.json", "{bad")
    write(folder, "tag/a.json", {})
    command = [str(EDGE), "run", "--settings", str(served.settings)]
    ended_at_once = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended_at_once.returncode == 2
    assert f"{folder}: rules/bad.json: not JSON" in ended_at_once.stderr
    assert f"{folder}: tag/a.json: no station file has this place" in ended_at_once.stderr
    assert store.cli("keys", f"{KEY}:workmaster*") == ""
    (folder / "tag" / "a.json").unlink()
    (folder / "rules" / "bad.json").rename(folder / "bad")
    served.start()
    with ended(served):
        (folder / "bad").rename(folder / "rules" / "bad.json")
        served.wait_for_status(lambda status: "1 fault in the files" in status, "the status names the fault", 60)
        served.stop()
        served.start()
