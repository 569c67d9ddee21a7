"""Follows the connections of a chart: each transition with the steps before it and the steps that it enters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from edge.features.recipes.plcopen.facts import (
    CODESYS_EXCLUDED,
    CONVERGENCES,
    FLOW,
    PlcElement,
    codesys_attributes,
    sorted_by_place,
)
from edge.features.recipes.plcopen.finding import PlcFinding, PlcPlace, cut
from edge.foundation.text import Text
from edge.sfc.structure import MAX_NESTING

_BEFORE: Final[Mapping[str, frozenset[str]]] = {
    "step": frozenset({"transition", "selectionConvergence", "simultaneousDivergence"}),
    "jumpStep": frozenset({"transition", "selectionConvergence"}),
    "transition": frozenset({"step", "selectionDivergence", "simultaneousConvergence"}),
    "selectionDivergence": frozenset({"step", "selectionDivergence", "simultaneousConvergence"}),
    "selectionConvergence": frozenset({"transition", "selectionConvergence"}),
    "simultaneousDivergence": frozenset({"transition", "selectionConvergence", "simultaneousDivergence"}),
    "simultaneousConvergence": frozenset({"step", "selectionDivergence", "simultaneousConvergence"}),
    "actionBlock": frozenset({"step"}),
}
"""What may stand before an element (IEC 61131-3, 6.7.5): steps and transitions alternate."""
_MANY_INPUTS: Final = frozenset({"step", "jumpStep", "actionBlock"}) | CONVERGENCES
"""Elements whose inputs may have several connections; a convergence has one input for each path."""
MAX_ENDS: Final = 200_000
"""Most steps before and after all transitions together."""


class Parallel(Struct, frozen=True):
    """The paths that a transition enters together; `name` is that of the divergence, if any."""

    paths: tuple[Entry, ...]
    name: str


Entry: TypeAlias = int | Parallel
"""The localId of a step, or paths."""


class ChartArc(Struct, frozen=True):
    """A transition with the localIds of the steps before it, and what it enters."""

    transition: PlcElement
    sources: tuple[int, ...]
    entry: Entry


def steps_of(entry: Entry) -> Iterator[int]:
    """Yield the localIds of the steps that are entered."""
    match entry:
        case Parallel(paths=paths):
            for path in paths:
                yield from steps_of(path)
        case step:
            yield step


class ChartReader:
    """Follows connections; each element that does not fit is a fault."""

    def __init__(self, elements: Mapping[int, PlcElement], faults: list[PlcFinding]) -> None:
        self._elements = elements
        self._faults = faults
        self._before: dict[int, tuple[int, ...]] = {}
        self._after: dict[int, list[PlcElement]] = {}
        self._names: dict[str, int] = {}
        self._entries: dict[int, Entry | None] = {}
        self._sources: dict[int, tuple[int, ...] | None] = {}
        self._size = 0
        jumps = (element for element in elements.values() if element.kind == "jumpStep")
        self._targets = frozenset(element.node.get("targetName").upper() for element in jumps)

    def arcs(self) -> list[ChartArc]:
        """Return the transitions that are whole; append the faults of everything else."""
        self._connect()
        self._name()
        for element in self._elements.values():
            self._check_ends(element)
        arcs = []
        ends = 0
        for element in self._elements.values():
            if element.kind != "transition":
                continue
            sources, entry = self._steps_before(element), self._entered(element)
            if sources is None or entry is None:
                continue
            ends += len(sources) + sum(1 for _ in steps_of(entry))
            arcs.append(ChartArc(element, sources, entry))
            if ends > MAX_ENDS:
                break
        if max(ends, self._size) > MAX_ENDS:
            text = Text.of("the chart is too large: its transitions have more than {limit} ends", limit=MAX_ENDS)
            self._faults.append(PlcFinding(PlcPlace(), text))
        return arcs

    def _fault(self, element: PlcElement, text: Text) -> None:
        self._faults.append(PlcFinding(element.place, text))

    def _connect(self) -> None:
        for element in sorted_by_place(list(self._elements.values())):
            references = []
            for number in dict.fromkeys(number for pin in element.pins for number in pin):
                source = self._elements.get(number)
                if source is not None and (source.kind, element.kind) == ("jumpStep", "selectionConvergence"):
                    # CODESYS closes each path there, also one that ends with a jump.
                    continue
                if source is None:
                    self._fault(element, Text.of("connected to localId {id}, which is not there", id=number))
                elif source.kind not in _BEFORE.get(element.kind, frozenset()):
                    text = Text.of(
                        "{kind} {id} cannot stand directly before {element}",
                        kind=source.kind,
                        id=number,
                        element=element.kind,
                    )
                    self._fault(element, text)
                else:
                    references.append(number)
                    if element.kind in FLOW:
                        self._after.setdefault(number, []).append(element)
            if len(references) > 1 and element.kind not in _MANY_INPUTS:
                self._fault(element, Text.of("{kind} has several connections before it", kind=element.kind))
            if element.kind == "simultaneousConvergence" and any(len(pin) > 1 for pin in element.pins):
                self._fault(element, Text.of("each path of {kind} needs an input of its own", kind=element.kind))
            self._before[element.local_id] = tuple(references)
            if codesys_attributes(element.node).get(CODESYS_EXCLUDED, "").upper() == "TRUE":
                self._fault(element, Text.of("the element is excluded from the build: remove it, or include it"))

    def _name(self) -> None:
        """Record what jumps may name: steps and simultaneous divergences."""
        for element in self._elements.values():
            name = element.node.get("name")
            if element.kind == "step" and not name:
                self._fault(element, Text.of("the step has no name"))
            elif element.kind in {"step", "simultaneousDivergence"} and name:
                first = self._names.setdefault(name.upper(), element.local_id)
                if first != element.local_id:
                    line = self._elements[first].place.line
                    self._fault(element, Text.of("the name stands in line {line}, too", line=line))

    def _check_ends(self, element: PlcElement) -> None:
        """Append a fault for an element with an end that leads nowhere."""
        node, kind = element.node, element.kind
        if kind not in _BEFORE and kind != "inVariable":
            return
        before = self._before[element.local_id]
        if kind == "step":
            if node.is_set("negated"):
                self._fault(element, Text.of("a negated {kind} is not carried over", kind=kind))
            if not before and not node.is_set("initialStep") and node.get("name").upper() not in self._targets:
                self._fault(element, Text.of("nothing leads to the step"))
            return
        if kind == "inVariable":
            for attribute in ("edge", "storage"):
                if node.get(attribute) not in {"", "none"}:
                    text = Text.of("the modifier {attribute} is not carried over", attribute=attribute)
                    self._fault(element, text)
            return
        priority = node.get("priority")
        if kind == "transition" and priority and not re.fullmatch(r"[0-9]{1,20}", priority):
            self._fault(element, Text.of("the priority {text!r} is not a number", text=cut(priority)))
        if not before and not any(element.pins):
            self._fault(element, Text.of("nothing is connected before {kind}", kind=kind))
        is_end = kind == "jumpStep" or (kind == "selectionConvergence" and not before)
        if kind in FLOW and not is_end and not self._after.get(element.local_id):
            self._fault(element, Text.of("nothing is connected after {kind}", kind=kind))

    def _steps_before(self, transition: PlcElement) -> tuple[int, ...] | None:
        """Return the steps before a transition; None where they is unclear, which is reported."""
        stack = [transition.local_id]
        waiting: set[int] = set()
        while stack:
            number = stack[-1]
            if number in self._sources:
                stack.pop()
                continue
            element, before = self._elements[number], self._before[number]
            if element.kind == "step":
                self._sources[number] = (number,)
            elif number in waiting:
                parts = [self._sources[other] for other in before]
                whole = [part for part in parts if part is not None]
                steps = tuple(dict.fromkeys(step for part in whole for step in part))
                self._size += len(steps)
                is_whole = steps and len(whole) == len(parts) and self._size <= MAX_ENDS
                self._sources[number] = steps if is_whole else None
            else:
                waiting.add(number)
                if any(other in waiting and other not in self._sources for other in before):
                    self._fault(element, Text.of("the connections form a circle without a step"))
                    self._sources[number] = None
                else:
                    stack += before
        return self._sources[transition.local_id]

    def _entered(self, producer: PlcElement, depth: int = 0) -> Entry | None:
        """Return what a transition or a path enters; None where it is unclear, which is reported."""
        consumers = self._after.get(producer.local_id, [])
        passed = {producer.local_id}
        while len(consumers) == 1 and consumers[0].kind == "selectionConvergence":
            convergence = consumers[0]
            if convergence.local_id in passed:
                self._fault(convergence, Text.of("the connections form a circle without a step"))
                return None
            passed.add(convergence.local_id)
            consumers = self._after.get(convergence.local_id, [])
        if len(consumers) > 1:
            text = Text.of("several elements follow without a divergence: {ids}", ids=_identifiers(consumers))
            self._fault(producer, text)
        return self._target(consumers[0], depth) if len(consumers) == 1 else None

    def _target(self, consumer: PlcElement, depth: int) -> Entry | None:
        match consumer.kind:
            case "step":
                return consumer.local_id
            case "jumpStep":
                name = consumer.node.get("targetName")
                target = self._names.get(name.upper())
                if target is None:
                    self._fault(consumer, Text.of("the jump names {name!r}, which is not a step", name=cut(name)))
                    return None
                return self._target(self._elements[target], depth)
            case "simultaneousDivergence":
                return self._parallel(consumer, depth)
            case _:
                return None

    def _parallel(self, divergence: PlcElement, depth: int) -> Entry | None:
        number = divergence.local_id
        if number not in self._entries:
            self._entries[number] = None
            if depth >= MAX_NESTING:
                self._fault(divergence, Text.of("parallel paths are nested deeper than {limit}", limit=MAX_NESTING))
                return None
            paths = [self._target(consumer, depth + 1) for consumer in self._after.get(number, [])]
            whole = tuple(path for path in paths if path is not None)
            if whole and len(whole) == len(paths):
                name = divergence.node.get("name")
                self._entries[number] = Parallel(whole, name) if len(whole) > 1 else whole[0]
        return self._entries[number]


def _identifiers(elements: list[PlcElement]) -> str:
    return cut(", ".join(str(element.local_id) for element in elements))
