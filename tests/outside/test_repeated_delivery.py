"""A message redelivered by the broker at any time has no second effect."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, SETTING, order

HOUR = 3600.0


def test_repeated_call_has_no_second_effect(plant: Plant) -> None:
    first = plant.mes.start_job("J1", id="call-1")
    plant.mes.wait_for_state("J1", "Ended")
    again = plant.mes.start_job("J1", id="call-1")
    assert (first.status, again.status) == (1, 1)
    assert len(plant.wrench.starts()) == 1


@pytest.mark.slow
def test_finished_work_does_not_run_again_after_a_broker_restore(plant: Plant) -> None:
    """A broker that is killed comes back with an older database and delivers StoreAndStart again."""
    plant.gateway.stop()
    call = plant.mes.send(METHOD.format("StoreAndStart"), order("J1"))
    plant.broker.save()
    plant.gateway.start()
    plant.mes.client.wait(lambda: plant.mes.answer_to(call), "the call is answered")
    plant.mes.wait_for_state("J1", "Ended")
    assert plant.mes.call("Clear", {"JobOrderID": "J1"}).status == 1
    starts = plant.wrench.starts()
    plant.step_clocks(HOUR)
    plant.broker.kill()
    plant.broker.start()
    _run_another_job(plant)
    assert [each for each in plant.wrench.starts() if each not in starts and each.startswith("J1/")] == []
    assert plant.mes.states("J1").count("Running") == 1


@pytest.mark.slow
def test_deleted_settings_are_not_restored_by_the_broker(plant: Plant) -> None:
    """PUT and DELETE of a Work Master; the broker then delivers the PUT again."""
    plant.gateway.stop()
    put = plant.mes.send(SETTING.format("equipment"), [{"ID": "press-7"}], method="PUT")
    plant.broker.save()
    plant.gateway.start()
    plant.mes.client.wait(lambda: plant.mes.answer_to(put), "the setting is answered")
    delete = plant.mes.send(SETTING.format("equipment"), [{"ID": "press-7"}], method="DELETE")
    plant.mes.client.wait(lambda: plant.mes.answer_to(delete), "the setting is deleted")
    plant.step_clocks(HOUR)
    plant.broker.kill()
    plant.broker.start()
    _run_another_job(plant)
    shown = plant.gateway.cli("station", "show", "--json")
    assert shown
    assert "press-7" not in shown


def _run_another_job(plant: Plant) -> None:
    """Run a job after all that the broker delivers again: calls of one MES are handled in order."""
    plant.mes.client.wait(lambda: plant.mes.client.connected, "the MES is connected again")
    plant.mes.configure("WM-1")
    assert plant.mes.start_job("another").status == 1
    plant.mes.wait_for_state("another", "Ended")
