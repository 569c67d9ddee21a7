"""Reads a file of PLCopen TC6 XML as a recipe, or says everything that stands against it.

The XML becomes facts, the facts a chart, the chart a recipe: `edge.features.recipes.plcopen` has a file for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from edge.features.recipes.plcopen.chart import ChartArc, ChartReader
from edge.features.recipes.plcopen.document import Element, read_document
from edge.features.recipes.plcopen.facts import PlcElement, read_pou
from edge.features.recipes.plcopen.finding import PlcFileError, PlcFinding, PlcPlace, cut, unique
from edge.features.recipes.plcopen.logic import Logic, PlcAction
from edge.features.recipes.plcopen.nesting import NestingReader
from edge.features.recipes.plcopen.recipe import BranchMaker, Json
from edge.features.recipes.plcopen.st import Scope
from edge.foundation.text import Text, as_text
from edge.model.recipe import Interaction, parse_recipe
from edge.sfc.compiler import RejectedRecipe, compile_recipe

ActionMap = Mapping[str, Any]
"""What actions of a PLC are here: members of an action of a recipe, by the name in the PLC."""


class Imported(Struct, frozen=True):
    """A recipe of a file, or None with every fault; warnings say what is different from the PLC."""

    recipe: Json | None
    faults: tuple[PlcFinding, ...]
    warnings: tuple[PlcFinding, ...]


def import_plcopen(data: bytes, pou: str = "", actions: ActionMap = {}, *, has_defaults: bool = False) -> Imported:  # noqa: B006
    """Return the recipe of the POU with a chart that has a name, or of the only one.

    `actions` says which command or event an action of the PLC is. With `has_defaults` a variable that nothing sets has
    its declared or zero value in conditions, as in a PLC. Never raises for a file, whatever it holds.
    """
    try:
        project = read_document(data)
        return _Import(project, pou, actions, has_defaults=has_defaults).run()
    except PlcFileError as error:
        return Imported(None, (error.finding,), ())


class _Import:
    """One import: it continues after a fault, so that all faults are found at once."""

    def __init__(self, project: Element, pou: str, actions: ActionMap, *, has_defaults: bool) -> None:
        self._faults: list[PlcFinding] = []
        self._warnings: list[PlcFinding] = []
        self._pou = read_pou(project, pou, self._faults)
        self._map = _read_map(actions, self._faults)
        steps = {
            element.local_id: element.node.get("name")
            for element in self._pou.elements.values()
            if element.kind == "step" and element.node.get("name")
        }
        self._steps = steps
        scope = Scope({name.upper(): name for name in steps.values()}, self._pou.variables, has_defaults)
        self._logic = Logic(self._pou, scope, {}, self._faults, self._warnings)

    def run(self) -> Imported:
        """Return the recipe, or the faults."""
        elements = self._pou.elements
        arcs = ChartReader(elements, self._faults).arcs()
        conditions = {
            element.local_id: self._logic.condition(element)
            for element in elements.values()
            if element.kind == "transition"
        }
        actions = list(self._logic.actions())
        initial = self._initial()
        recipe = self._recipe(initial, arcs, conditions, actions) if initial is not None else None
        faults = unique(self._faults)
        if faults or recipe is None:
            return Imported(None, faults, unique(self._warnings))
        self._compare_with_plc(actions)
        return Imported(recipe, (), unique(self._warnings))

    def _initial(self) -> int | None:
        steps = [element for element in self._pou.elements.values() if element.kind == "step"]
        initial = [element for element in steps if element.node.is_set("initialStep")]
        if len(initial) == 1:
            return initial[0].local_id
        if not initial:
            self._faults.append(PlcFinding(self._pou.place, Text.of("the chart has no initial step")))
        for element in initial[1:]:
            name = cut(initial[0].node.get("name"))
            self._faults.append(PlcFinding(element.place, Text.of("step {name!r} is initial, too", name=name)))
        return None

    def _recipe(
        self, initial: int, arcs: Sequence[ChartArc], conditions: Mapping[int, str], actions: Sequence[PlcAction]
    ) -> Json | None:
        """Return the recipe; append the faults of its nesting and of its parts."""
        nesting = NestingReader(initial, arcs, self._faults).read()
        if not self._faults:
            self._unreached(nesting.contexts)
        if self._faults:
            return None
        maker = BranchMaker(nesting, self._steps, self._faults)
        maker.make(initial)
        if self._faults:
            return None
        transitions = list(maker.transitions(conditions))
        recipe: Json = {
            "steps": [
                {"name": name} | ({"initial": True} if number == initial else {})
                for number, name in self._steps.items()
            ],
            "transitions": [_without_defaults(transition) for transition, _ in transitions],
            "actions": [self._action(action) for action in actions],
            "branches": maker.branches,
        }
        self._compile(recipe, [element for _, element in transitions], actions)
        return recipe

    def _unreached(self, contexts: Mapping[int, object]) -> None:
        for number in self._steps:
            if number not in contexts:
                place = self._pou.elements[number].place
                self._faults.append(PlcFinding(place, Text.of("the step cannot be reached from the initial step")))

    def _action(self, action: PlcAction) -> Json:
        entry = self._map.get(action.name.upper(), {})
        return {
            "name": action.name,
            "step": self._steps[action.step],
            "qualifier": action.qualifier.value,
            "interaction": Interaction.PUSH_COMMAND.value,
            "type_id": type_id_of(action.name),
            **entry,
            **({"duration_seconds": action.duration} if action.duration else {}),
        }

    def _compile(self, recipe: Json, transitions: Sequence[PlcElement | None], actions: Sequence[PlcAction]) -> None:
        """Append what the check of recipes says, with the place of the element that it names."""
        compiled = compile_recipe(recipe)
        if not isinstance(compiled, RejectedRecipe):
            return
        steps = {name: self._pou.elements[number].place for number, name in self._steps.items()}
        for fault in compiled.faults:
            text = as_text(fault)
            self._faults.append(PlcFinding(self._place_of(str(text), transitions, actions, steps), text))

    def _place_of(
        self,
        text: str,
        transitions: Sequence[PlcElement | None],
        actions: Sequence[PlcAction],
        steps: Mapping[str, PlcPlace],
    ) -> PlcPlace:
        match = re.match(r"(transitions|actions)\[(\d+)\]", text)
        if match is not None and match.group(1) == "actions":
            return actions[int(match.group(2))].place
        element = transitions[int(match.group(2))] if match is not None else None
        if element is not None:
            return element.place
        named = re.search(r"'([^']*)'", text)
        return steps.get(named.group(1), self._pou.place) if named is not None else self._pou.place

    def _compare_with_plc(self, actions: Sequence[PlcAction]) -> None:
        """Append the warnings of a whole recipe: what it does differently from the PLC, and what was left out."""
        if actions:
            text = Text.of("an action means a command or event of this gateway here, and its step waits for the answer")
            self._warnings.append(PlcFinding(self._pou.place, text))
        for name, place in self._logic.unset.items():
            text = Text.of(
                "nothing in the recipe sets {name}: it is unknown until a result or a parameter of the order has it",
                name=cut(name),
            )
            self._warnings.append(PlcFinding(place, text))
        if self._pou.comments:
            text = Text.of("{count} comments are not carried over", count=self._pou.comments)
            self._warnings.append(PlcFinding(self._pou.place, text))
        places = {action.name: action.place for action in reversed(actions)}
        for name, place in places.items():
            self._warnings += (PlcFinding(place, text) for text in self._about_action(name))
        for key in self._map.keys() - {name.upper() for name in places}:
            text = Text.of("the map names {name!r}, which is not an action of the chart", name=cut(key))
            self._warnings.append(PlcFinding(PlcPlace(), text))

    def _about_action(self, name: str) -> Iterator[Text]:
        body = self._pou.actions.get(name.upper())
        if body is not None and body.text.strip():
            yield Text.of("the body of the action in {language} is not carried over", language=body.language)
        if name.upper() not in self._map:
            yield Text.of("the map does not name the action; its type id is {type_id}", type_id=type_id_of(name))


def type_id_of(name: str) -> str:
    """Return the type id of an action that no map names: `plcopen.NAME.v1`."""
    return f"plcopen.{re.sub(r'[^a-z0-9]', '_', name.lower())}.v1"


def _without_defaults(transition: Json) -> Json:
    return {key: value for key, value in transition.items() if key != "priority" or value}


_OWN: Final = frozenset({"name", "step", "qualifier", "duration_seconds"})


def _read_map(actions: ActionMap, faults: list[PlcFinding]) -> dict[str, Json]:
    """Return the entries of a map by names in upper case; append the faults of their members."""
    entries: dict[str, Json] = {}
    for name, entry in actions.items():
        place = PlcPlace(name=name)
        if name.upper() in entries:
            faults.append(PlcFinding(place, Text.of("the map names the action twice")))
        if not isinstance(entry, dict):
            faults.append(PlcFinding(place, Text.of("an entry of the map must be an object")))
            continue
        own = [key for key in entry if _snake_case(key) in _OWN]
        faults += (PlcFinding(place, Text.of("{key!r} of the map comes from the chart", key=key)) for key in own)
        members = {_snake_case(key): value for key, value in entry.items() if key not in own}
        action = {"name": name or "-", "step": "-", "qualifier": "N", **members}
        action.setdefault("interaction", Interaction.PUSH_COMMAND.value)
        action.setdefault("type_id", type_id_of(name))
        _, form = parse_recipe({"steps": [{"name": "-"}], "actions": [action]})
        faults += (
            PlcFinding(place, Text.of("in the map: {fault}", fault=str(fault).partition(": ")[2])) for fault in form
        )
        entries[name.upper()] = members
    return entries


def _snake_case(key: str) -> str:
    """Return a key as recipes write it: they take `TypeId`, too."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower() if key[:1].isupper() else key
