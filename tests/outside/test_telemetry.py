"""Rules and alarms of a whole gateway, seen by a MES and sensors of other vendors."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.outside.mqtt_client import MqttClient, Received
from tests.outside.plant import SETTING, Mes, Wrench
from tests.outside.servers import PREFIX, SCOPE, Broker, Gateway, Store, ended, wait_for
from tests.outside.telemetry_plant import CHANGES, RULES, TelemetryPlant

pytestmark = pytest.mark.slow

METHOD = "com.github.aschamberger.microdcs.alarm.{}.v1"


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TelemetryPlant]:
    """A plant that the scenarios of this file share; each has tags of its own."""
    directory: Path = tmp_path_factory.mktemp("telemetry")
    broker, store, line = Broker(directory / "broker"), Store(directory / "store"), Store(directory / "line")
    with ended(broker, store, line):
        line.start()
        broker.start()
        store.start()
        rules = directory / "rules.json"
        rules.write_text(json.dumps(RULES))
        tags = directory / "tags.json"
        tags.write_text(json.dumps([{"tag": "gauge.temp", "unit": "CEL", "type": "number", "high": 500}]))
        gateway = Gateway(
            directory / "gateway",
            "edge",
            f'[redis]\nurl = "unix://{store.socket}"\n[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n'
            f'[northbound]\ntopic_prefix = "{PREFIX}"\n[opcua]\nendpoint = ""\n'
            f'[telemetry]\nrules = "{rules}"\ntags = "{tags}"\n'
            '[source.sensors]\ntopic = "sensors/+"\npointer = "/v"\ntag = "{2}"\n'
            f'[mirror.carriers]\nurl = "unix://{line.socket}"\nkey = "carriers"\n'
            '[southbound.wrench]\ntype_ids = ["com.example.station.tighten.v1"]\n'
            f'topic_prefix = "{PREFIX}/equipment"\n',
        )
        mes, wrench, sensor = Mes(broker.port), Wrench(broker.port), MqttClient(broker.port, "sensor")
        with ended(gateway):
            gateway.start()
            wrench.open()
            mes.open()
            mes.client.subscribe(f"{PREFIX}/{SCOPE}/alarms")
            mes.configure()
            sensor.connect()
            try:
                yield TelemetryPlant(broker, store, gateway, mes, wrench, sensor, line)
            finally:
                for client in (sensor, mes.client, wrench.client):
                    client.close()


def test_hot_tool_is_one_alarm_that_the_mes_acknowledges(plant: TelemetryPlant) -> None:
    for _ in range(20):
        plant.send("oven.temp", 81.5)
    plant.wait_for(lambda: plant.changes("hot", "oven.temp") == ["raised"], "the alarm is raised")
    plant.send("oven.temp", 96)
    plant.wait_for(lambda: plant.changes("hot", "oven.temp") == ["raised", "escalated"], "the alarm is escalated")
    alarm = plant.retained("hot", "oven.temp")
    assert alarm
    assert (alarm["state"], alarm["severity"], alarm["messages"]["de"]) == ("unacknowledged", 800, "oven.temp: 96 °C")
    answer = plant.mes._ask(METHOD.format("Acknowledge"), {"AlarmID": alarm["id"], "By": "bo"}, 60, {})  # noqa: SLF001
    assert (answer.data["state"], answer.data["by"]) == ("acknowledged", "bo")
    again = plant.mes._ask(METHOD.format("Acknowledge"), {"AlarmID": alarm["id"], "By": "bo"}, 60, {})  # noqa: SLF001
    assert again.attributes["mdcserrorkind"] == "invalid_state"
    plant.send("oven.temp", 74)
    expected = ["raised", "escalated", "acknowledged", "cleared"]
    plant.wait_for(lambda: plant.changes("hot", "oven.temp") == expected, "the alarm is cleared")
    plant.wait_for(lambda: plant.retained("hot", "oven.temp") is None, "the retained alarm is removed")
    assert plant.store.cli("XLEN", "microdcs-edge:telemetry:dlq") == "0"


def test_rule_of_the_mes_is_evaluated_at_once_until_it_is_deleted(plant: TelemetryPlant) -> None:
    def ask(data: object, method: str) -> Any:
        return plant.mes._ask(SETTING.format("rule"), data, 60, {"method": method})  # noqa: SLF001

    wet = {"id": "wet", "kind": "limit", "tag": "cellar", "limits": {"high": {"at": 70, "severity": 300}}}
    refused = ask([wet, {"id": "x", "kind": "fax"}, wet | {"id": "y", "limits": {}}], "PUT")
    assert refused.attributes["mdcserrorkind"] == "rule"
    assert all(part in refused.attributes["mdcserrormessage"] for part in ("rule 'x'", "rule 'y'"))
    assert ask(None, "GET").data == []
    assert "mdcserrorkind" not in ask([wet], "PUT").attributes
    assert ask(None, "GET").data == [wet]
    plant.send("cellar", 75)
    plant.wait_for(lambda: plant.changes("wet", "cellar") == ["raised"], "the alarm is raised")
    ask({"id": "wet"}, "DELETE")
    plant.wait_for(lambda: plant.changes("wet", "cellar") == ["raised", "cleared"], "the alarm is cleared")
    assert ask(None, "GET").data == []


def test_torque_drift_is_reported_before_a_result_is_not_ok(plant: TelemetryPlant) -> None:
    for number, torque in enumerate([80.2, 81.2, 81.3, 81.4, 81.5]):
        plant.wrench.torque = partial(float, torque)
        assert plant.mes.start_job(f"T{number}").status == 1
        plant.mes.wait_for_state(f"T{number}", "Ended")
    plant.wait_for(lambda: plant.changes("drift", "wrench.torque") == ["raised"], "the drift is reported")
    assert plant.changes("drift-2", "wrench.torque") == []


def test_alarm_aborts_the_job_that_runs(plant: TelemetryPlant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("A1").status == 1
    plant.mes.wait_for_state("A1", "Running")
    plant.send("line.stop", 1)
    plant.mes.wait_for_state("A1", "Aborted")
    plant.wrench.release()
    plant.send("line.stop", 0)
    plant.wait_for(lambda: plant.changes("stop", "line.stop") == ["raised", "cleared"], "the alarm is cleared")
    plant.wait_for(lambda: plant.changes("gateway.job_aborted", "A1")[:1] == ["raised"], "the abort is an alarm")


def test_alarm_holds_the_job_until_it_is_resumed(plant: TelemetryPlant) -> None:
    """An automatic interruption is Held, not Suspended (OPC 10031-4)."""
    plant.wrench.holds = True
    assert plant.mes.start_job("A2").status == 1
    plant.mes.wait_for_state("A2", "Running")
    plant.send("line.hold", 1)
    plant.mes.wait_for_state("A2", "Interrupted")
    shown = json.loads(plant.gateway.cli("jobs", "show", "A2", "--json"))
    assert "Held" in json.dumps(shown)
    assert plant.mes.call("Pause", {"JobOrderID": "A2"}).status == 8
    plant.send("line.hold", 0)
    assert plant.mes.call("Resume", {"JobOrderID": "A2"}).status == 1
    plant.wrench.release()
    plant.mes.wait_for_state("A2", "Ended")


def test_carrier_that_leaves_early_is_an_alarm_of_its_job(plant: TelemetryPlant) -> None:
    plant.line.cli("SADD", "carriers", "C1", "C2")
    plant.wrench.holds = True
    order_of = {"JobOrderID": "C1", "WorkMasterID": [{"ID": "WM-1"}]}
    assert plant.mes.call("StoreAndStart", {"JobOrder": order_of}).status == 1
    plant.mes.wait_for_state("C1", "Running")
    wait_for(lambda: plant.store.cli("SCARD", "microdcs-edge:mirror:carriers") == "2", "the carriers are mirrored")
    plant.line.cli("SREM", "carriers", "C1")
    plant.wait_for(lambda: plant.changes("early", "C1") == ["raised", "cleared"], "the alarm of the job is raised")
    alarm = plant.retained("early", "C1")
    assert alarm
    assert (alarm["job"], alarm["severity"]) == ("C1", 700)
    plant.wrench.release()
    plant.mes.wait_for_state("C1", "Ended")
    assert plant.line.cli("KEYS", "*") == "carriers"


def test_alarm_survives_a_killed_gateway_and_is_published_once(plant: TelemetryPlant) -> None:
    plant.send("press.temp", 85)
    plant.wait_for(lambda: plant.changes("hot", "press.temp") == ["raised"], "the alarm is raised")
    before = plant.retained("hot", "press.temp")
    plant.gateway.kill()
    plant.store.kill()
    plant.store.start()
    plant.gateway.start()
    plant.send("press.temp", 86)
    plant.send("press.temp", 60)
    plant.wait_for(lambda: plant.changes("hot", "press.temp") == ["raised", "cleared"], "the alarm is cleared")
    after = plant.retained("hot", "press.temp")
    assert before
    assert after
    assert (after["id"], after["state"], after["count"]) == (before["id"], "returned, unacknowledged", 1)


def test_sample_of_a_killed_gateway_is_delivered_again(plant: TelemetryPlant) -> None:
    """Its message was acknowledged before the sample was in the store."""
    plant.store.freeze()
    plant.send("kiln.temp", 85)
    plant.sensor.publish("sensors/mark", "1", {})
    plant.gateway.kill()
    plant.store.thaw()
    plant.gateway.start()
    plant.wait_for(lambda: plant.changes("hot", "kiln.temp") == ["raised"], "the alarm is raised")
    plant.send("kiln.temp", 60)
    plant.wait_for(lambda: plant.changes("hot", "kiln.temp") == ["raised", "cleared"], "the alarm is cleared")


def test_change_during_a_broker_outage_is_published_afterwards(plant: TelemetryPlant) -> None:
    plant.send("fan.temp", 85)
    plant.wait_for(lambda: plant.changes("hot", "fan.temp") == ["raised"], "the alarm is raised")
    changes = plant.store.cli("XLEN", CHANGES)
    at = str(int(time.time() * 1000))
    batch = ("producer", "outside", "number", "1", "at", at, "0", f'{{"at":{at},"tag":"fan.temp","value":20}}')
    plant.broker.freeze()
    plant.store.cli("XADD", "microdcs-edge:telemetry", "*", *batch)
    wait_for(lambda: plant.store.cli("XLEN", CHANGES) != changes, "the alarm is cleared in the store")
    plant.broker.thaw()
    plant.wait_for(lambda: plant.changes("hot", "fan.temp") == ["raised", "cleared"], "the change is published")


@pytest.mark.long
def test_changes_during_a_broker_kill_are_published_late_and_in_order(plant: TelemetryPlant) -> None:
    plant.send("pump.temp", 85)
    plant.wait_for(lambda: plant.changes("hot", "pump.temp") == ["raised"], "the alarm is raised")
    plant.broker.save()
    plant.broker.kill()
    before = int(plant.store.cli("XLEN", CHANGES))
    for number, value in enumerate((20, 85, 96, 20), 1):
        # Without a broker a sample comes from elsewhere; the rules work on.
        at = str(int(time.time() * 1000))
        line = f'{{"at":{at},"tag":"pump.temp","value":{value}}}'
        batch = ("producer", "dead", "number", str(number), "at", at, "0", line)
        plant.store.cli("XADD", "microdcs-edge:telemetry", "*", *batch)
        wait_for(partial(plant.has_changes, before + number), "the alarm changes in the store")
    changed = time.time()
    wait_for(lambda: time.time() - changed > 5.5, "the changes are late")
    plant.broker.start()
    expected = ["raised", "cleared", "raised", "escalated", "cleared"]
    plant.wait_for(lambda: plant.changes("hot", "pump.temp") == expected, "the changes are published in their order")
    # What was published shortly before the broker was killed comes again, marked as late: each counts as it came first.
    events: dict[str, Received] = {}
    for received in list(plant.mes.client.received):
        if received.topic == f"{PREFIX}/{SCOPE}/alarms" and received.data["alarm"]["subject"] == "pump.temp":
            events.setdefault(received.attributes["id"], received)
    assert [event.attributes.get("late") for event in events.values()] == [None, *["true"] * 4]


BAD_PAYLOADS = {
    "garbage": "garbage",
    "nothing": "",
    "object": '{"v": {"deep": [1]}}',
    "text of NaN": '{"v": "NaN"}',
    "JSON beyond the range": '{"v": 1e999}',
    "binary": "\x00\xff" * 99,
    "MessagePack NaN": b"\x81\xa1v\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
    "MessagePack infinity": b"\x81\xa1v\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00",
    "MessagePack bomb": b"\x91" * 60_000,
    "MessagePack array that is not there": b"\x81\xa1v\xdd\xff\xff\xff\xff",
    "huge text": json.dumps({"v": "x" * 60_000}),
    "huge number": '{"v": ' + "9" * 5_000 + "}",
    "another type": '{"v": true}',
    "too large": "x" * 500_000,
}


@pytest.mark.parametrize("payload", BAD_PAYLOADS.values(), ids=BAD_PAYLOADS)
def test_bad_input_does_not_affect_alarms(plant: TelemetryPlant, payload: str | bytes) -> None:
    plant.sensor._client.publish("sensors/bad.temp", payload, 1).wait_for_publish(10)  # noqa: SLF001
    plant.send("bad.temp", 20)
    plant.send("mark", time.monotonic())
    assert plant.mes.call("Clear", {"JobOrderID": "none"}).status == 2
    assert plant.changes("hot", "bad.temp") == []


def test_implausible_times_and_repeated_tags_do_not_affect_alarms(plant: TelemetryPlant) -> None:
    now = int(time.time() * 1000)
    lines = [
        {"at": at, "tag": "clockless.temp", "value": value}
        for at, value in ((0, 85), (now + 10**9, 86), (now, 87), (now, 88), (-(10**15), 89), (10**18, 90))
    ]
    fields = [text for number, line in enumerate(lines) for text in (str(number), json.dumps(line))]
    batch = ("producer", "times", "number", "1", "at", str(now), *fields)
    plant.store.cli("XADD", "microdcs-edge:telemetry", "*", *batch)
    plant.wait_for(lambda: plant.changes("hot", "clockless.temp") == ["raised"], "the alarm is raised")
    plant.send("clockless.temp", 20)
    plant.wait_for(lambda: plant.changes("hot", "clockless.temp") == ["raised", "cleared"], "the alarm is cleared")
    assert plant.store.cli("XLEN", "microdcs-edge:telemetry:dlq") == "0"


def test_entries_that_are_not_batches_are_dead_letters(plant: TelemetryPlant) -> None:
    before = int(plant.store.cli("XLEN", "microdcs-edge:telemetry:dlq"))
    plant.store.cli("XADD", "microdcs-edge:telemetry", "*", "a", "b")
    plant.store.cli("XADD", "microdcs-edge:telemetry", "*", "producer", "", "number", "x", "at", "y")
    wait_for(lambda: int(plant.store.cli("XLEN", "microdcs-edge:telemetry:dlq")) == before + 2, "both are set aside")
    listed = json.loads(plant.gateway.cli("dead-letters", "list", "--json"))
    letters = [value for value in listed if value["kind"] == "telemetry"]
    assert len(letters) == before + 2
    plant.gateway.cli("dead-letters", "drop", *(letter["id"] for letter in letters))
    assert plant.store.cli("XLEN", "microdcs-edge:telemetry:dlq") == "0"
    plant.send("mark", time.monotonic())
    assert plant.mes.call("Clear", {"JobOrderID": "none"}).status == 2


def test_definition_of_a_tag_has_its_unit_type_and_range(plant: TelemetryPlant) -> None:
    plant.send("gauge.temp", "hot")
    plant.send("gauge.temp", 700)

    def shown() -> dict[str, Any]:
        found = json.loads(plant.gateway.cli("tags", "list", "gauge.*", "--json"))
        return {name: found[0].get(name) for name in ("value", "unit", "quality", "high")} if found else {}

    expected = {"value": 700, "unit": "°C", "quality": "uncertain", "high": 500}
    wait_for(lambda: shown() == expected, "the tag has the unit and the quality of its definition")
    assert "its value is not a number, but str" in plant.gateway.log.read_text()


def test_rule_of_the_subject_job_has_an_alarm_for_each_job(plant: TelemetryPlant) -> None:
    plant.wrench.torque = lambda: 100.0
    for job in ("S1", "S2"):
        assert plant.mes.start_job(job).status == 1
        plant.mes.wait_for_state(job, "Ended")
    for job in ("S1", "S2"):
        subject = f"wrench.torque[{job}]"
        plant.wait_for(partial(plant.has_come, "strong", subject), f"the alarm of {job} is over")
        alarm = plant.retained("strong", subject)
        assert alarm
        assert (alarm["job"], alarm["message"].startswith(f"{job}: ")) == (job, True)


def test_flood_of_alarms_reaches_the_mes_as_one_summary_alarm(plant: TelemetryPlant) -> None:
    """150 sensors become too hot at once: the first hundred are alarms, one stands for the others."""
    plant.wrench.holds = True
    assert plant.mes.start_job("F1").status == 1
    plant.mes.wait_for_state("F1", "Running")
    for number in range(150):
        plant.send(f"flood{number}.temp", 85)
    plant.wait_for(lambda: plant.changes("alarm.flood", "gateway") == ["raised"], "the summary alarm is raised")
    plant.send("line.stop", 1)
    plant.mes.wait_for_state("F1", "Aborted")
    plant.wrench.release()
    plant.send("line.stop", 0)
    plant.send("flood0.temp", 20)
    plant.wait_for(lambda: plant.changes("hot", "flood0.temp") == ["raised", "cleared"], "a known alarm is cleared")
    raised = [number for number in range(150) if plant.changes("hot", f"flood{number}.temp")]
    assert 80 < len(raised) <= 100
    withheld = int(plant.store.cli("HGET", "microdcs-edge:telemetry:counters", "withheld"))
    assert withheld >= 150 - len(raised)
