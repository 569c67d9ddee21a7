"""A stop supersedes a start that was not sent, and its caller is named."""

from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import Wrench
from tests.outside.servers import Broker, ended


@pytest.mark.slow
def test_stop_supersedes_a_start_that_was_not_sent(plant: Plant, tmp_path: Path) -> None:
    """The tool has its own broker, which is away from the start of the job until after its abort."""
    tools = Broker(tmp_path / "tools")
    with ended(tools):
        tools.start()
        settings = plant.gateway.settings
        own = f'[southbound.wrench]\nurl = "mqtt://127.0.0.1:{tools.port}"'
        settings.write_text(settings.read_text().replace("[southbound.wrench]", own))
        plant.gateway.stop()
        tools.stop()
        plant.gateway.start()
        assert plant.mes.start_job("J1").status == 1
        plant.mes.wait_for_state("J1", "Running")
        assert plant.mes.call("Abort", {"JobOrderID": "J1"}).status == 1
        plant.mes.wait_for_state("J1", "Aborted")
        tools.start()
        wrench = Wrench(tools.port)
        wrench.open()
        assert plant.mes.start_job("J2").status == 1
        plant.mes.wait_for_state("J2", "Ended", 60)
        wrench.client.close()
    assert [start for start in wrench.starts() if start.startswith("J1/")] == []


def test_result_of_a_stopped_job_names_who_stopped_it(plant: Plant) -> None:
    plant.wrench.holds = True
    for job in ("J1", "J2"):
        assert plant.mes.start_job(job).status == 1
        plant.mes.wait_for_state(job, "Running")
    assert plant.mes.call("Stop", {"JobOrderID": "J1"}).status == 1
    assert "Ended" in plant.gateway.cli("jobs", "stop", "J2")
    for job, expected in (("J1", "stopped by the MES"), ("J2", " at the command line")):
        plant.mes.client.wait(lambda: plant.mes.result(job), f"the result of {job}")  # noqa: B023
        description = plant.mes.result(job)["Description"]["Text"]
        assert description.startswith("stopped by ")
        assert description.endswith(expected)
        reported = [
            received.data for received in list(plant.mes.client.received) if expected in received.payload.decode()
        ]
        assert [value for value in reported if "JobState" in value], "a status event names the caller"
