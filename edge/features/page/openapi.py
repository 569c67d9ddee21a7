"""Generates the OpenAPI 3.1 document from the table of operations and the types of the models."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edge import __version__
from edge.features.page import models
from edge.features.page.operation import ApiOperation, Download, Svg
from edge.features.page.operations import OPERATIONS

KEY_HEADER: Final = "Idempotency-Key"
"""The header by which a sender that has no answer may send a change again."""
PREFIX: Final = "/api/v1"
_REF: Final = "#/components/schemas/{name}"
_EXTRA: Final = (models.Problem, models.Login, models.Identity, models.ChangeNotice)

_CONTENT: Final[Mapping[type, Mapping[str, Any]]] = {
    Svg: {"image/svg+xml": {"schema": {"type": "string"}}},
    Download: {"application/gzip": {}},
}
"""The answers that are no JSON."""


def openapi() -> dict[str, Any]:
    """Return the document."""
    types = {each.answer for each in OPERATIONS if each.answer not in _CONTENT}
    types |= {each.body for each in OPERATIONS if each.body} | set(_EXTRA)
    ordered = sorted(types, key=lambda each: each.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for each in OPERATIONS:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each)
    paths[f"{PREFIX}/session"] = _session()
    paths[f"{PREFIX}/events"] = {"get": _events()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "microdcs-edge",
            "version": __version__,
            "description": "Jobs, equipment, alarms and tags of one gateway. The page uses the same operations.",
        },
        "security": [{"session": []}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "edge-session"},
                "token": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "A user name and a token of this user: edge users token NAME.",
                },
            },
        },
    }


def _operation(operation: ApiOperation) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    for name, meaning in operation.query.items():
        parameters.append({"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}})
    if operation.body:
        meaning = "A new text for each change: the same change under the same key is carried out once."
        parameters.append({"name": KEY_HEADER, "in": "header", "description": meaning, "schema": {"type": "string"}})
    content = _CONTENT.get(operation.answer) or {"application/json": {"schema": _ref(operation.answer)}}
    found: dict[str, Any] = {
        "operationId": operation_id(operation),
        "summary": operation.summary,
        "description": f"Role: {operation.role.name.lower()}.",
        "parameters": parameters,
        "responses": {"200": {"description": "Done.", "content": content}, "default": _problem()},
    }
    if operation.body:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(operation.body)}}}
    return found


def operation_id(operation: ApiOperation) -> str:
    """Return the name of an operation: its method and its path in one word."""
    words = operation.path.replace("{", "").replace("}", "").replace(".", "/").split("/")
    return "_".join([operation.method.lower(), *filter(None, words)])


def _session() -> dict[str, Any]:
    done = {"description": "Done.", "content": {"application/json": {"schema": _ref(models.Identity)}}}
    return {
        "post": {
            "operationId": "post_session",
            "summary": "Log in; the answer sets the cookie of the session.",
            "security": [],
            "requestBody": {"required": True, "content": {"application/json": {"schema": _ref(models.Login)}}},
            "responses": {"200": done, "default": _problem()},
        },
        "delete": {
            "operationId": "delete_session",
            "summary": "Log out.",
            "responses": {"204": {"description": "Done."}, "default": _problem()},
        },
    }


def _events() -> dict[str, Any]:
    return {
        "operationId": "get_events",
        "summary": "Follow changes as server-sent events; each event `change` has a ChangeNotice as data.",
        "responses": {
            "200": {"description": "A stream.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            "default": _problem(),
        },
    }


def _problem() -> dict[str, Any]:
    return {"description": "Refused.", "content": {"application/json": {"schema": _ref(models.Problem)}}}


def _ref(type_: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=type_.__name__)}
