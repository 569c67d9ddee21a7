"""Components of one store: list, duplicate name, stopped component, wrong clock."""

import json
import subprocess

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, wait_for


@pytest.mark.long  # the later one waits for the lease of the first
def test_second_gateway_with_the_same_name_stops_with_the_reason(plant: Plant) -> None:
    later = subprocess.run(
        [EDGE, "run", "--settings", plant.gateway.settings], capture_output=True, text=True, check=False, timeout=60
    )
    assert later.returncode == 1
    assert "another gateway of the name 'edge' works on this store" in later.stderr
    (listed,) = json.loads(plant.gateway.cli("fleet", "list", "--json"))
    assert (listed["id"], listed["pid"], listed["kind"]) == ("edge", plant.gateway.pid, "gateway")
    assert [plugin["name"] for plugin in listed["plugins"]] == ["wrench"]


@pytest.mark.long  # a component looks every 15 seconds
def test_stopped_component_leaves_the_list_while_the_others_work(plant: Plant) -> None:
    described = json.dumps({"id": "gone", "kind": "sidecar", "version": "1", "started": 1})
    plant.store.cli("HSET", "microdcs-edge:discovery:components", "gone", described)
    plant.store.cli("HSET", "microdcs-edge:discovery:timestamps", "gone", "1")
    wait_for(lambda: "gone" not in plant.gateway.cli("fleet", "list"), "it is removed")
    assert "healthy" in plant.gateway.cli("fleet", "list")


@pytest.mark.long  # a second gateway
def test_gateway_with_a_late_clock_is_not_reported_as_absent(plant: Plant) -> None:
    clock = plant.new_clock("behind")
    clock.set(-3600)
    plant.new_gateway("behind", clock).start()
    away = {
        component["id"]: component["away"] for component in json.loads(plant.gateway.cli("fleet", "list", "--json"))
    }
    assert away["behind"] is False
