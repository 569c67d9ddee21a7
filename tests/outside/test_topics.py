"""The tables of topics are complete: a broker saw no other topic of a gateway, and each of the MES."""

import re
from pathlib import Path

import pytest

from tests.outside.mqtt_client import MqttClient
from tests.outside.plant import Mes, Wrench
from tests.outside.servers import PREFIX, SCOPE, Broker, Gateway, Store, ended, wait_for

PAGE = Path(__file__).parents[2] / "docs/reference/northbound.md"
NAMES = {"prefix": PREFIX, "scope": SCOPE, "equipment": f"{PREFIX}/equipment", "fleet": "plant"}
SETTINGS = """
[redis]
url = "unix://{store}"
[mqtt]
url = "mqtt://127.0.0.1:{port}"
[northbound]
topic_prefix = "{prefix}"
[opcua]
endpoint = ""
[fleet]
listen = "mqtt"
topic_prefix = "plant"
[sparkplug]
group = "press"
[southbound.wrench]
type_ids = ["com.example.station.tighten.v1"]
topic_prefix = "{prefix}/equipment"
lock = "on"
"""


def documented() -> dict[str, re.Pattern[str]]:
    """Return the topics of the page, each with a pattern of the topics and filters that it describes."""
    rows = re.findall(r"^\| (`.+?`) \| (?:in|out)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    topics = [topic for row in rows for topic in re.findall(r"`([^`]+)`", row)]
    return {
        topic: re.compile(re.sub(r"\{(\w+)\}", lambda found: NAMES.get(found[1], "[^/]+"), topic)) for topic in topics
    }


def of_the_gateway(log: str) -> set[str]:
    """Return the topics that the gateway published and subscribed to, from the log of mosquitto."""
    published = re.findall(r"Received PUBLISH from (?!mes|tool)\S+ \(.*?'(.*?)',", log)
    subscribed = re.findall(r": (?!mes|tool)\S+ [012] (\S+)$", log, re.MULTILINE)
    return {*published, *subscribed}


@pytest.mark.slow
def test_tables_of_topics_list_every_topic_of_a_gateway(tmp_path: Path) -> None:
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    log = broker.directory / "log"
    broker.further = f"log_dest file {log}\nlog_type subscribe\nlog_type debug\n"
    with ended(broker, store):
        broker.start()
        store.start()
        settings = SETTINGS.format(store=store.socket, port=broker.port, prefix=PREFIX)
        gateway = Gateway(tmp_path / "gateway", "edge", settings)
        mes, wrench, reader = Mes(broker.port), Wrench(broker.port), MqttClient(broker.port, "mes-reader")
        with ended(gateway):
            reader.connect()
            reader.subscribe(f"{PREFIX}/{SCOPE}/data")
            gateway.start()
            try:
                mes.open()
                mes.configure()
                wrench.holds = True
                wrench.open()
                mes.start_job("J1")
                mes.wait_for_state("J1", "Running")
                mes.call("Abort", {"JobOrderID": "J1"})
                # The abort raises a built-in alarm.
                wait_for(lambda: f"{PREFIX}/{SCOPE}/alarm/" in log.read_text(), "the alarm is retained")
                published = {f"{PREFIX}/{SCOPE}/alarms", f"{PREFIX}/{SCOPE}/data"}
                wait_for(lambda: published <= of_the_gateway(log.read_text()), "alarm and progress are published")
            finally:
                for client in (mes.client, wrench.client, reader):
                    client.close()
        topics = of_the_gateway(log.read_text())
    rows = documented()
    assert {topic for topic in topics if not any(pattern.fullmatch(topic) for pattern in rows.values())} <= {
        mes.answers
    }
    of_the_mes = {topic: pattern for topic, pattern in rows.items() if topic.startswith("{prefix}")}
    assert len(of_the_mes) == 9
    assert [topic for topic, pattern in of_the_mes.items() if not any(map(pattern.fullmatch, topics))] == []
