"""Running jobs in a store of the first release continue with this release."""

import json
from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import wait_for

VERSION_1 = Path(__file__).parent / "stores" / "version-1.json"
"""The Redis commands that rebuild what the first release, killed at work, had stored; only its times are changed.

The second command of J1 is sent, J2 is paused with its first command sent, J4 has not started.
"""
SENT = {"J1/ed100317-26f9-4bc0-a814-9129f274138b/two/1", "J2/76a87f57-d74d-4206-ae2f-55ba1a49d5c4/one/1"}
"""The ids of the commands that the first release had sent."""


@pytest.mark.slow
def test_jobs_of_the_first_release_continue(plant: Plant) -> None:
    plant.gateway.kill()
    plant.store.cli("FLUSHALL")
    for command in json.loads(VERSION_1.read_text(encoding="utf-8")):
        plant.store.cli(*command)
    plant.wrench.holds = True
    plant.gateway.start()
    wait_for(lambda: set(plant.wrench.starts()) >= SENT, "open commands are sent again under their ids")
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended")
    response = plant.mes.call("RequestJobResponseByJobOrderID", {"JobOrderID": "J1"}).data["JobResponse"]
    assert {"one", "two"} <= {value["ID"] for value in response["JobResponseData"]}
    assert plant.mes.call("Resume", {"JobOrderID": "J2"}).status == 1
    plant.mes.wait_for_state("J2", "Ended")
    assert plant.mes.call("Start", {"JobOrderID": "J4"}).status == 1
    plant.mes.wait_for_state("J4", "Ended")
    # J1 had one command left, the others have two each.
    assert len(set(plant.wrench.starts())) == 5
