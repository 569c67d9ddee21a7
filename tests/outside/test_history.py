"""The history of a run shows every decision; its replay is identical, also across a gateway kill."""

import json

import pytest

from tests.outside.conftest import Plant


@pytest.mark.slow
def test_history_survives_a_kill_and_replays_the_same(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command")
    plant.gateway.kill()
    plant.gateway.start()
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 30)
    found = json.loads(plant.gateway.cli("jobs", "history", "J1", "--json"))["decisions"]
    assert found[0]["signal"] == "start"
    assert [value["at"] for value in found] == sorted(value["at"] for value in found)
    answers = [value for value in found if value["signal"] == "answer"]
    assert [answer["members"]["data"]["torque"]["value"] for answer in answers] == [85.2]
    assert (answers[0]["left"], answers[0]["entered"]) == (["Tighten"], ["Done"])
    assert json.loads(plant.gateway.cli("jobs", "replay", "J1", "--json"))["same"]
    replayed = json.loads(plant.gateway.cli("replay", "--all", "--json"))
    assert (replayed["replayed"], replayed["differing"]) == (1, [])
