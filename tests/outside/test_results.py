"""A result is kept until the MES has received it."""

from pathlib import Path

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import Wrench
from tests.outside.servers import Broker, ended, wait_for

WEEKEND = 60 * 3600.0


@pytest.mark.slow
def test_results_are_kept_during_a_long_outage_of_the_mes_broker(plant: Plant, tmp_path: Path) -> None:
    """The tool has its own broker; that of the MES is away when the job ends and for longer than the retention."""
    tools = Broker(tmp_path / "tools")
    with ended(tools):
        tools.start()
        settings = plant.gateway.settings
        own = f'[southbound.wrench]\nurl = "mqtt://127.0.0.1:{tools.port}"'
        settings.write_text(settings.read_text().replace("[southbound.wrench]", own))
        plant.gateway.stop()
        plant.gateway.start()
        wrench = Wrench(tools.port)
        wrench.holds = True
        wrench.open()
        assert plant.mes.start_job("J1").status == 1
        wrench.client.wait(wrench.starts, "the tool has the command")
        plant.mes.wait_for_state("J1", "Running")
        plant.broker.stop()
        wrench.release()
        wait_for(lambda: "Ended" in plant.gateway.cli("jobs", "show", "J1", "--json"), "the job has ended")
        plant.step_clocks(WEEKEND)
        plant.gateway.kill()
        plant.broker.start()
        plant.gateway.start()
        plant.mes.client.wait(lambda: plant.mes.result("J1"), "the MES has the result")
        wrench.client.close()
    assert "85.2" in str(plant.mes.result("J1"))
