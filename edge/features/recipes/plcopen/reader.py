"""Reads a file of PLCopen TC6 XML as a recipe, or says everything that stands against it.

The XML becomes facts, the facts a chart, the chart a recipe: `edge.features.recipes.plcopen` has a file for each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from edge.features.recipes.plcopen.chart import ChartReader, Entry, Parallel
from edge.features.recipes.plcopen.document import Element, read_document
from edge.features.recipes.plcopen.facts import PlcElement, read_pou
from edge.features.recipes.plcopen.finding import PlcFileError, PlcFinding, PlcPlace, cut, unique
from edge.features.recipes.plcopen.logic import Logic, PlcAction
from edge.features.recipes.plcopen.nesting import NestingReader
from edge.features.recipes.plcopen.original import Members, Original, read_original
from edge.features.recipes.plcopen.recipe import BranchMaker, Json, priorities_of
from edge.features.recipes.plcopen.st import Scope
from edge.features.recipes.plcopen.writer import export_plcopen
from edge.foundation.errors import Refused
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


def import_plcopen(
    data: bytes, pou: str = "", actions: Mapping[str, Any] = {}, *, has_defaults: bool = False
) -> Imported:
    """Return the recipe of the POU with a chart that has a name, or of the only one.

    `actions` says which command or event an action of the PLC is. With `has_defaults` a variable that nothing sets has
    its declared or zero value in conditions, as in a PLC. Never raises for a file, whatever it holds.
    """
    try:
        project = read_document(data)
        reading = _Reading(project, pou, actions, None, has_defaults=has_defaults)
        original = read_original(reading.pou.recipe) if reading.pou.recipe else None
        if original is None:
            return reading.imported()
        if not actions and _is_unchanged(reading, original, has_defaults=has_defaults):
            return Imported(original.data, (), ())
        return _Reading(project, pou, actions, original, has_defaults=has_defaults).imported()
    except PlcFileError as error:
        return Imported(None, (error.finding,), ())


def _is_unchanged(reading: _Reading, original: Original, *, has_defaults: bool) -> bool:
    """Return whether the chart of a file is the one that the export of its recipe writes."""
    try:
        written = export_plcopen(original.net, original.data, reading.pou.name, "")
    except Refused:
        return False
    fresh = _Reading(read_document(written), "", {}, None, has_defaults=has_defaults)
    return fresh.signature() == reading.signature()


class _Reading:
    """One reading of a chart: it continues after a fault, so that all faults are found at once.

    With `original` names and members of the recipe that was exported stay, where the chart has not changed them.
    """

    def __init__(
        self, project: Element, pou: str, actions: ActionMap, original: Original | None, *, has_defaults: bool
    ) -> None:
        self._faults: list[PlcFinding] = []
        self._warnings: list[PlcFinding] = []
        self.pou = read_pou(project, pou, self._faults)
        self._map = _read_map(actions, self._faults)
        self._original_actions: set[str] = set()
        self._members = Members(original) if original is not None else None
        renamed = original.steps if original is not None else {}
        elements = self.pou.elements
        names = {element.local_id: element.node.get("name") for element in elements.values() if element.kind == "step"}
        self._steps = {number: renamed.get(name.upper(), name) for number, name in names.items() if name}
        steps = {name.upper(): self._steps[number] for number, name in names.items() if name}
        scope = Scope(steps, self.pou.variables, has_defaults, spelling={})
        exported = original.actions if original is not None else {}
        self._logic = Logic(self.pou, scope, exported, self._faults, self._warnings)
        self._arcs = ChartReader(elements, self._faults).arcs()
        self._conditions = {
            element.local_id: self._logic.condition(element)
            for element in elements.values()
            if element.kind == "transition"
        }
        self._logic.warn_of_unused()
        self._actions = self._logic.actions
        self._initial_step = self._initial()

    def signature(self) -> tuple[object, ...]:
        """Return what the chart says, without places and numbers: equal ones are the same chart."""
        actions: dict[str, list[object]] = {}
        for action in self._actions:
            of_step = actions.setdefault(self._steps.get(action.step, ""), [])
            of_step.append((action.name, action.qualifier, action.duration))
        priorities = priorities_of(self._arcs)
        arcs = Counter(
            (
                frozenset(self._steps.get(step, "") for step in arc.sources),
                self._entry_names(arc.entry),
                self._conditions[arc.transition.local_id],
                priorities[arc.transition.local_id],
            )
            for arc in self._arcs
        )
        initial = self._steps.get(self._initial_step) if self._initial_step is not None else None
        faults = sorted(str(fault.text) for fault in self._faults)
        return (initial, sorted(self._steps.values()), actions, arcs, faults)

    def _entry_names(self, entry: Entry) -> object:
        match entry:
            case Parallel(paths=paths):
                return frozenset(self._entry_names(path) for path in paths)
            case step:
                return self._steps.get(step, "")

    def imported(self) -> Imported:
        """Return the recipe, or the faults."""
        recipe = self._recipe(self._initial_step) if self._initial_step is not None else None
        faults = unique(self._faults)
        if faults or recipe is None:
            return Imported(None, faults, unique(self._warnings))
        self._compare_with_plc(self._actions)
        return Imported(recipe, (), unique(self._warnings))

    def _initial(self) -> int | None:
        steps = [element for element in self.pou.elements.values() if element.kind == "step"]
        initial = [element for element in steps if element.node.is_set("initialStep")]
        if len(initial) == 1:
            return initial[0].local_id
        if not initial:
            self._faults.append(PlcFinding(self.pou.place, Text.of("the chart has no initial step")))
        for element in initial[1:]:
            name = cut(initial[0].node.get("name"))
            self._faults.append(PlcFinding(element.place, Text.of("step {name!r} is initial, too", name=name)))
        return None

    def _recipe(self, initial: int) -> Json | None:
        """Return the recipe; append the faults of its nesting and of its parts."""
        nesting = NestingReader(initial, self._arcs, self._faults).read()
        if not self._faults:
            self._unreached(nesting.contexts)
        if self._faults:
            return None
        maker = BranchMaker(nesting, self._steps, self._faults)
        maker.make(initial)
        if self._faults:
            return None
        branches = maker.branches
        steps: list[Json] = [
            {"name": name} | ({"initial": True} if number == initial else {}) for number, name in self._steps.items()
        ]
        transitions = list(maker.transitions(self._conditions))
        recipe: Json = {
            "steps": steps,
            "transitions": [_without_defaults(transition) for transition, _ in transitions],
            "actions": [self._action(action) for action in self._actions],
            "branches": branches,
        }
        if self._members is not None:
            self._members.add_to(recipe)
        places = {
            maker.names[number]: parallels.arc.transition.place for number, parallels in nesting.parallels.items()
        }
        self._compile(recipe, [element for _, element in transitions], self._actions, places)
        return recipe

    def _unreached(self, contexts: Mapping[int, object]) -> None:
        for number in self._steps:
            if number not in contexts:
                place = self.pou.elements[number].place
                self._faults.append(PlcFinding(place, Text.of("the step cannot be reached from the initial step")))

    def _action(self, action: PlcAction) -> Json:
        entry = self._map.get(action.name.upper(), {})
        if self._members is not None and not entry:
            key = (action.name, self._steps[action.step], action.qualifier.value, action.duration)
            if (original := self._members.action(key)) is not None:
                self._original_actions.add(action.name.upper())
                return original
        return {
            "name": action.name,
            "step": self._steps[action.step],
            "qualifier": action.qualifier.value,
            "interaction": Interaction.PUSH_COMMAND.value,
            "type_id": type_id_of(action.name),
            **entry,
            **({"duration_seconds": action.duration} if action.duration else {}),
        }

    def _compile(
        self,
        recipe: Json,
        transitions: Sequence[PlcElement | None],
        actions: Sequence[PlcAction],
        branches: Mapping[str, PlcPlace],
    ) -> None:
        """Append what the check of recipes says, with the place of the element that it names."""
        compiled = compile_recipe(recipe)
        if not isinstance(compiled, RejectedRecipe):
            return
        steps = {name: self.pou.elements[number].place for number, name in self._steps.items()}
        places = {**branches, **steps}
        for fault in compiled.faults:
            text = as_text(fault)
            self._faults.append(PlcFinding(self._place_of(str(text), transitions, actions, places), text))

    def _place_of(
        self,
        text: str,
        transitions: Sequence[PlcElement | None],
        actions: Sequence[PlcAction],
        places: Mapping[str, PlcPlace],
    ) -> PlcPlace:
        match = re.match(r"(transitions|actions)\[(\d+)\]", text)
        if match is not None and match.group(1) == "actions":
            return actions[int(match.group(2))].place
        element = transitions[int(match.group(2))] if match is not None else None
        if element is not None:
            return element.place
        names = [*reversed(re.findall(r"'([^']*)'", text)), *re.findall(r"^livelock: (.*?) → ", text)]
        return next((places[name] for name in names if name in places), self.pou.place)

    def _compare_with_plc(self, actions: Sequence[PlcAction]) -> None:
        """Append the warnings of a whole recipe: what it does differently from the PLC, and what was left out."""
        if actions:
            text = Text.of("an action means a command or event of this gateway here, and its step waits for the answer")
            self._warnings.append(PlcFinding(self.pou.place, text))
        for name, place in self._logic.unset.items():
            text = Text.of(
                "nothing in the recipe sets {name}: it is unknown until a result or a parameter of the order has it",
                name=cut(name),
            )
            self._warnings.append(PlcFinding(place, text))
        if self._members is not None:
            self._warnings += (PlcFinding(self.pou.place, text) for text in self._members.lost())
        if self.pou.comments:
            text = Text.of("{count} comments are not carried over", count=self.pou.comments)
            self._warnings.append(PlcFinding(self.pou.place, text))
        places = {action.name: action.place for action in reversed(actions)}
        for name, place in places.items():
            self._warnings += (PlcFinding(place, text) for text in self._about_action(name))
        for key in self._map.keys() - {name.upper() for name in places}:
            text = Text.of("the map names {name!r}, which is not an action of the chart", name=cut(key))
            self._warnings.append(PlcFinding(PlcPlace(), text))

    def _about_action(self, name: str) -> Iterator[Text]:
        body = self.pou.actions.get(name.upper())
        if body is not None and body.text.strip():
            yield Text.of("the body of the action in {language} is not carried over", language=body.language)
        if name.upper() not in self._map.keys() | self._original_actions:
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
