"""The table of built-in node kinds."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edge.features.flows.nodes import (
    aggregate,
    alarm_raise,
    capability,
    changed,
    constant,
    delay,
    equipment_command,
    expression,
    fail,
    file_append,
    http_get,
    http_post,
    job_results,
    job_store_and_start,
    merge,
    mqtt_publish,
    opcua_read,
    opcua_write,
    redis_get,
    switch,
    tag_latest,
    tag_window,
    tag_write,
    template,
)
from edge.features.flows.nodes.kind import NodeKind

NodeKinds = Mapping[str, NodeKind[Any]]

BUILT_IN: Final[NodeKinds] = {
    module.KIND.name: module.KIND
    for module in (
        tag_latest,
        tag_window,
        job_results,
        opcua_read,
        http_get,
        redis_get,
        constant,
        aggregate,
        capability,
        expression,
        switch,
        changed,
        merge,
        template,
        delay,
        fail,
        tag_write,
        mqtt_publish,
        opcua_write,
        http_post,
        job_store_and_start,
        alarm_raise,
        file_append,
        equipment_command,
    )
}


def config_schema(kind: NodeKind[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the configuration of a kind."""
    return msgspec.json.schema(kind.config)
