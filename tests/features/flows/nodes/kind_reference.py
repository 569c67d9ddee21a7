"""The reference page of node kinds, written from schemas: `python -m tests.features.flows.nodes.kind_reference`."""

from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import msgspec

from edge.features.flows.nodes.kind import Act, Compute, NodeKind, Read
from edge.features.flows.nodes.registry import BUILT_IN, config_schema

PAGE: Final = Path(__file__).parents[4] / "docs/reference/node-kinds.md"
_GROUPS: Final = (("Read", Read), ("Compute", Compute), ("Act", Act))
_HEAD: Final = """\
# Node kinds

The node kinds of [flows](flows.md) with their configurations. `edge flows kinds --json` prints the JSON Schemas.
This page is written from them: `.venv/bin/python -m tests.features.flows.nodes.kind_reference`.
"""
_INPUTS: Final = {"none": "no input", "one": "one input", "any": "any number of inputs", "join": "a join of inputs"}


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for title, work in _GROUPS:
        parts.append(f"## {title}\n")
        parts += [_section(kind) for kind in BUILT_IN.values() if isinstance(kind.work, work)]
    return "\n".join(parts)


def _section(kind: NodeKind[Any]) -> str:
    again = "runs again after an interruption" if kind.repeatable else "fails with `interrupted` after an interruption"
    text = " ".join(cleandoc(kind.config.__doc__ or "").split())
    lines = [f"### `{kind.name}`\n", f"{kind.summary} Takes {_INPUTS[kind.inputs.value]}; {again}.\n"]
    rows = list(_rows(config_schema(kind)))
    if rows:
        lines += [f"{text}\n", "| member | type | default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _rows(schema: Mapping[str, Any]) -> Iterator[str]:
    definition = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    required = definition.get("required", ())
    for name, member in definition["properties"].items():
        default = "required" if name in required else f"`{msgspec.json.encode(member.get('default')).decode()}`"
        yield f"| `{name}` | {type_of(member)} | {default} |"


def type_of(member: Mapping[str, Any]) -> str:
    """Return the type of a member of a JSON Schema in words."""
    if "anyOf" in member:
        return " or ".join(type_of(value) for value in member["anyOf"])
    if "$ref" in member:
        return "object"
    if "enum" in member:
        return ", ".join(f"`{value}`" for value in member["enum"])
    limits = [f"{word} {member[key]:,.12g}" for key, word in _LIMITS.items() if key in member]
    return ", ".join([_TYPES.get(member.get("type", ""), "any JSON"), *limits])


_TYPES: Final = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "truth value",
    "null": "null",
    "object": "object",
    "array": "list",
}
_LIMITS: Final = {
    "minimum": "from",
    "maximum": "to",
    "exclusiveMinimum": "above",
    "minLength": "characters from",
    "maxLength": "characters to",
}

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
