"""The AsyncAPI document is valid for the parser of the AsyncAPI Initiative, and names the topics of the product."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edge.app.asyncapi import FILE_NAME, asyncapi
from edge.app.schemas import schemas
from edge.model.job_state import METHODS
from edge.northbound.topics import Topics

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "tests" / "uaserver" / "node" / "asyncapi_check.mjs"
NEWER_VERSION = "asyncapi-latest-version"
DOCUMENT = json.loads(asyncapi())


def parsed(directory: Path, document: Any) -> Any:
    """Return the operations of a document and the findings of the parser."""
    for name, text in schemas():
        (directory / name).write_text(text)
    (directory / FILE_NAME).write_text(json.dumps(document))
    command = ["node", str(CHECK), str(directory / FILE_NAME)]
    made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / ".node", timeout=60)
    return json.loads(made.stdout)


@pytest.mark.slow
def test_parser_of_asyncapi_accepts_the_document(tmp_path: Path) -> None:
    found = parsed(tmp_path, DOCUMENT)
    assert [finding for finding in found["findings"] if finding["code"] != NEWER_VERSION] == []
    assert {f"commands.{method}" for method in METHODS} <= set(found["operations"])


@pytest.mark.slow
def test_parser_of_asyncapi_refuses_a_missing_schema(tmp_path: Path) -> None:
    document = json.loads(asyncapi())
    document["components"]["messages"]["Store.call"]["payload"] = {"$ref": "./missing.schema.json"}
    assert parsed(tmp_path, document)["operations"] == []


def test_addresses_are_the_topics_of_a_scope() -> None:
    topics = Topics("{topicPrefix}", "{scope}")
    addresses = {name: channel["address"] for name, channel in DOCUMENT["channels"].items()}
    assert addresses.items() >= {
        ("commands", topics.commands),
        ("metadata", topics.metadata),
        ("events", topics.events),
        ("data", topics.data),
        ("alarms", topics.alarms),
        ("state-index", topics.state_index),
        ("order", topics.order("J").replace("/J", "/{jobOrderId}")),
        ("result", topics.result("J").replace("/J", "/{jobOrderId}")),
        ("alarm", topics.alarm("A").replace("/A", "/{alarmId}")),
    }


def test_every_topic_of_equipment_is_a_channel() -> None:
    """`data` and `enabled` were missing."""
    row = re.compile(r"^\| (`\{topic_prefix\}/\{name\}/.*?) \|", re.MULTILINE)
    cells = row.findall((ROOT / "docs" / "reference" / "equipment.md").read_text())
    topics = {value for cell in cells for value in re.findall(r"`[^`]*/(\w+)`", cell)}
    addresses = [channel["address"] or "" for channel in DOCUMENT["channels"].values()]
    prefix = "{equipmentPrefix}/{equipment}/"
    assert topics == {address.removeprefix(prefix) for address in addresses if address.startswith(prefix)}
    assert "enabled" in topics


def test_every_message_stands_on_a_channel() -> None:
    on_channels = {name for channel in DOCUMENT["channels"].values() for name in channel["messages"]}
    listed = set(DOCUMENT["components"]["messages"])
    assert listed == on_channels
