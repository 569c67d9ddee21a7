"""Reads what a POU says: its variables, named transitions and actions, and the elements of its chart.

Sources: the schema of PLCopen TC6 XML 2.01; for the dialect of CODESYS its exports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from edge.expression.syntax import MAX_LENGTH
from edge.features.recipes.plcopen.document import Element, walk
from edge.features.recipes.plcopen.finding import MAX_NAME, PlcFileError, PlcFinding, PlcPlace, cut
from edge.features.recipes.plcopen.st import PlcVariable
from edge.features.recipes.plcopen.st_tokens import kind_of_type
from edge.foundation.text import Text

EXPRESSION: Final = "https://microdcs-edge/plcopen/expression"
"""The `addData` of a variable that was made for an expression."""
RECIPE: Final = "https://microdcs-edge/plcopen/recipe"
"""The `addData` of a POU with its recipe."""
CODESYS_ELEMENT: Final = "http://www.3s-software.com/plcopenxml/sfc/element"
CODESYS_ACTIONS: Final = {
    "a6b08bd8-b696-47e3-9cbf-7408b61c9ff8": "P1",
    "700a583f-b4d4-43e4-8c14-629c7cd3bec8": "N",
    "a2621e18-7de3-4ea6-ae6d-89e9e0b7befd": "P0",
}
"""The attributes of a step of CODESYS with its entry, active and exit action, and the qualifiers that they mean."""
CODESYS_TIMES: Final = {
    "cacf1a68-236e-47c2-b7b1-1cf9199718cb": "MinTime",
    "b693554c-1b01-4a8d-afde-9e3a46f7465d": "MaxTime",
}
CODESYS_COMMENT: Final = "7d894980-aeea-405c-a0f6-e2b26429c58f"
CODESYS_EXCLUDED: Final = "01580b27-6378-448b-8ecb-0e4b795b58d6"
"""The attribute of an element of CODESYS that is not built."""
DIVERGENCES: Final = frozenset({"selectionDivergence", "simultaneousDivergence"})
CONVERGENCES: Final = frozenset({"selectionConvergence", "simultaneousConvergence"})
FLOW: Final = frozenset({"step", "transition", "jumpStep"}) | DIVERGENCES | CONVERGENCES
_SIDE: Final = frozenset({"actionBlock", "inVariable"})
_LANGUAGES: Final = ("ST", "IL", "FBD", "LD", "SFC")
_MAX_NAMES: Final = 20
_MAX_ID: Final = 2**64 - 1


class PlcElement(Struct, frozen=True):
    """An element of a chart. `pins` are its inputs, each with the localIds that it is connected to.

    `order` is its place in the document, `x` its distance from the left.
    """

    kind: str
    local_id: int
    place: PlcPlace
    x: float
    order: int
    pins: tuple[tuple[int, ...], ...]
    node: Element


class Body(Struct, frozen=True):
    """The body of a POU, an action or a transition: its language and text; the language is empty without a body."""

    name: str
    language: str
    text: str
    place: PlcPlace


class Pou(Struct, frozen=True):
    """What a POU says; all keys are names in upper case."""

    name: str
    place: PlcPlace
    variables: Mapping[str, PlcVariable]
    actions: Mapping[str, Body]
    transitions: Mapping[str, Body]
    elements: Mapping[int, PlcElement]
    comments: int
    recipe: str
    """The recipe that an export of this product put into the file, as JSON; empty without one."""


def read_pou(project: Element, wanted: str, faults: list[PlcFinding]) -> Pou:
    """Return the facts of the POU with a chart that has a name, or of the only one; append the faults.

    Raises PlcFileError where the POU is unclear.
    """
    pou, charts = _chosen(project, wanted)
    place = PlcPlace(pou.line, name=pou.get("name"))
    if len(charts) > 1:
        faults.append(PlcFinding(place, Text.of("the chart has {count} worksheets; one is read", count=len(charts))))
    reader = _ElementReader(faults)
    reader.read(charts[0])
    return Pou(
        pou.get("name"),
        place,
        _variables(project, pou, faults),
        _bodies(pou.one("actions"), "action", faults),
        _bodies(pou.one("transitions"), "transition", faults),
        reader.elements,
        reader.comments,
        _data_text(pou, RECIPE),
    )


def _chosen(project: Element, wanted: str) -> tuple[Element, list[Element]]:
    """Return the POU with its charts."""
    pous = [element for element in walk(project) if element.tag == "pou" and element.is_tc6]
    charts = [(pou, _charts(pou)) for pou in pous if _charts(pou)]
    named = [chart for chart in charts if not wanted or chart[0].get("name").upper() == wanted.upper()]
    if len(named) == 1:
        return named[0]
    names = ", ".join(cut(pou.get("name")) for pou, _ in charts[:_MAX_NAMES])
    if not charts:
        raise PlcFileError(PlcFinding(PlcPlace(project.line), Text.of("the file has no POU with a chart (SFC)")))
    if not named:
        text = Text.of(
            "no POU with a chart has the name {name!r}; there are: {names}", name=cut(wanted), names=cut(names)
        )
    else:
        text = Text.of("several POUs have a chart: {names}; choose one with --pou", names=cut(names))
    raise PlcFileError(PlcFinding(PlcPlace(named[0][0].line if named else project.line), text))


def _charts(pou: Element) -> list[Element]:
    return [chart for body in pou.all("body") if (chart := body.one("SFC")) is not None]


def _variables(project: Element, pou: Element, faults: list[PlcFinding]) -> dict[str, PlcVariable]:
    """Return the variables of a POU; a constant that it takes from outside has the value of the global one."""
    outer = {
        variable.name.upper(): variable
        for element in walk(project)
        if element.tag == "globalVars" and element.is_tc6
        for variable in _declared(element, [])
    }
    interface = pou.one("interface")
    variables: dict[str, PlcVariable] = {}
    for section in interface.children if interface is not None else ():
        for variable in _declared(section, faults):
            key = variable.name.upper()
            if key in variables:
                text = Text.of("the variable is declared twice")
                faults.append(PlcFinding(PlcPlace(section.line, name=variable.name), text))
            is_outer = section.tag == "externalVars" and not variable.initial
            variables[key] = outer.get(key, variable) if is_outer else variable
    return {key: variable for key, variable in outer.items() if variable.is_constant} | variables


def _declared(section: Element, faults: list[PlcFinding]) -> Iterator[PlcVariable]:
    for node in section.all("variable"):
        declared = node.one("type")
        kind = next(declared.children).tag if declared is not None and any(declared.children) else ""
        value = node.one("initialValue", "simpleValue")
        initial = value.get("value") if value is not None else ""
        name = _name(node, "name", faults)
        yield PlcVariable(name, kind_of_type(kind), initial, section.is_set("constant"), _expression(node))


def _expression(node: Element) -> str:
    """Return the expression that an export put into a variable, as JSON; an empty text without a readable one."""
    try:
        expression = msgspec.json.decode(_data_text(node, EXPRESSION), type=str)
    except msgspec.DecodeError:
        return ""
    return expression if len(expression) <= MAX_LENGTH else ""


def _name(node: Element, attribute: str, faults: list[PlcFinding]) -> str:
    name = node.get(attribute)
    if len(name) > MAX_NAME:
        text = Text.of("the name has more than {limit} characters", limit=MAX_NAME)
        faults.append(PlcFinding(PlcPlace(node.line, name=name), text))
    return name[:MAX_NAME]


def _bodies(section: Element | None, tag: str, faults: list[PlcFinding]) -> dict[str, Body]:
    bodies: dict[str, Body] = {}
    for node in section.all(tag) if section is not None else ():
        name = _name(node, "name", faults)
        if name.upper() in bodies:
            text = Text.of("the name is declared twice")
            faults.append(PlcFinding(PlcPlace(node.line, name=name), text))
        bodies[name.upper()] = body_of(node.one("body"), PlcPlace(node.line, name=name), name)
    return bodies


def body_of(node: Element | None, place: PlcPlace, name: str = "") -> Body:
    """Return the language and the text of a body."""
    for language in _LANGUAGES if node is not None else ():
        content = node.one(language) if node is not None else None
        if content is not None:
            return Body(name, language, content.text, place)
    return Body(name, "", "", place)


def data_of(node: Element, name: str) -> Iterator[Element]:
    """Yield the elements in the `addData` of an element that a tool put there under a name."""
    added = node.one("addData")
    for data in added.all("data") if added is not None else ():
        if data.get("name") == name:
            yield from data.children


def _data_text(node: Element, name: str) -> str:
    return next((element.text for element in data_of(node, name)), "")


def codesys_attributes(node: Element) -> dict[str, str]:
    """Return the attributes that CODESYS adds to an element of a chart, by their guid."""
    return {
        attribute.get("guid").lower(): attribute.text.strip()
        for attributes in data_of(node, CODESYS_ELEMENT)
        for attribute in attributes.children
        if attribute.tag == "attribute"
    }


class _ElementReader:
    """Reads the elements of a chart."""

    def __init__(self, faults: list[PlcFinding]) -> None:
        self._faults = faults
        self.elements: dict[int, PlcElement] = {}
        self.comments = 0

    def read(self, chart: Element) -> None:
        """Read every element; append faults for those that have no form in a recipe."""
        for order, node in enumerate(chart.children):
            if node.tag == "comment":
                self.comments += 1
            elif node.is_tc6 and node.tag in FLOW | _SIDE:
                self._add(node, order)
            else:
                self._add_other(node, order)

    def _place(self, node: Element) -> PlcPlace:
        identifier = node.get("localId")
        name = node.get("name") or node.get("targetName")
        return PlcPlace(node.line, _unsigned(identifier), name)

    def _add_other(self, node: Element, order: int) -> None:
        """Record an element without form in a recipe, so that what is connected to it can name it."""
        place = self._place(node)
        text = Text.of("{kind} is not carried over: it has no form in a recipe", kind=cut(node.tag))
        self._faults.append(PlcFinding(place, text))
        if place.local_id is not None:
            element = PlcElement(cut(node.tag), place.local_id, place, 0, order, (), node)
            self.elements.setdefault(place.local_id, element)

    def _add(self, node: Element, order: int) -> None:
        place = self._place(node)
        if place.local_id is None:
            text = Text.of("{kind} needs a localId from 0 to {limit}", kind=node.tag, limit=_MAX_ID)
            self._faults.append(PlcFinding(place, text))
            return
        first = self.elements.get(place.local_id)
        if first is not None:
            text = Text.of("the localId stands in line {line}, too", line=first.place.line)
            self._faults.append(PlcFinding(place, text))
            return
        for attribute in ("name", "targetName"):
            _name(node, attribute, self._faults)
        pins = tuple(self.references(pin, place) for pin in node.all("connectionPointIn"))
        self.comments += _comments(node)
        self.elements[place.local_id] = PlcElement(
            node.tag, place.local_id, place, self._x(node, place), order, pins, node
        )

    def references(self, pin: Element, place: PlcPlace) -> tuple[int, ...]:
        return references(pin, place, self._faults)

    def _x(self, node: Element, place: PlcPlace) -> float:
        position = node.one("position")
        text = position.get("x") if position is not None else ""
        if not text:
            return 0.0
        if not re.fullmatch(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})", text):
            self._faults.append(PlcFinding(place, Text.of("the position {text!r} is not a number", text=cut(text))))
            return 0.0
        return float(text)


def _comments(node: Element) -> int:
    """Return how many comments an element has: its documentation, that of its actions, and the one of CODESYS."""
    documents = (part.one("documentation") for part in (node, *node.all("action")))
    texts = [document.text.strip() for document in documents if document is not None]
    return sum(map(bool, texts)) + bool(codesys_attributes(node).get(CODESYS_COMMENT))


def references(pin: Element, place: PlcPlace, faults: list[PlcFinding]) -> tuple[int, ...]:
    """Return the localIds that an input is connected to; append a fault for one that cannot be read."""
    identifiers = []
    for connection in pin.all("connection"):
        identifier = _unsigned(connection.get("refLocalId"))
        if identifier is None:
            text = Text.of("the connection {text!r} is not a localId", text=cut(connection.get("refLocalId")))
            faults.append(PlcFinding(PlcPlace(connection.line, place.local_id, place.name), text))
        else:
            identifiers.append(identifier)
    return tuple(dict.fromkeys(identifiers))


def _unsigned(text: str) -> int | None:
    if not re.fullmatch(r"\+?[0-9]{1,40}", text):
        return None
    value = int(text)
    return value if value <= _MAX_ID else None


def sorted_by_place(elements: Sequence[PlcElement]) -> list[PlcElement]:
    """Return elements from left to right, equal ones in the order of the document."""
    return sorted(elements, key=lambda element: (element.x, element.order))
