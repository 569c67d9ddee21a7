"""Arranges the OpenAPI document for people: operations by their subject, types with their members."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

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
                found.setdefault(subject, []).append(_operation(method, path, methods[method]))
    return dict(sorted(found.items()))


def types_of(document: Mapping[str, Any]) -> Sequence[ReadType]:
    """Return the types by their names."""
    schemas = document["components"]["schemas"]
    return [_type(name, schemas[name]) for name in sorted(schemas)]


def _operation(method: str, path: str, found: Mapping[str, Any]) -> ReadOperation:
    answers: Mapping[str, Mapping[str, Any]] = found["responses"]
    done = answers.get("200") or answers.get("204") or {}
    role = found.get("description", "").removeprefix("Role: ").removesuffix(".")
    return ReadOperation(
        method=method.upper(),
        path=path,
        summary=found["summary"],
        role=role,
        parameters=tuple(
            ReadMember(each["name"], _name(each["schema"]), each.get("required", False), each.get("description", ""))
            for each in found.get("parameters", ())
        ),
        body=_content(found.get("requestBody", {})),
        answer=_content(done),
    )


def _content(found: Mapping[str, Any]) -> TypeText | None:
    for media_type, each in found.get("content", {}).items():
        return _name(each["schema"]) if media_type == "application/json" else TypeText(media_type)
    return None


def _type(name: str, schema: Mapping[str, Any]) -> ReadType:
    required = schema.get("required", ())
    members = (
        ReadMember(each, _name(inner), each in required, inner.get("description", ""))
        for each, inner in schema.get("properties", {}).items()
    )
    return ReadType(name, schema.get("description", ""), tuple(members))


def _name(schema: Mapping[str, Any]) -> TypeText:
    """Return the name of a type: `integer`, `string or null`, `list of JobSummary`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return TypeText(name, name)
    if "anyOf" in schema:
        parts = [_name(each) for each in schema["anyOf"]]
        return TypeText(" or ".join(each.text for each in parts), next((each.link for each in parts if each.link), ""))
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
