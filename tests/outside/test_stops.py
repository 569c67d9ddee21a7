"""A stop supersedes a start that was not sent."""

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
    assert [each for each in wrench.starts() if each.startswith("J1/")] == []
