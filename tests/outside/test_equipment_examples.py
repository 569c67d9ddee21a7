"""The examples of docs/reference/equipment.md work as written."""

import json
import re
import shlex
import subprocess
import uuid
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import pytest

from tests.outside.conftest import Plant
from tests.outside.servers import EDGE, PREFIX, ROOT

PAGE = ROOT / "docs" / "reference" / "equipment.md"


@dataclass
class Example:
    """One line of mosquitto_pub: what it publishes."""

    topic: str = ""
    payload: str = ""
    retain: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


def examples() -> list[Example]:
    """Return the examples of the page; an option that is unknown here fails."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    return [parse(line) for line in re.findall(r"^    mosquitto_pub (.*)$", text, re.MULTILINE)]


def parse(line: str) -> Example:
    """Read the options of mosquitto_pub."""
    words, example = iter(shlex.split(line)), Example()
    for option in words:
        match option:
            case "-V" | "-q":
                next(words)
            case "-r":
                example.retain = True
            case "-t":
                example.topic = next(words).replace("app/equipment", f"{PREFIX}/equipment")
            case "-m":
                example.payload = next(words)
            case "-D":
                assert next(words) == "PUBLISH"
                name = next(words)
                if name == "user-property":
                    name = next(words)
                    example.attributes[name] = next(words)
                else:
                    example.properties[name] = next(words)
            case _:
                pytest.fail(f"unknown option {option}")
    return example


def schema(name: str) -> Any:
    """Return a schema of messages between gateway and equipment."""
    return json.loads((ROOT / "schemas" / f"equipment.{name}.schema.json").read_text(encoding="utf-8"))


def example_on(topic: str, phase: str | None = None) -> Example:
    """Return the one example that publishes to a topic of the wrench; of commands, that of a phase."""
    found = [item for item in examples() if item.topic == f"{PREFIX}/equipment/wrench/{topic}"]
    (example,) = [item for item in found if item.attributes.get("phase") == phase]
    return example


def test_a_command_has_the_attributes_of_the_example(plant: Plant) -> None:
    trace = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "mes=1"}
    assert plant.mes.start_job("J1", **trace).status == 1
    plant.mes.wait_for_state("J1", "Ended")
    (command,) = plant.wrench.commands
    assert trace.items() <= command.attributes.items()
    assert set(command.attributes) <= set(schema("command.attributes")["$defs"]["CommandAttributes"]["properties"])
    example = example_on("commands", "start")
    assert set(example.attributes) <= set(command.attributes)
    assert set(json.loads(example.payload)) == set(command.data)
    assert example.properties["response-topic"].rpartition("/")[2] == (command.response_topic or "").rpartition("/")[2]
    assert command.correlation_data
    for name, found in (("command", command.data), ("command.attributes", command.attributes)):
        jsonschema.validate(found, schema(name))


@pytest.mark.parametrize("phase", ["start", "stop", "reset"])
def test_command_of_the_examples_matches_its_schema(phase: str) -> None:
    example = example_on("commands", phase)
    jsonschema.validate(example.attributes, schema("command.attributes"))
    jsonschema.validate(json.loads(example.payload), schema("command"))
    assert uuid.UUID(example.attributes["correlationid"]).bytes == example.properties["correlation-data"].encode()


def test_answer_presence_and_event_of_the_examples_match_their_schemas() -> None:
    answer, presence, event = (example_on(topic) for topic in ("answers", "presence", "events"))
    assert set(answer.attributes) == {"causationid"}
    jsonschema.validate(answer.attributes, schema("answer.attributes"))
    jsonschema.validate(json.loads(answer.payload), schema("answer"))
    jsonschema.validate(presence.payload, schema("presence"))
    jsonschema.validate(event.attributes, schema("event.attributes"))


@pytest.mark.slow
def test_a_device_of_another_vendor_passes_the_test_of_devices(plant: Plant) -> None:
    plant.gateway.stop()
    arguments = ("sim", "device", "--name", "wrench", "--type", "com.example.station.tighten.v1", "--json")
    broker = ("--url", f"mqtt://127.0.0.1:{plant.broker.port}", "--prefix", f"{PREFIX}/equipment")
    report = json.loads(run_edge(*arguments, *broker))
    assert report["passed"], report
    strict = json.loads(run_edge(*arguments, *broker, "--strict"))
    unmet = [finding["check"] for finding in strict["findings"] if finding["grade"] != "ok"]
    assert unmet == ["presence", "reset", "start of a known id with other parameters"]
    assert not strict["passed"]


def run_edge(*arguments: str) -> str:
    """Run a command that needs no settings; return its output."""
    return subprocess.run([EDGE, *arguments], capture_output=True, text=True, check=False, timeout=120).stdout
