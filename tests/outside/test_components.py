"""Components of one store: the list of all, and two of one name."""

import json
import subprocess

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import EDGE


@pytest.mark.long  # the later one waits for the lease of the first
def test_later_gateway_of_a_name_stops_with_the_reason(plant: Plant) -> None:
    later = subprocess.run(
        [EDGE, "run", "--settings", plant.gateway.settings], capture_output=True, text=True, check=False, timeout=60
    )
    assert later.returncode == 1
    assert "another gateway of the name 'edge' works on this store" in later.stderr
    (listed,) = json.loads(plant.gateway.cli("fleet", "list", "--json"))
    assert (listed["id"], listed["pid"], listed["kind"]) == ("edge", plant.gateway.pid, "gateway")
    assert [each["name"] for each in listed["plugins"]] == ["wrench"]
