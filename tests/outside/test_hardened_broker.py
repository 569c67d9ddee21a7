"""The examples of the reference pages work under the access rules of the page on hardening, and silence is reported."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.plant import TIGHTENING
from tests.outside.servers import ROOT, Broker, Gateway, Store, ended, wait_for
from tests.outside.test_mosquitto_examples import EQUIPMENT, Station, blocks, example

USERS = ("gateway-7", "mes", "wrench")
PASSWORD = "secret"

pytestmark = pytest.mark.slow


def _access_rules() -> str:
    """Return the lines for the `acl_file` of mosquitto."""
    page = (ROOT / "docs" / "how-to" / "hardening.md").read_text(encoding="utf-8")
    (rules,) = [text for text in page.split("```")[1::2] if "topic read" in text]
    return str(rules)


def _own(file: Path) -> Path:
    file.chmod(0o600)
    return file


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    rules, passwords = broker.directory / "acl", broker.directory / "passwords"
    rules.write_text(_access_rules())
    passwords.touch()
    for user in USERS:
        subprocess.run(["mosquitto_passwd", "-b", _own(passwords), user, PASSWORD], check=True, capture_output=True)
    broker.further = f"allow_anonymous false\npassword_file {_own(passwords)}\nacl_file {_own(rules)}\n"
    settings = (
        f'[redis]\nurl = "unix://{store.socket}"\n[opcua]\nendpoint = ""\n{EQUIPMENT}'
        f'[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port or 0}"\nusername = "gateway-7"\npassword = "{PASSWORD}"\n'
    )
    with ended(broker, store):
        broker.start()
        store.start()
        gateway = Gateway(tmp_path / "gateway", "edge", settings.replace("127.0.0.1:0", f"127.0.0.1:{broker.port}"))
        with ended(gateway):
            gateway.start()
            (tmp_path / "recipe.json").write_text(json.dumps(TIGHTENING))
            yield _as_user(gateway, tmp_path, "mes", broker.port)


def _as_user(gateway: Gateway, directory: Path, user: str, port: int) -> Station:
    """Return a shell whose mosquitto clients log in as a user."""
    home = directory / user
    home.mkdir()
    for program in ("mosquitto_pub", "mosquitto_sub"):
        (home / program).write_text(f"-p {port}\n-u {user}\n-P {PASSWORD}\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_CONFIG_HOME": str(home), "PORT": str(port)}
    return Station(gateway, environment, directory)


def test_examples_of_the_mes_are_answered_under_the_access_rules(station: Station) -> None:
    call, configure = blocks("northbound.md")
    with station.listening("mosquitto_sub -V 5 -q 1 -F '%P %p' -t app/jobs/answers/me") as heard:
        station.shell(configure)
        wait_for(lambda: "config.workmaster.v1" in heard.read_text(), "the Work Master is stored")
        station.shell(call)
        wait_for(lambda: '"ReturnStatus":1' in heard.read_text(), "the job is stored")
    status = station.gateway.wait_for_status(lambda line: "1 job at work" in line, "the job runs")
    assert "broker refuses" not in status
    assert "are not sent" not in status


def test_examples_of_equipment_work_under_the_access_rules(station: Station) -> None:
    _, configure = blocks("northbound.md")
    call = blocks("northbound.md")[0]
    wrench = _as_user(station.gateway, station.directory, "wrench", int(station.environment["PORT"]))
    with wrench.listening(example("equipment.md", "mosquitto_sub", "-i wrench")) as heard:
        wrench.shell(example("equipment.md", "mosquitto_pub", "-m online"))
        station.shell(configure)
        wait_for(lambda: "WM-AXLE" in station.gateway.cli("station", "show", "--json"), "the Work Master is stored")
        station.shell(call)
        wait_for(lambda: '"attempt"' in heard.read_text(), "the command")
        (command,) = set(re.findall(r"\bid:(\S+)", heard.read_text()))
    wrench.shell(example("equipment.md", "mosquitto_pub", "causationid").replace("J1/R/tighten/1", command))
    wait_for(lambda: "Ended" in station.gateway.cli("jobs", "list", "--json"), "the job has ended")


@pytest.mark.parametrize(
    ("topic", "reason"),
    [("app/jobs/others/me", "Not authorized"), ("plant/answers/me", "response_topics does not allow")],
    ids=["rules of the broker", "settings"],
)
def test_call_whose_answer_may_not_be_sent_is_a_problem(station: Station, topic: str, reason: str) -> None:
    _, configure = blocks("northbound.md")
    station.shell(configure.replace("app/jobs/answers/me", topic))
    status = station.gateway.wait_for_status(lambda line: "are not sent" in line, "the status says so")
    assert f"answers to {topic} are not sent" in status
    assert reason.lower() in status.lower()

    def problems() -> list[str]:
        found = json.loads(station.gateway.cli("doctor", "--json"))["findings"]
        return [value["found"] for value in found if value["level"] == "warning" and topic in value["found"]]

    wait_for(problems, "doctor reports it")
