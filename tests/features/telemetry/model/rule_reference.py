"""The tables of docs/reference/rules.md, written from the schemas of rules.

Call it as `python -m tests.features.telemetry.model.rule_reference`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from edge.features.telemetry.model.rule import RULE_KINDS, rules_schema
from tests.features.flows.nodes.kind_reference import type_of

PAGE: Final = Path(__file__).parents[4] / "docs/reference/rules.md"
_HEAD: Final = ("| member | type | default | meaning |", "|---|---|---|---|")
_COMMON: Final = "## Members of every rule"


def page(text: str) -> str:
    """Return the page with the tables of the schemas."""
    properties = {kind: _members(model.__name__) for kind, model in RULE_KINDS.items()}
    kinds = {"enum": list(RULE_KINDS), "required": True, "description": "What the rule detects: see [Kinds](#kinds)."}
    common = {"kind": kinds}
    common |= {name: member for name, member in properties["limit"].items() if _is_common(name, properties)}
    common |= {name: properties["limit"][name] for name in ("tag", "subject")}
    text = _with_table(text, _COMMON, common)
    for kind, members in properties.items():
        own = {
            name: member
            for name, member in members.items()
            if name not in common or (name == "subject" and member != common[name])
        }
        text = _with_table(text, f"### {kind}", own) if own else text
    return text


def _is_common(name: str, properties: Mapping[str, Mapping[str, Any]]) -> bool:
    return all(name in members for members in properties.values()) and name not in {"tag", "subject"}


def _members(model: str) -> dict[str, Any]:
    """Return the properties of a model, with `required` in each that has no default."""
    definition = rules_schema()["$defs"][model]
    required = definition["required"]
    return {
        name: member | {"required": name in required}
        for name, member in definition["properties"].items()
        if name != "kind"
    }


def _with_table(text: str, heading: str, members: Mapping[str, Any]) -> str:
    """Return a text with the first table below a heading replaced."""
    match = re.search(rf"^{re.escape(heading)}$.*?^(\| member \|.*?)(?=^(?!\|))", text, re.DOTALL | re.MULTILINE)
    assert match, f"{PAGE.name} has no table of members below {heading}"
    table = "\n".join((*_HEAD, *_rows(members)))
    return f"{text[: match.start(1)]}{table}\n{text[match.end(1) :]}"


def _rows(members: Mapping[str, Any]) -> Iterator[str]:
    for name, member in members.items():
        default = f"`{msgspec.json.encode(member.get('default')).decode()}`"
        shown = "required" if member["required"] else "–" if default == "`null`" else default
        kind = type_of(member).replace(" or null", "")
        yield f"| `{name}` | {kind} | {shown} | {member['description']} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
