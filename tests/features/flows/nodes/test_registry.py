"""The registry has every documented node kind once with its JSON Schema."""

import jsonschema
import pytest

from edge.features.flows.nodes.registry import BUILT_IN, config_schema

KINDS = {
    "aggregate",
    "alarm.raise",
    "capability",
    "changed",
    "constant",
    "delay",
    "equipment.command",
    "expression",
    "fail",
    "file.append",
    "http.get",
    "http.post",
    "job.results",
    "job.store_and_start",
    "merge",
    "mqtt.publish",
    "opcua.read",
    "opcua.write",
    "redis.get",
    "switch",
    "tag.latest",
    "tag.window",
    "tag.write",
    "template",
}


def test_every_node_kind_is_registered_once() -> None:
    assert set(BUILT_IN) == KINDS


@pytest.mark.parametrize("name", BUILT_IN)
def test_schema_is_valid_and_forbids_unknown_members(name: str) -> None:
    schema = config_schema(BUILT_IN[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    assert not jsonschema.Draft202012Validator(schema).is_valid({"no such member": 1})
