"""Generates the OpenAPI 3.1 document from the table of operations, and arranges it for people."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge import __version__
from edge.app.page_part import ApiOperation, Download, Signature, Streamed, StreamedArchive, Svg, Upload
from edge.app.schema_examples import plain_schema
from edge.features.page import models
from edge.features.page.operations import OPERATIONS

KEY_HEADER: Final = "Idempotency-Key"
"""The header by which a sender that has no answer may send a change again."""
PREFIX: Final = "/api/v1"
_REF: Final = "#/components/schemas/{name}"
_EXTRA: Final = (models.Problem, models.Login, models.Identity, models.ChangeNotice, Signature)

_CONTENT: Final[Mapping[type, Mapping[str, Any]]] = {
    Svg: {"image/svg+xml": {"schema": {"type": "string"}}},
    Download: {"application/gzip": {}},
    Streamed: {"text/csv": {}, "application/json": {}, "application/jsonl": {}},
    StreamedArchive: {"application/gzip": {}},
    Upload: {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
}
"""The answers and bodies that are not JSON."""


def openapi() -> dict[str, Any]:
    """Return the document."""
    types = {api_operation.answer for api_operation in OPERATIONS if api_operation.answer not in _CONTENT}
    bodies = {api_operation.body for api_operation in OPERATIONS if api_operation.body}
    types |= {body for body in bodies if body not in _CONTENT} | set(_EXTRA)
    ordered = sorted(types, key=lambda item: item.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _operation(operation)
    paths[f"{PREFIX}/session"] = _session()
    paths[f"{PREFIX}/session/panel"] = {"post": _panel_session()}
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
            "schemas": plain_schema(components),
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
        json_content = {"application/json": {"schema": _ref(operation.body)}}
        found["requestBody"] = {"required": True, "content": _CONTENT.get(operation.body) or json_content}
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


def _panel_session() -> dict[str, Any]:
    done = {"description": "Done.", "content": {"application/json": {"schema": _ref(models.Identity)}}}
    return {
        "operationId": "post_session_panel",
        "summary": "Log in at a panel by PIN or badge; the answer sets the cookie of the session.",
        "security": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref(Signature)}}},
        "responses": {"200": done, "default": _problem()},
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


_METHODS: Final = ("get", "post", "delete")
_PREFIX_PARTS: Final = 3
"""The parts of a path before its subject: an empty one, `api`, `v1`."""


class TypeText(Struct, frozen=True):
    """The type of a value: `text` with `link`, the name of a described type; empty without one."""

    text: str
    link: str = ""


class ReadMember(Struct, frozen=True):
    """A member of a type, or a parameter of an operation."""

    name: str
    type: TypeText
    is_required: bool
    meaning: str = ""


class ReadOperation(Struct, frozen=True):
    """An operation as a person reads it; `body` and `answer` are None without one."""

    method: str
    path: str
    summary: str
    role: str
    parameters: tuple[ReadMember, ...]
    body: TypeText | None
    answer: TypeText | None


class ReadType(Struct, frozen=True):
    """A type as a person reads it."""

    name: str
    meaning: str
    members: tuple[ReadMember, ...]


def subjects_of(document: Mapping[str, Any]) -> Mapping[str, Sequence[ReadOperation]]:
    """Return the operations by the first part of their path."""
    found: dict[str, list[ReadOperation]] = {}
    for path, methods in document["paths"].items():
        subject = path.split("/")[_PREFIX_PARTS]
        for method in _METHODS:
            if method in methods:
                found.setdefault(subject, []).append(_readable_operation(method, path, methods[method]))
    return dict(sorted(found.items()))


def types_of(document: Mapping[str, Any]) -> Sequence[ReadType]:
    """Return the types by their names."""
    schemas = document["components"]["schemas"]
    return [_type(name, schemas[name]) for name in sorted(schemas)]


def _readable_operation(method: str, path: str, found: Mapping[str, Any]) -> ReadOperation:
    answers: Mapping[str, Mapping[str, Any]] = found["responses"]
    done = answers.get("200") or answers.get("204") or {}
    role = found.get("description", "").removeprefix("Role: ").removesuffix(".")
    return ReadOperation(
        method=method.upper(),
        path=path,
        summary=found["summary"],
        role=role,
        parameters=tuple(
            ReadMember(
                parameter["name"],
                _name(parameter["schema"]),
                parameter.get("required", False),
                parameter.get("description", ""),
            )
            for parameter in found.get("parameters", ())
        ),
        body=_content(found.get("requestBody", {})),
        answer=_content(done),
    )


def _content(found: Mapping[str, Any]) -> TypeText | None:
    for media_type, value in found.get("content", {}).items():
        return _name(value["schema"]) if media_type == "application/json" else TypeText(media_type)
    return None


def _type(name: str, schema: Mapping[str, Any]) -> ReadType:
    required = schema.get("required", ())
    members = (
        ReadMember(item, _name(inner), item in required, inner.get("description", ""))
        for item, inner in schema.get("properties", {}).items()
    )
    return ReadType(name, schema.get("description", ""), tuple(members))


def _name(schema: Mapping[str, Any]) -> TypeText:
    """Return the name of a type: `integer`, `string or null`, `list of PublicJob`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return TypeText(name, name)
    if "anyOf" in schema:
        parts = [_name(item) for item in schema["anyOf"]]
        return TypeText(" or ".join(part.text for part in parts), next((part.link for part in parts if part.link), ""))
    if "enum" in schema:
        return TypeText(" | ".join(map(str, schema["enum"])))
    if schema.get("type") == "array":
        inner = _name(schema.get("items") or {})
        return TypeText(f"list of {inner.text}", inner.link)
    return TypeText(", ".join((schema.get("type", "any"), *_limits(schema))))


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    for key in ("format", "pattern"):
        if key in schema:
            yield str(schema[key])
    for least, most in (("minimum", "maximum"), ("exclusiveMinimum", "maximum"), ("minLength", "maxLength")):
        if least in schema:
            yield f"{schema[least]} to {schema.get(most, '…')}"
            return
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']} characters"
