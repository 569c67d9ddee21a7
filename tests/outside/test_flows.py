"""Flows run on real gateways: values reach the broker, and no kill of a gateway repeats an action."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outside.flow_plant import FlowPlant, chain, node, open_flow_plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.plant import TIGHTEN, TIGHTEN_ACTION, TIGHTENING, Mes, Wrench
from tests.outside.servers import PREFIX, SCOPE, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[FlowPlant]:
    """A plant without a gateway yet."""
    with open_flow_plant(tmp_path) as flow_plant:
        yield flow_plant


ENDED = {"completed", "skipped", "failed", "terminated"}
VALUES = node("values", "constant", value=[2, 4, 6])


def test_mean_is_published_in_every_cycle(plant: FlowPlant) -> None:
    client = MqttClient(plant.broker.port, "reader")
    client.connect()
    client.subscribe("plant/press/mean")
    plant.start("edge")
    mean, publish = node("mean", "aggregate", of="mean"), node("publish", "mqtt.publish", topic="plant/press/mean")
    plant.put(chain("press-report", VALUES, mean, publish, interval_seconds=0.2))
    client.wait(lambda: len(client.received) >= 3, "three cycles have published")
    client.close()
    assert {message.data for message in client.received} == {4.0}
    assert int(plant.store.cli("hget", "microdcs-edge:flow:press-report", "last_cycle")) >= 2


def test_action_is_not_repeated_after_a_kill(plant: FlowPlant) -> None:
    plant.counter.holds = True
    gateway = plant.start("edge")
    plant.put(
        chain("order", VALUES, {**node("post", "http.post", url=plant.counter.url), "retries": 9}, interval_seconds=0)
    )
    wait_for(lambda: plant.counter.posted, "the value is posted")
    gateway.kill()
    plant.start("edge")
    assert plant.wait_for("order", 0, "post", "failed")["reason"] == "interrupted"
    assert plant.counter.posted == ["order_0_post"]


def test_second_gateway_takes_over_the_cycle_of_a_killed_gateway(plant: FlowPlant) -> None:
    names = {"first", "second"}
    for name in names:
        plant.start(name)
    later = node("later", "delay", seconds=6)
    plant.put(chain("order", VALUES, later, node("post", "http.post", url=plant.counter.url), interval_seconds=0))
    plant.wait_for("order", 0, "later", "running")
    owner = plant.store.cli("hget", "microdcs-edge:flow:order:cycle:0", "owner")
    plant.gateways[owner].kill()
    assert plant.wait_for("order", 0, "post", "completed")["attempts"] == 1
    assert plant.task("order", 0, "later")["attempts"] == 2
    assert plant.store.cli("hget", "microdcs-edge:flow:order:cycle:0", "owner") in names - {owner}
    assert plant.counter.posted == ["order_0_post"]


def test_deleted_flow_leaves_no_key(plant: FlowPlant) -> None:
    def keys() -> set[str]:
        found = set(plant.store.cli("--scan").split("\n"))
        return {key for key in found if "flow" in key or "node_tasks" in key} - {"microdcs-edge:flows:signals"}

    plant.start("edge")
    assert keys() == set()
    plant.put(chain("order", VALUES, node("again", "delay", seconds=0), interval_seconds=0.05))
    wait_for(lambda: "microdcs-edge:flow:order:cycle:3" in keys(), "three cycles have run")
    plant.edge("delete", "order")
    assert keys() == set()


@pytest.mark.parametrize(("width", "cmk", "alarms"), [(1.0, 10 / 6, 0), (0.5, 5 / 6, 1)])
def test_shift_report_computes_cmk_of_job_results(plant: FlowPlant, width: float, cmk: float, alarms: int) -> None:
    """Each joining process has its own Cmk. The alarm is raised below 1.33 only, and reaches the MES."""
    plant.start("edge")
    mes, wrench, torques = Mes(plant.broker.port), Wrench(plant.broker.port), iter((85.0, 85.2, 85.4, 20.0))
    wrench.torque = lambda: next(torques)
    wrench.open()
    mes.open()
    for job, process in (("J1", "JP-1"), ("J2", "JP-1"), ("J3", "JP-1"), ("J4", "JP-2")):
        action = {**TIGHTEN_ACTION, "parameters": {"joining_process_id": process}}
        mes.configure(recipe={**TIGHTENING, "actions": [action]})
        assert mes.start_job(job).status == 1
        mes.wait_for_state(job, "Ended", 60)
    mes.client.subscribe("plant/shift/cmk")
    mes.client.subscribe(f"{PREFIX}/{SCOPE}/alarms")
    document = {
        "id": "shift-report",
        "interval_seconds": 0,
        "nodes": [
            node("torques", "job.results", member="torque", action="tighten", process="JP-1", seconds=28_800),
            node("cmk", "capability", lsl=85.2 - width, usl=85.2 + width),
            node("publish", "mqtt.publish", topic="plant/shift/cmk"),
            node("low", "switch", when="input.cmk < 1.33"),
            node("alarm", "alarm.raise", alarm="cmk-low", severity=600, message="Cmk is below 1.33"),
        ],
        "edges": [["torques", "cmk"], ["cmk", "publish"], ["cmk", "low"], ["low", "alarm"]],
    }
    plant.put(document)
    mes.client.wait(
        lambda: [received for received in mes.client.received if received.topic == "plant/shift/cmk"], "the report"
    )
    report = next(received.data for received in mes.client.received if received.topic == "plant/shift/cmk")
    assert (report["n"], report["cmk"]) == (3, pytest.approx(cmk))
    wait_for(lambda: plant.task("shift-report", 0, "alarm").get("status") in ENDED, "the alarm node has ended")
    assert plant.task("shift-report", 0, "alarm")["status"] == ("completed" if alarms else "skipped")

    def raised() -> list[Any]:
        found = [received.data for received in list(mes.client.received) if received.topic.endswith("/alarms")]
        raises = [change["alarm"] for change in found if change["kind"] == "raised"]
        return [(value["rule"], value["subject"], value["message"]) for value in raises]

    if alarms:
        mes.client.wait(raised, "the MES has the alarm")
    assert raised() == [("cmk-low", "shift-report", "Cmk is below 1.33")] * alarms
    mes.client.close()
    wrench.client.close()


def test_press_report_publishes_the_mean_of_a_sensor(plant: FlowPlant) -> None:
    """No rule uses the tag: a flow that reads it has its samples recorded."""
    plant.start("edge")
    client = MqttClient(plant.broker.port, "press")
    client.connect()
    client.subscribe("plant/press/mean")
    window = node("pressure", "tag.window", tag="pressure", seconds=60)
    mean, publish = node("mean", "aggregate", of="mean"), node("publish", "mqtt.publish", topic="plant/press/mean")
    plant.put(chain("press-report", window, mean, publish, interval_seconds=0.2))
    client.wait(
        lambda: [received for received in list(client.received) if received.data is None], "there is no value yet"
    )
    values = [4.0, 4.5, 6.5]

    def mean_is_published() -> bool:
        return bool(client.received) and client.received[-1].data == 5.0

    for value in values:
        client.publish("sensors/pressure", f'{{"v": {value}}}', {})
    client.wait(mean_is_published, "the mean is published")
    client.close()


def test_derived_tag_raises_the_alarm_of_a_rule(plant: FlowPlant) -> None:
    rules = plant.directory / "rules.json"
    limits = {"high": {"at": 3.5, "severity": 500}}
    rules.write_text(json.dumps([{"id": "high-mean", "kind": "limit", "tag": "press.mean", "limits": limits}]))
    plant.telemetry = f'rules = "{rules}"\n'
    plant.start("edge")
    client = MqttClient(plant.broker.port, "mes")
    client.connect()
    client.subscribe(f"{PREFIX}/{SCOPE}/alarms")
    mean, write = node("mean", "aggregate", of="mean"), node("write", "tag.write", tag="press.mean")
    plant.put(chain("derive", VALUES, mean, write, interval_seconds=0))
    client.wait(
        lambda: [received.data["alarm"]["rule"] for received in list(client.received)] == ["high-mean"],
        "the rule has fired",
    )
    client.close()


def test_flow_commands_equipment_while_no_job_uses_it(plant: FlowPlant) -> None:
    plant.start("edge")
    mes, wrench = Mes(plant.broker.port), Wrench(plant.broker.port)
    wrench.torque = lambda: 12.5
    wrench.open()
    mes.open()
    mes.configure()
    command = node("command", "equipment.command", equipment="wrench", type_id=TIGHTEN)
    plant.put(chain("calibrate", node("torque", "constant", value={"torque": 5}), command, interval_seconds=0))
    task = plant.wait_for("calibrate", 0, "command", "completed")
    assert task["output"]["torque"] == {"value": 12.5, "unit": "Nm"}
    wrench.holds = True
    assert mes.start_job("J1").status == 1
    mes.wait_for_state("J1", "Running", 60)
    plant.put(chain("disturb", node("torque", "constant", value={}), command, interval_seconds=0))
    assert "'J1' uses wrench" in plant.wait_for("disturb", 0, "command", "failed")["reason"]
    mes.client.close()
    wrench.client.close()


def test_components_are_stopped_and_nodes_terminated_by_hand(plant: FlowPlant) -> None:
    """One component is stopped in mid-cycle; in the other one node fails and one is terminated by hand."""
    plant.start("edge")
    nodes = [VALUES, node("slow", "delay", seconds=8), node("after", "http.post", url=plant.counter.url)]
    nodes += [node("other", "constant", value=1), node("broken", "fail", message="no"), node("skipped", "merge")]
    nodes += [node("endless", "delay", seconds=3600), node("never", "http.post", url=plant.counter.url)]
    edges = [["values", "slow"], ["slow", "after"], ["other", "broken"], ["broken", "skipped"]]
    edges += [["other", "endless"], ["endless", "never"]]
    plant.put({"id": "parts", "interval_seconds": 0, "nodes": nodes, "edges": edges})
    checked = json.loads(plant.edge("show", "parts", "--json"))
    components = checked["components"]
    index = next(number for number, component in enumerate(components) if "slow" in component)
    plant.wait_for("parts", 0, "slow", "running")
    plant.edge("stop", "parts", "--component", str(index))
    plant.edge("terminate", "parts", "--node", "endless", "--reason", "enough")
    plant.wait_for("parts", 0, "slow", "completed")
    cycle = json.loads(plant.edge("show", "parts", "--json"))["cycle"]
    assert cycle["status"] == "failed"
    assert {node["node"]: node["reason"] or node["status"] for node in cycle["nodes"]} == {
        **dict.fromkeys(("values", "slow", "other"), "completed"),
        "after": "component_stopped",
        "broken": "no",
        "skipped": "dependency_failed",
        "endless": "enough",
        "never": "dependency_failed",
    }
    assert plant.counter.posted == []
    drawn = plant.directory / "parts.svg"
    plant.edge("draw", "--flow", "parts", "-o", str(drawn))
    assert "component_stopped" in drawn.read_text()
