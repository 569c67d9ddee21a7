"""Writes a recipe as a chart of PLCopen TC6 XML 2.01.

Selections and branches are unfolded to the transitions between steps that the station tests, so that any tool reads the
same chart. The recipe itself is in the `addData` of the POU: a reader that finds the chart unchanged takes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from edge.expression.syntax import Literal, parse
from edge.features.recipes.plcopen.document import MAX_BYTES, MAX_ELEMENTS
from edge.features.recipes.plcopen.facts import EXPRESSION, RECIPE
from edge.features.recipes.plcopen.graph import ChartWriter
from edge.features.recipes.plcopen.names import NameGiver, PlcNames, names_of_recipe
from edge.features.recipes.plcopen.st import PlcVariable
from edge.features.recipes.plcopen.st_text import declare_variables, st_of
from edge.features.recipes.plcopen.st_tokens import StKind
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.sfc.net import Net
from edge.sfc.structure import Arc, Structure

NAMESPACE: Final = "http://www.plcopen.org/xml/tc6_0201"
_XHTML: Final = "http://www.w3.org/1999/xhtml"
_OWN: Final = "https://microdcs-edge/plcopen"


class PlcConditions(Struct, frozen=True):
    """The conditions of a recipe in Structured Text, and the variables that they need.

    `made` has the variables that stand for expressions without form in Structured Text, by the expression.
    """

    texts: Mapping[str, str]
    variables: Mapping[str, PlcVariable]
    made: Mapping[str, str]


def export_plcopen(net: Net, data: object, name: str, created: str) -> bytes:
    """Return the chart of a recipe, compiled from `data`, as XML with the name of the POU.

    `created` is an instant (xsd:dateTime). Raises Refused where the file would be larger than what is read back.
    """
    pou = NameGiver().name(name or "Recipe")
    giver = NameGiver()
    names = names_of_recipe(net.recipe, giver)
    arcs = Structure(net.recipe).arcs
    conditions = conditions_of(arcs, names, giver)
    body = [*ChartWriter(net.recipe, arcs, names, conditions.texts, giver).lines()]
    lines = [*_head(pou, created), *_interface(conditions), *_actions(names), "<body><SFC>", *body, "</SFC></body>"]
    lines += [_added(RECIPE, "recipe", json.dumps(data)), "</pou></pous></types>"]
    lines.append("<instances><configurations/></instances></project>")
    text = "\n".join(lines).encode()
    elements = text.count(b"<") - text.count(b"</")
    if len(text) > MAX_BYTES or elements > MAX_ELEMENTS:
        raise Refused(
            "recipe",
            Text.of("the chart has {count} elements and {size} bytes in XML", count=elements, size=len(text)),
            Text.of("At most {count} elements and {size} bytes are read back.", count=MAX_ELEMENTS, size=MAX_BYTES),
        )
    return text


def conditions_of(arcs: Sequence[Arc], names: PlcNames, giver: NameGiver) -> PlcConditions:
    """Return each condition of the transitions in Structured Text, `TRUE` left out."""
    texts = list(dict.fromkeys(text for arc in arcs for text in arc.conditions))
    variables = declare_variables(texts, names.all)
    for variable in variables.values():
        giver.name(variable.name)
    written: dict[str, str] = {}
    made: dict[str, str] = {}
    for text in texts:
        written[text] = "" if _is_true(text) else st_of(text, names.steps, variables)
        if not written[text] and not _is_true(text):
            made[text] = written[text] = giver.name("Condition")
    return PlcConditions(written, variables, made)


def _is_true(text: str) -> bool:
    node = parse(text)
    return isinstance(node, Literal) and node.value is True


def _head(pou: str, created: str) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<project xmlns="{NAMESPACE}" xmlns:xhtml="{_XHTML}">'
    yield (
        '<fileHeader companyName="microdcs-edge" productName="microdcs-edge" productVersion="1"'
        f" creationDateTime={quoteattr(created)}/>"
    )
    scaling = '<scaling x="1" y="1"/>'
    scalings = "".join(f"<{kind}>{scaling}</{kind}>" for kind in ("fbd", "ld", "sfc"))
    yield f"<contentHeader name={quoteattr(pou)}><coordinateInfo>{scalings}</coordinateInfo></contentHeader>"
    yield f'<types><dataTypes/><pous><pou name={quoteattr(pou)} pouType="program">'


def _interface(conditions: PlcConditions) -> Iterator[str]:
    yield "<interface>"
    variables = [_variable(variable.name, variable.kind) for variable in conditions.variables.values()]
    variables += [_variable(name, StKind.TRUTH, text) for text, name in conditions.made.items()]
    if variables:
        yield "<localVars>"
        yield from variables
        yield "</localVars>"
    yield "</interface>"


def _variable(name: str, kind: StKind, expression: str = "") -> str:
    added = ""
    if expression:
        comment = "".join(character if character.isprintable() else " " for character in expression)
        documentation = f"<documentation><xhtml:p>{escape(comment)}</xhtml:p></documentation>"
        added = _added(EXPRESSION, "expression", json.dumps(expression)) + documentation
    kind_text = "<string/>" if kind is StKind.STRING else f"<{kind.value}/>"
    return f"<variable name={quoteattr(name)}><type>{kind_text}</type>{added}</variable>"


def _added(name: str, tag: str, text: str) -> str:
    content = f'<{tag} xmlns="{_OWN}">{escape(text)}</{tag}>'
    return f'<addData><data name="{name}" handleUnknown="preserve">{content}</data></addData>'


def _actions(names: PlcNames) -> Iterator[str]:
    """Yield an empty action for each, so that other tools know its name."""
    if names.actions:
        yield "<actions>"
        for name in names.actions.values():
            yield f"<action name={quoteattr(name)}><body><ST><xhtml:p/></ST></body></action>"
        yield "</actions>"
