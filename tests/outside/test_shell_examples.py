"""The commands of curl and mosquitto on the pages work as written."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.free_ports import free_port
from tests.outside.servers import EDGE, ROOT, wait_for
from tests.outside.test_mosquitto_examples import Station, load, station

__all__ = ["station"]

pytestmark = pytest.mark.slow

PASSWORD = "correct horse"


def page(name: str) -> str:
    """Return the text of a page, its continued lines joined."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8").replace("\\\n", " ")


def commands(name: str, program: str) -> list[str]:
    """Return the lines of a page that begin with a program."""
    return re.findall(rf"^ *({program} .*)$", page(name), re.MULTILINE)


def source_of(name: str, table: str) -> str:
    """Return one table of the settings that a page shows."""
    (found,) = re.findall(rf"^(\[source\.{table}\]\n(?:\w+ = .*\n)+)", page(name), re.MULTILINE)
    return str(found)


@pytest.fixture
def ports() -> dict[str, int]:
    return {"web": free_port(), "metrics": free_port()}


@pytest.fixture
def further_settings(tmp_path: Path, ports: dict[str, int]) -> str:
    (rules,) = re.findall(r"^```json\n(.*?)^```$", page("how-to/samples-from-mqtt.md"), re.MULTILINE | re.DOTALL)
    (tmp_path / "rules.json").write_text(rules)
    return (
        f'\n[web]\nlisten = "127.0.0.1:{ports["web"]}"\n[metrics]\nlisten = "127.0.0.1:{ports["metrics"]}"\n'
        f'[users]\nfile = "{tmp_path}/people"\n[flows]\nrun = "on"\n[telemetry]\nrules = "{tmp_path}/rules.json"\n'
        + source_of("how-to/first-flow.md", "press")
        + source_of("how-to/samples-from-mqtt.md", "sensors")
    )


@pytest.fixture
def curl(station: Station, ports: dict[str, int], tmp_path: Path) -> Callable[[str], str]:
    """Runs a command of a page for alice, an operator, or max, an engineer; a refusal fails."""
    (tmp_path / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")
    tokens = {}
    for name, role in (("alice", "operator"), ("max", "engineer")):
        words = [str(EDGE), "users", "add", name, "--role", role, "--password-stdin"]
        given = [*words, "--settings", str(station.gateway.settings)]
        subprocess.run(given, input=PASSWORD, text=True, check=True, capture_output=True)
        tokens[name] = json.loads(station.gateway.cli("users", "token", name, "--json"))["token"]

    def run(command: str) -> str:
        for name, token in tokens.items():
            command = command.replace(f"{name}:edge-TOKEN", f"{name}:{token}")
        command = command.replace("https://gateway:8443", f"http://127.0.0.1:{ports['web']}")
        return station.shell(command.replace(":9464", f":{ports['metrics']}"))

    return run


def test_curl_commands_of_the_api_page_list_and_pause_a_job(station: Station, curl: Callable[[str], str]) -> None:
    load(station, "bolt")
    order = {"JobOrderID": "AXLE-0001", "WorkMasterID": [{"ID": "bolt"}]}
    (station.directory / "order.json").write_text(json.dumps(order))
    station.gateway.cli("jobs", "store", str(station.directory / "order.json"), "--start")
    listing, pause = commands("reference/http-api.md", "curl")
    wait_for(lambda: "AXLE-0001" in curl(listing), "the job is listed")
    curl(pause)
    wait_for(lambda: "Interrupted" in curl(listing), "the job is paused")


def test_curl_commands_of_the_release_page_release_a_draft(station: Station, curl: Callable[[str], str]) -> None:
    load(station, "WM-AXLE-FIT-001")
    name = "how-to/release-a-recipe.md"
    address = re.findall(r"^AT=(.*)$", page(name), re.MULTILINE)[0]
    begin, *others = [command.replace("$AT", address) for command in commands(name, "curl")]
    draft = json.loads(curl(begin))["draft"]["id"]
    assert len(others) == 4
    for command in others:
        curl(command.replace("3f0c7b12aa45", draft))
    history = station.gateway.cli("recipes", "history", "WM-AXLE-FIT-001")
    assert "verify each bolt" in history
    assert "Verify" in station.gateway.cli("recipes", "show", "WM-AXLE-FIT-001")


def test_curl_command_of_the_monitoring_page_reads_metrics(curl: Callable[[str], str]) -> None:
    (read,) = commands("how-to/monitoring.md", "curl")
    assert 'microdcs_edge_info{gateway="edge"' in curl(read)


def test_commands_of_the_first_flow_publish_the_mean(station: Station) -> None:
    name = "how-to/first-flow.md"
    flow, samples = re.findall(r"^```json\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    (station.directory / "press-report.json").write_text(flow)
    (station.directory / "samples.jsonl").write_text(samples)
    edge = Path(EDGE).parent
    station.environment["PATH"] = f"{edge}:{os.environ['PATH']}"
    tried = re.search(r"^    (edge flows test .*)$\n\nprints\n\n((?:    .*\n)+)", page(name), re.MULTILINE)
    assert tried
    printed = [line.removeprefix("    ").rstrip() for line in tried[2].splitlines()]
    assert [line.rstrip() for line in station.shell(tried[1]).splitlines()] == printed
    assert "press-report" in station.gateway.cli(
        "flows", "put", str(station.directory / "press-report.json"), "--start"
    )
    (publish,) = commands(name, "mosquitto_pub")
    (listen,) = commands(name, "mosquitto_sub")
    with station.listening(listen.removesuffix(" &")) as heard:
        station.shell(publish)
        wait_for(lambda: "plant/press/mean 4.2" in heard.read_text(), "the mean is published")
    assert station.gateway.cli("flows", "show", "press-report")
    assert station.gateway.cli("flows", "draw", "--flow", "press-report")


def test_commands_of_the_page_about_mqtt_sources_watch_a_sample(station: Station) -> None:
    name = "how-to/samples-from-mqtt.md"
    (publish,) = commands(name, "mosquitto_pub")
    watch = re.search(r"^    edge (tags watch .*?) &", page(name), re.MULTILINE)
    assert watch
    words = [str(EDGE), *shlex.split(watch[1]), "--settings", str(station.gateway.settings)]
    watching = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def printed() -> bool:
        station.shell(publish)
        return watching.poll() is not None

    wait_for(printed, "a sample that was published after the command listens is printed")
    assert "  oven.temp  20" in watching.communicate()[0]
