"""Every message has a schema that matches its model."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from edge.app.schemas import ASYNCAPI_FILE, PAYLOADS, asyncapi, schemas
from edge.model import event_types
from edge.model.acceptance import ResourceKind
from edge.model.isa95 import read_payload
from edge.model.job_state import METHODS
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.northbound.topics import Topics
from edge.sfc.compiler import RejectedRecipe, compile_recipe

FOUND = dict(schemas())


@pytest.mark.parametrize("name", FOUND)
def test_every_reference_of_a_schema_resolves(name: str) -> None:
    text = FOUND[name]
    assert text.endswith("}\n")
    schema = msgspec.json.decode(text)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for reference in references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


def references(schema: Any) -> list[str]:
    """Return every reference in a schema."""
    if isinstance(schema, dict):
        found = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return found + [reference for value in schema.values() for reference in references(value)]
    return [reference for value in schema for reference in references(value)] if isinstance(schema, list) else []


def test_every_method_setting_and_event_has_a_schema() -> None:
    kinds = [*(kind.value for kind in ResourceKind), "workmaster", "jobacceptance"]
    types = [name for name in vars(event_types) if name.endswith("_TYPE")]
    assert {f"{method}.call.schema.json" for method in METHODS} <= FOUND.keys()
    assert {f"config.{kind}.schema.json" for kind in kinds} <= FOUND.keys()
    # A refusal has no data; the schemas of methods are named after them.
    for name in {type_ for type_ in types if not type_.endswith("METHOD_TYPE")} - {"CONFIG_TYPE", "REFUSED_TYPE"}:
        assert any(getattr(event_types, name) in text for text in FOUND.values()), name


def test_schema_has_the_member_names_of_the_wire_format() -> None:
    order = msgspec.json.decode(FOUND["Store.call.schema.json"])["$defs"]["JobOrder"]
    assert order["required"] == ["JobOrderID"]
    assert "WorkMasterID" in order["properties"]
    index = msgspec.json.decode(FOUND["StateIndex.schema.json"])["$defs"]
    assert {"job_order_id", "has_result"} <= index["StateIndexEntry"]["properties"].keys()
    assert "StateNumber" in index["State"]["properties"]


def test_recipe_schema_file_has_the_dataschema_as_its_id() -> None:
    assert msgspec.json.decode(FOUND["sfc_recipe.schema.json"])["$id"] == RECIPE_DATASCHEMA


def test_descriptions_are_the_same_on_every_python() -> None:
    """Python 3.13 drops the indentation of docstrings, older ones keep it."""
    assert [name for name, text in schemas() if re.search(r'"description": "[^"]*\\n +', text)] == []


ROOT = Path(__file__).parents[2]
SCHEMA_FILES = sorted((ROOT / "schemas").glob("*.schema.json"))


@pytest.mark.parametrize("file", SCHEMA_FILES, ids=lambda file: file.name.removesuffix(".schema.json"))
def test_schema_has_examples_that_are_valid(file: Path) -> None:
    schema = json.loads(file.read_text(encoding="utf-8"))
    assert schema.get("examples"), "end the docstring of its model with `Example: {…}`"
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    assert [fault.message for example in schema["examples"] for fault in validator.iter_errors(example)] == []


@pytest.mark.parametrize("name", PAYLOADS)
def test_examples_of_a_payload_are_read_by_its_model(name: str) -> None:
    for example in json.loads(FOUND[f"{name}.schema.json"])["examples"]:
        read_payload(example, PAYLOADS[name][0])


def test_recipe_of_the_examples_has_no_faults() -> None:
    (recipe,) = json.loads(FOUND["sfc_recipe.schema.json"])["examples"]
    work_masters = json.loads(FOUND["config.workmaster.schema.json"])["examples"]
    assert [item["data"] for item in work_masters if isinstance(item, dict)] == [recipe]
    assert not isinstance(compile_recipe(recipe), RejectedRecipe)


CHECK = ROOT / "tests" / "uaserver" / "node" / "asyncapi_check.mjs"
NEWER_VERSION = "asyncapi-latest-version"
DOCUMENT = json.loads(asyncapi())


def parsed(directory: Path, document: Any) -> Any:
    """Return the operations of a document and the findings of the parser."""
    for name, text in schemas():
        (directory / name).write_text(text)
    (directory / ASYNCAPI_FILE).write_text(json.dumps(document))
    command = ["node", str(CHECK), str(directory / ASYNCAPI_FILE)]
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
