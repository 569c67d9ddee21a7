"""A backup is claimed by one of two gateways; after a kill it is interrupted and can be repeated."""

import json
import tarfile
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import wait_for

pytestmark = pytest.mark.slow


def test_backup_of_a_killed_gateway_is_interrupted_and_run_again(plant: Plant) -> None:
    other = plant.new_gateway("other", None)
    gateways = {"edge": plant.gateway, "other": other}
    for gateway in gateways.values():
        directory = gateway.directory / "files"
        gateway.settings.write_text(f'{gateway.settings.read_text()}\n[operations]\ndirectory = "{directory}"\n')
    plant.gateway.stop()
    plant.gateway.start()
    other.start()
    # So much that the archive takes seconds, in which the gateway is killed.
    fill = """for i = 1, 1000 do
        local parts = {}
        for j = 1, 1000 do parts[j] = redis.sha1hex(i .. ':' .. j) end
        redis.call('HSET', KEYS[1], i, table.concat(parts))
    end"""
    plant.store.cli("eval", fill, "1", "microdcs-edge:localization")
    scheduled = json.loads(plant.gateway.cli("operations", "schedule", "backup", "--json"))["id"]

    def shown(name: str, operation: str) -> Any:
        return json.loads(gateways[name].cli("operations", "show", operation, "--json"))

    wait_for(lambda: float(plant.store.cli("hget", "microdcs-edge:operations:progress", scheduled) or 0) >= 40, "40 %")
    owner = json.loads(plant.store.cli("hget", "microdcs-edge:operations", scheduled))["owner"].split()[0]
    gateways[owner].kill()
    (survivor,) = gateways.keys() - {owner}
    wait_for(lambda: shown(survivor, scheduled)["state"] != "running", "the operation is interrupted", 60)
    failed = shown(survivor, scheduled)
    assert (failed["state"], failed["error"], failed["progress"]) == ("failed", "interrupted", 40.0)
    again = json.loads(gateways[survivor].cli("operations", "repeat", scheduled, "--json"))["id"]
    wait_for(lambda: shown(survivor, again)["state"] == "done", "it is run again", 90)
    done = shown(survivor, again)
    assert (done["progress"], done["owner"].split()[0]) == (100.0, survivor)
    with tarfile.open(done["result"]) as archive:
        assert {"manifest.json", "store.jsonl"} <= set(archive.getnames())
