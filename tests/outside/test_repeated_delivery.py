"""A message redelivered by the broker at any time has no second effect."""

import pytest
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import Received
from tests.outside.plant import METHOD, SETTING, order
from tests.outside.servers import wait_for

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
    assert [start for start in plant.wrench.starts() if start not in starts and start.startswith("J1/")] == []
    assert plant.mes.states("J1").count("Running") == 1


@pytest.mark.slow
def test_retained_call_is_not_executed_again_after_its_marks(plant: Plant) -> None:
    """A MES sends with RETAIN; days later the session of the gateway is gone, and the call comes again."""
    plant.mes.retains = True
    plant.mes.send(METHOD.format("StoreAndStart"), order("J1"))
    plant.mes.retains = False
    plant.mes.wait_for_state("J1", "Ended")
    assert plant.mes.call("Clear", {"JobOrderID": "J1"}).status == 1
    plant.gateway.stop()
    plant.step_clocks(26 * HOUR)
    _end_session(plant.broker.port, "edge")
    answers = len(_refusals(plant))
    plant.gateway.start()
    plant.mes.client.wait(lambda: len(_refusals(plant)) > answers, "the call is refused")
    assert _refusals(plant)[-1].attributes["mdcserrorkind"] == "retained"
    _run_another_job(plant)
    assert len([start for start in plant.wrench.starts() if start.startswith("J1/")]) == 1
    assert "retained" in plant.gateway.cli("refused")


def _refusals(plant: Plant) -> list[Received]:
    """Return the answers of the gateway that refuse a call."""
    return [received for received in list(plant.mes.client.received) if "mdcserrorkind" in received.attributes]


def _end_session(port: int, client_id: str) -> None:
    """End the session of a client at the broker, as this does some time after its last connection."""
    client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTv5)
    client.connect("127.0.0.1", port, clean_start=True)
    client.loop_start()
    wait_for(client.is_connected, "the session is replaced")
    client.disconnect()
    client.loop_stop()


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
