"""Turns the examples in the docstrings of models into the `examples` of their JSON Schemas.

A docstring may end with `Example: {"ReturnStatus": 1, "JobResponse": "…"}`, where `…` is the example of the model of
that member. A model without an example has those of its structures.
"""

from collections.abc import Iterator, Mapping
from inspect import cleandoc
from typing import Any, Final

import msgspec

_EXAMPLE: Final = "Example:"


def with_examples(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the examples of its root; its descriptions, which are docstrings, are those without."""
    examples = list(_examples(schema, schema.get("$defs", {})))
    plain: dict[str, Any] = plain_schema(schema)
    return plain | {"examples": examples} if examples else plain


def plain_schema(schema: Any) -> Any:
    """Return a schema with its descriptions unindented, as Python 3.13 has docstrings, and without examples."""
    match schema:
        case dict():
            return {
                key: _sentences(value) if key == "description" and isinstance(value, str) else plain_schema(value)
                for key, value in schema.items()
            }
        case list():
            return [plain_schema(item) for item in schema]
        case _:
            return schema


def _sentences(docstring: str) -> str:
    return cleandoc(docstring).partition(_EXAMPLE)[0].rstrip()


def _examples(schema: Any, definitions: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the examples of a schema; none of a structure that holds itself, or that has a required member without."""
    match schema:
        case {"examples": [*found]}:
            yield from found
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            others = {other: definition for other, definition in definitions.items() if other != name}
            yield from _examples(definitions.get(name), others)
        case {"anyOf": [*options]}:
            for option in options:
                yield from _examples(option, definitions)
        case {"enum": [first, *_]} | {"const": first}:
            yield first
        case {"type": "array", "items": dict(items)}:
            yield from ([example] for example in _examples(items, definitions))
        case {"type": "object", "properties": dict()}:
            yield from _structures(schema, definitions)
        case _:
            pass


def _structures(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the examples of a docstring, else one of all structures."""
    _, *texts = cleandoc(schema.get("description", "")).split(_EXAMPLE)
    required = schema.get("required", ())
    found = {name: next(_examples(value, definitions), None) for name, value in schema["properties"].items()}
    members = {name: value for name, value in found.items() if value is not None}
    for text in texts:
        example = msgspec.json.decode(text)
        yield {name: members[name] if value == "…" else value for name, value in example.items()}
    own = {name: value for name, value in members.items() if name in required or isinstance(value, dict | list)}
    if own and not texts and own.keys() >= set(required):
        yield own
