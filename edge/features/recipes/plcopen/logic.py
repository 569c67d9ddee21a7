"""Reads the conditions of transitions and the actions of steps from the facts of a POU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from edge.expression.syntax import ExpressionSyntaxError
from edge.features.recipes.plcopen.document import Element
from edge.features.recipes.plcopen.facts import (
    CODESYS_ACTIONS,
    CODESYS_TIMES,
    Body,
    PlcElement,
    Pou,
    body_of,
    codesys_attributes,
    references,
)
from edge.features.recipes.plcopen.finding import PlcFinding, PlcPlace, cut
from edge.features.recipes.plcopen.st import Scope, Translation, constant_of, translate, translate_named
from edge.features.recipes.plcopen.st_tokens import StError, StKind, read_duration, tokens_of
from edge.foundation.text import Text
from edge.model.recipe import MAX_SECONDS, Qualifier
from edge.sfc.condition import Names, compile_condition
from edge.sfc.net import QUALIFIER_RULES

_ALWAYS: Final = Translation("always")
_NAME: Final = re.compile(r"[^\W\d]\w*")
_STATEMENTS: Final = frozenset({"RETURN", "EXIT", "CONTINUE"})


class PlcAction(Struct, frozen=True):
    """An association of an action with a step: `step` is the localId, `duration` its T in seconds."""

    name: str
    step: int
    qualifier: Qualifier
    duration: float
    place: PlcPlace


class Logic:
    """The conditions and actions of a chart; faults and warnings are appended to the given lists.

    `exported` are the names that actions have in the recipe of the file, by those in the PLC in upper case.
    """

    def __init__(
        self, pou: Pou, scope: Scope, exported: Mapping[str, str], faults: list[PlcFinding], warnings: list[PlcFinding]
    ) -> None:
        self._pou = pou
        self._scope = scope
        self._faults = faults
        self._warnings = warnings
        self._exported = exported
        self._named: dict[str, Translation | None] = {}
        self._used: set[int] = set()
        self.unset: dict[str, PlcPlace] = {}
        self._checked: dict[str, str | Text] = {}
        self._spelling: dict[str, str] = {}
        self.actions = tuple(self._read_actions())
        self._names = Names(frozenset(scope.steps.values()), dict.fromkeys(self._spelling.values(), ()))

    def condition(self, transition: PlcElement) -> str:
        """Return the condition of a transition as an expression, `always` without one; a faulty one as it stands."""
        node = transition.node.one("condition")
        translation = _ALWAYS if node is None else self._condition(node, transition.place)
        if translation is None:
            return f"unreadable: {transition.node.text}"
        if node is not None and node.is_set("negated"):
            translation = _negated(translation)
        self._check(translation.text, transition.place)
        for name in translation.names:
            self.unset.setdefault(name, transition.place)
        self._warnings += (PlcFinding(transition.place, text) for text in translation.warnings)
        return translation.text

    def _condition(self, node: Element, place: PlcPlace) -> Translation | None:
        reference, pin, inline = node.one("reference"), node.one("connectionPointIn"), node.one("inline")
        if reference is not None:
            return self._reference(reference.get("name"), place)
        if inline is not None:
            return self._body(body_of(inline, place), place)
        if pin is None:
            # Some tools leave out `inline`.
            return self._body(body_of(node, place), place) if any(node.children) else _ALWAYS
        expression = pin.one("expression")
        parts = [self._connected(number, place) for number in references(pin, place, self._faults)]
        if expression is not None:
            parts.append(self._text(expression.text, place))
        readable = [part for part in parts if part is not None]
        if len(readable) < len(parts):
            return None
        return _any_of(readable) if readable else _ALWAYS

    def _connected(self, number: int, place: PlcPlace) -> Translation | None:
        element = self._pou.elements.get(number)
        if element is None:
            self._fault(place, Text.of("the condition is connected to localId {id}, which is not there", id=number))
            return None
        if element.kind != "inVariable":
            text = Text.of(
                "the condition is connected to {kind} {id}; networks are not carried over", kind=element.kind, id=number
            )
            self._fault(place, text)
            return None
        self._used.add(number)
        expression = element.node.one("expression")
        translation = self._text(expression.text if expression is not None else "", element.place)
        if translation is None or not element.node.is_set("negated"):
            return translation
        return _negated(translation)

    def _reference(self, name: str, place: PlcPlace) -> Translation | None:
        key = name.upper()
        if key not in self._pou.transitions:
            if key in self._scope.variables:
                return self._text(name, place)
            self._fault(place, Text.of("no transition has the name {name!r}", name=cut(name)))
            return None
        if key not in self._named:
            body = self._pou.transitions[key]
            self._named[key] = self._body(body, body.place)
        return self._named[key]

    def _body(self, body: Body, place: PlcPlace) -> Translation | None:
        if body.language != "ST":
            language = body.language or "-"
            self._fault(place, Text.of("a condition in {language} is not carried over; ST is", language=language))
            return None
        try:
            return translate_named(body.text, self._scope, body.name)
        except StError as error:
            self._fault(place, error.text)
            return None

    def _text(self, text: str, place: PlcPlace) -> Translation | None:
        name = text.strip()
        if name.upper() in self._pou.transitions and name.upper() not in self._scope.variables:
            return self._reference(name, place)
        try:
            return translate(text, self._scope)
        except StError as error:
            self._fault(place, error.text)
            return None

    def _check(self, text: str, place: PlcPlace) -> None:
        """Append a fault where our language refuses a condition, such as one that is too long."""
        if text not in self._checked:
            try:
                compile_condition(text, self._names)
                self._checked[text] = ""
            except ExpressionSyntaxError as error:
                self._checked[text] = error.text
        if self._checked[text]:
            self._fault(place, Text.of("condition {text}: {reason}", text=cut(text), reason=self._checked[text]))

    def _fault(self, place: PlcPlace, text: Text) -> None:
        self._faults.append(PlcFinding(place, text))

    def warn_of_unused(self) -> None:
        """Append a warning for each value that no condition has used."""
        for element in self._pou.elements.values():
            if element.kind == "inVariable" and element.local_id not in self._used:
                self._warnings.append(PlcFinding(element.place, Text.of("nothing uses this value")))

    def _read_actions(self) -> Iterator[PlcAction]:
        """Yield the actions of each step: those of its action blocks, and those that CODESYS has at the step."""
        for element in self._pou.elements.values():
            if element.kind == "step":
                yield from self._step_actions(element)
            elif element.kind == "actionBlock":
                yield from self._block(element)

    def _step_actions(self, step: PlcElement) -> Iterator[PlcAction]:
        """Yield the actions that a step of CODESYS names itself; append faults for its times."""
        attributes = codesys_attributes(step.node)
        for guid, attribute in CODESYS_TIMES.items():
            if value := attributes.get(guid):
                text = Text.of("{attribute} {value!r} is not carried over", attribute=attribute, value=cut(value))
                self._fault(step.place, text)
        for guid, qualifier in CODESYS_ACTIONS.items():
            if name := attributes.get(guid):
                yield PlcAction(self._spelled(name), step.local_id, Qualifier(qualifier), 0, step.place)

    def _block(self, block: PlcElement) -> Iterator[PlcAction]:
        if block.node.is_set("negated"):
            self._fault(block.place, Text.of("a negated {kind} is not carried over", kind="actionBlock"))
        for node in block.node.all("action"):
            name = self._action_name(node, block.place)
            place = PlcPlace(node.line, block.local_id, name)
            if node.get("indicator"):
                text = Text.of("the indicator {name!r} is not carried over", name=cut(node.get("indicator")))
                self._warnings.append(PlcFinding(place, text))
            qualifier = self._qualifier(node, place)
            if not name or qualifier is None:
                continue
            duration = self._duration(node.get("duration"), qualifier, place)
            for pin in block.pins:
                for step in pin:
                    yield PlcAction(name, step, qualifier, duration, place)

    def _qualifier(self, node: Element, place: PlcPlace) -> Qualifier | None:
        text = node.get("qualifier") or "N"
        try:
            return Qualifier(text)
        except ValueError:
            self._fault(place, Text.of("qualifier {qualifier} is not carried over", qualifier=cut(text)))
            return None

    def _action_name(self, node: Element, place: PlcPlace) -> str:
        reference, inline = node.one("reference"), node.one("inline")
        place = PlcPlace(node.line, place.local_id)
        if reference is not None and inline is None and reference.get("name"):
            return self._spelled(reference.get("name"))
        if inline is None or reference is not None:
            self._fault(place, Text.of("an action has one reference with a name, or one inline body"))
            return ""
        body = body_of(inline, place)
        name = _called(body)
        if not name:
            text = Text.of(
                "the body {body!r} of an inline action is not carried over; one name or one call without arguments is",
                body=cut(" ".join(body.text.split()) if body.language == "ST" else body.language or "-"),
            )
            self._fault(place, text)
        return self._spelled(name) if name else ""

    def _spelled(self, name: str) -> str:
        """Return a name as it is declared, else as it is written first."""
        key = name.upper()
        declared = self._pou.actions.get(key) or self._pou.variables.get(key)
        spelling = self._exported.get(key) or (declared.name if declared is not None else name)
        return self._spelling.setdefault(key, spelling)

    def _duration(self, text: str, qualifier: Qualifier, place: PlcPlace) -> float:
        if not QUALIFIER_RULES[qualifier].timed:
            if text:
                unused = Text.of(
                    "qualifier {qualifier} has no duration; {text} is left out",
                    qualifier=qualifier.value,
                    text=cut(text),
                )
                self._warnings.append(PlcFinding(place, unused))
            return 0
        seconds = read_duration(text)
        variable = self._scope.variables.get(text.upper())
        if seconds is None and variable is not None and variable.is_constant and variable.initial:
            try:
                literal = constant_of(variable, self._scope)
            except StError as error:
                self._fault(place, error.text)
                return 0
            seconds = read_duration(f"T#{literal.text}") if literal.kind is StKind.TIME else None
        if seconds is None or not 0 < seconds <= MAX_SECONDS:
            self._fault(
                place,
                Text.of(
                    "qualifier {qualifier} needs a duration: a literal or a constant of type TIME, not {text!r}",
                    qualifier=qualifier.value,
                    text=cut(text),
                ),
            )
            return 0
        return float(seconds)


def _called(body: Body) -> str:
    """Return the name in a body that is one name or one call without arguments; an empty text for others."""
    if body.language != "ST":
        return ""
    try:
        words = [token.text for token in tokens_of(body.text)]
    except StError:
        return ""
    if words[-1:] == [";"]:
        words.pop()
    if words[-2:] == ["(", ")"]:
        words = words[:-2]
    is_path = len(words) % 2 == 1 and all(
        _NAME.fullmatch(word) if number % 2 == 0 else word == "." for number, word in enumerate(words)
    )
    return "".join(words) if is_path and words[0].upper() not in _STATEMENTS else ""


def _operand(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _negated(translation: Translation) -> Translation:
    return Translation(f"not {_operand(translation.text)}", translation.names, translation.warnings)


def _any_of(parts: list[Translation]) -> Translation:
    if len(parts) == 1:
        return parts[0]
    return Translation(
        " or ".join(_operand(part.text) for part in parts),
        tuple(dict.fromkeys(name for part in parts for name in part.names)),
        tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
    )
