"""The mosquitto commands of the reference pages work as written."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.outside.plant import TIGHTENING
from tests.outside.servers import ROOT, Broker, Gateway, Store, ended, wait_for

EQUIPMENT = '[southbound.wrench]\ntype_ids = ["com.example.station.tighten.v1"]\n'


def blocks(page: str) -> list[str]:
    """Return the code of a page that publishes, block by block."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    return [value for value in re.findall(r"(?:^    .*\n)+", text, re.MULTILINE) if "mosquitto_pub" in value]


def examples(page: str, program: str) -> list[str]:
    """Return the commands of a page that begin with a program, with the lines that continue them."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    return re.findall(rf"^    ({program} (?:.*\\\n)*.*)$", text, re.MULTILINE)


def example(page: str, program: str, words: str) -> str:
    """Return the one command of a page with these words in it."""
    (found,) = [text for text in examples(page, program) if words in text]
    return found


@dataclass
class Station:
    """A gateway with the settings of the pages, and a shell whose mosquitto clients find its broker."""

    gateway: Gateway
    environment: dict[str, str]
    directory: Path

    def shell(self, commands: str) -> str:
        """Run commands of a page; they have to succeed."""
        made = subprocess.run(
            ["sh", "-ec", commands],
            check=False,
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert made.returncode == 0, made.stderr
        return made.stdout

    @contextlib.contextmanager
    def listening(self, command: str) -> Iterator[Path]:
        """Run a mosquitto_sub that has subscribed; yield the file of its output."""
        heard = self.directory / "heard"
        with heard.open("w") as output:
            shell = ["sh", "-c", f"exec stdbuf -oL {command} -d"]
            client = subprocess.Popen(shell, env=self.environment, stdout=output, stderr=output, cwd=self.directory)
        try:
            wait_for(lambda: "SUBACK" in heard.read_text(), "mosquitto_sub has subscribed")
            yield heard
        finally:
            client.terminate()
            client.wait()


@pytest.fixture
def station(tmp_path: Path, further_settings: str) -> Iterator[Station]:
    broker, store = Broker(tmp_path / "broker"), Store(tmp_path / "store")
    settings = f'[redis]\nurl = "unix://{store.socket}"\n[opcua]\nendpoint = ""\n{EQUIPMENT}{further_settings}'
    with ended(broker, store):
        broker.start()
        store.start()
        gateway = Gateway(tmp_path / "gateway", "edge", f'{settings}[mqtt]\nurl = "mqtt://127.0.0.1:{broker.port}"\n')
        with ended(gateway):
            gateway.start()
            for program in ("mosquitto_pub", "mosquitto_sub"):
                (tmp_path / program).write_text(f"-p {broker.port}\n")
            (tmp_path / "recipe.json").write_text(json.dumps(TIGHTENING))
            environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
            yield Station(gateway, environment, tmp_path)


def load(station: Station, work_master: str) -> None:
    station.gateway.cli("station", "set", "workmaster", str(station.directory / "recipe.json"), "--id", work_master)


@pytest.mark.slow
def test_calls_of_the_northbound_page_are_answered_with_success(station: Station) -> None:
    call, configure = blocks("northbound.md")
    with station.listening("mosquitto_sub -V 5 -q 1 -F '%P %p' -t app/jobs/answers/me") as heard:
        station.shell(configure)
        wait_for(lambda: "config.workmaster.v1" in heard.read_text(), "the Work Master is stored")
        station.shell(call)
        wait_for(lambda: '"ReturnStatus":1' in heard.read_text(), "the job is stored")
        assert "mdcserrorkind" not in heard.read_text()
    assert "J1" in station.gateway.cli("jobs", "list", "--json")
    assert json.loads(station.gateway.cli("refused", "--json")) == []


@pytest.mark.slow
def test_equipment_built_from_the_commands_of_its_page_tightens(station: Station) -> None:
    load(station, "bolt")
    listen = example("equipment.md", "mosquitto_sub", "-i wrench")
    with station.listening(listen) as heard:
        station.shell(example("equipment.md", "mosquitto_pub", "-m online"))
        order = {"JobOrderID": "J1", "WorkMasterID": [{"ID": "bolt"}]}
        (station.directory / "order.json").write_text(json.dumps(order))
        station.gateway.cli("jobs", "store", str(station.directory / "order.json"), "--start")
        wait_for(lambda: '"attempt"' in heard.read_text(), "the command")
        (command,) = set(re.findall(r"\bid:(\S+)", heard.read_text()))
    answer = example("equipment.md", "mosquitto_pub", "causationid")
    station.shell(answer.replace("J1/R/tighten/1", command))
    wait_for(lambda: "Ended" in station.gateway.cli("jobs", "list", "--json"), "the job has ended")
    assert "85.2" in station.gateway.cli("jobs", "show", "J1", "--json")


def test_every_other_command_of_the_equipment_page_is_accepted(station: Station) -> None:
    with station.listening("mosquitto_sub -V 5 -q 1 -t app/equipment/wrench/# -F '%t %P %p'") as heard:
        for word in examples("equipment.md", "mosquitto_pub"):
            station.shell(word)
        for words in ("phase:start", "phase:stop", "phase:reset", "torque", "presence", "qa_result"):
            wait_for(lambda: words in heard.read_text(), f"{words} has arrived")  # noqa: B023 - it is called at once
    refused = json.loads(station.gateway.cli("refused", "--json"))
    assert [value for value in refused if "J1/R/tighten/1" not in json.dumps(value)] == []
