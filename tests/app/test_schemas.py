"""Every message has a schema that matches its model."""

import re
from typing import Any

import msgspec
import pytest

from edge.app.schemas import schemas
from edge.model import event_types
from edge.model.acceptance import ResourceKind
from edge.model.job_state import METHODS
from edge.model.recipe import RECIPE_DATASCHEMA

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
