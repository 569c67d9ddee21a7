"""Writes the elements of a chart: steps, transitions, divergences, convergences, jumps and action blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from edge.drawing.reading import Fork, Item, StepBlock, read_chart
from edge.drawing.shapes import Frame, ShapeRole
from edge.drawing.sheet import draw
from edge.features.recipes.plcopen.names import NameGiver, PlcNames
from edge.model.recipe import Action, Recipe
from edge.sfc.net import QUALIFIER_RULES
from edge.sfc.structure import Arc, Structure

_CELL_WIDTH: Final = 8
_CELL_HEIGHT: Final = 20
Steps: TypeAlias = tuple[str, ...]


def places_of(recipe: Recipe) -> dict[str, tuple[int, int]]:
    """Return where our drawing of a recipe has each step, in the units of the file."""
    chart = read_chart(recipe)
    names = [name for piece in chart.pieces for name in _names(piece)]
    roles = {ShapeRole.STEP, ShapeRole.INITIAL}
    frames = [shape for shape in draw(chart, "", None).shapes if isinstance(shape, Frame) and shape.role in roles]
    return {name: (frame.x * _CELL_WIDTH, frame.y * _CELL_HEIGHT) for name, frame in zip(names, frames, strict=True)}


def _names(items: Sequence[Item]) -> Iterator[str]:
    """Yield the names of steps in the order in which they are drawn."""
    for item in items:
        match item:
            case StepBlock(name=name):
                yield name
            case Fork(legs=legs):
                for leg in legs:
                    yield from _names(leg.items)
            case _:
                pass


class ChartWriter:
    """Writes each element once; its localId is its number."""

    def __init__(
        self,
        recipe: Recipe,
        arcs: Sequence[Arc],
        names: PlcNames,
        conditions: Mapping[str, str],
        giver: NameGiver,
    ) -> None:
        self._recipe = recipe
        self._arcs = arcs
        self._names = names
        self._conditions = conditions
        self._giver = giver
        self._diverged: set[str] = set()
        self._actions: dict[str, list[Action]] = {}
        for action in recipe.actions:
            self._actions.setdefault(action.step, []).append(action)
        self._structure = Structure(recipe)
        self._places = places_of(recipe)
        self._ids = {step.name: number for number, step in enumerate(recipe.steps, 1)}
        self._next = len(self._ids)
        self._lines: list[str] = []
        self._inputs: dict[str, list[int]] = {step.name: [] for step in recipe.steps}
        self._leaving: dict[Steps, list[int]] = {}
        for number, arc in enumerate(arcs):
            self._leaving.setdefault(arc.sources, []).append(number)
        self._entering: dict[Steps, list[int]] = {}
        for number, arc in enumerate(arcs):
            self._entering.setdefault(arc.targets, []).append(number)
        self._outputs: dict[str, int] = {}
        self._transitions: dict[int, int] = {}

    def lines(self) -> Iterator[str]:
        """Yield the elements, steps first."""
        self._write_exits()
        self._write_entries()
        yield from (line for step in self._recipe.steps for line in self._step(step.name, initial=step.initial))
        yield from self._lines

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _add(self, kind: str, place: tuple[int, int], *inputs: int, content: str = "", **attributes: str) -> int:
        """Write an element with an input for each element before it; return its localId."""
        number = self._number()
        self._lines.append(_element(kind, number, place, inputs, content, attributes))
        return number

    def _write_exits(self) -> None:
        """Write the transitions behind their steps, divergences and convergences."""
        consumers: dict[str, int] = {}
        for sources, numbers in self._leaving.items():
            for step in sources:
                consumers[step] = consumers.get(step, 0) + (len(numbers) if len(sources) == 1 else 1)
        for step, count in consumers.items():
            self._outputs[step] = self._ids[step]
            if count > 1:
                self._outputs[step] = self._add("selectionDivergence", self._below((step,), 1), self._ids[step])
        priorities = self._priorities()
        for sources, numbers in self._leaving.items():
            output = self._converge(sources)
            if len(sources) > 1 and len(numbers) > 1:
                output = self._add("selectionDivergence", self._below(sources, 2), output)
            for place, number in enumerate(numbers):
                x, y = self._below(sources, 3)
                self._transitions[number] = self._transition(number, output, (x + 40 * place, y), priorities)

    def _transition(self, number: int, output: int, place: tuple[int, int], priorities: Mapping[int, int]) -> int:
        texts = [text for condition in self._arcs[number].conditions if (text := self._conditions[condition])]
        text = texts[0] if len(texts) == 1 else " AND ".join(f"({part})" for part in texts) or "TRUE"
        condition = f'<condition><inline name=""><ST><xhtml:p>{escape(text)}</xhtml:p></ST></inline></condition>'
        attributes = {"priority": str(priorities[number])} if number in priorities else {}
        return self._add("transition", place, output, content=condition, **attributes)

    def _priorities(self) -> dict[int, int]:
        """Return the order of the transitions that compete for a step with others."""
        rivals: dict[str, int] = {}
        for arc in self._arcs:
            for step in arc.sources:
                rivals[step] = rivals.get(step, 0) + 1
        return {
            number: number for number, arc in enumerate(self._arcs) if any(rivals[step] > 1 for step in arc.sources)
        }

    def _below(self, steps: Steps, rows: int) -> tuple[int, int]:
        """Return a place below steps, some rows of text further down."""
        places = [self._places[step] for step in steps]
        return min(x for x, _ in places), max(y for _, y in places) + (3 + rows) * _CELL_HEIGHT

    def _converge(self, sources: Steps) -> int:
        """Return the element at which the activity of steps ends together, as their branches are nested."""
        if len(sources) == 1:
            return self._outputs[sources[0]]
        inputs = [self._converge(group) for group in self._groups(sources)]
        return self._add("simultaneousConvergence", self._below(sources, 2), *inputs)

    def _groups(self, steps: Steps) -> list[Steps]:
        """Return steps by the path of the outermost branch in which they are apart."""
        chains = {step: self._structure.chain(step) for step in steps}
        depth = next(level for level, pairs in enumerate(zip(*chains.values(), strict=False)) if len(set(pairs)) > 1)
        groups: dict[tuple[str, int], list[str]] = {}
        for step, chain in chains.items():
            groups.setdefault(chain[depth], []).append(step)
        return [tuple(group) for group in groups.values()]

    def _write_entries(self) -> None:
        """Connect each transition with what it enters: from above by a line, from below by a jump."""
        for targets, numbers in self._entering.items():
            top = min(self._places[step][1] for step in targets)
            back = [number for number in numbers if self._is_below(number, top)]
            if len(back) == len(numbers) and len(targets) > 1:
                back = []
            forward = [self._transitions[number] for number in numbers if number not in set(back)]
            place = (self._places[targets[0]][0], top - 2 * _CELL_HEIGHT)
            if len(forward) > 1:
                forward = [self._add("selectionConvergence", place, *forward)]
            name = self._names.steps[targets[0]]
            if len(targets) > 1:
                name = self._divergence_name(targets)
                self._diverge(targets, place, forward[0], name)
            else:
                self._inputs[targets[0]] += forward
            for number in back:
                self._add(
                    "jumpStep", self._below(self._arcs[number].sources, 4), self._transitions[number], targetName=name
                )

    def _is_below(self, number: int, top: int) -> bool:
        return all(self._places[step][1] >= top for step in self._arcs[number].sources)

    def _divergence_name(self, targets: Steps) -> str:
        """Return the name of the branch that is entered; another one where there are several ways into it."""
        pairs = zip(*map(self._structure.chain, targets), strict=False)
        branch = next(level[0][0] for level in pairs if len(set(level)) > 1)
        name = self._names.branches[branch]
        if branch in self._diverged:
            return self._giver.name(name)
        self._diverged.add(branch)
        return name

    def _diverge(self, targets: Steps, place: tuple[int, int], before: int, name: str = "") -> None:
        attributes = {"name": name} if name else {}
        number = self._add("simultaneousDivergence", place, before, **attributes)
        for group in self._groups(targets):
            if len(group) == 1:
                self._inputs[group[0]].append(number)
            else:
                self._diverge(group, place, number)

    def _step(self, name: str, *, initial: bool) -> Iterator[str]:
        attributes = {"name": self._names.steps[name]} | ({"initialStep": "true"} if initial else {})
        yield _element("step", self._ids[name], self._places[name], self._inputs[name], "", attributes)
        actions = self._actions.get(name)
        if actions:
            x, y = self._places[name]
            content = "".join(map(self._action, actions))
            yield _element("actionBlock", self._number(), (x + 200, y), [self._ids[name]], content, {})

    def _action(self, action: Action) -> str:
        duration = ""
        if QUALIFIER_RULES[action.qualifier].timed:
            duration = f' duration="T#{Decimal(repr(action.duration_seconds)).normalize():f}s"'
        reference = f"<reference name={quoteattr(self._names.actions[action.name])}/>"
        attributes = f'localId="{self._number()}" qualifier="{action.qualifier.value}"{duration}'
        return f'<action {attributes}><relPosition x="0" y="0"/>{reference}</action>'


def _element(
    kind: str, number: int, place: tuple[int, int], inputs: Sequence[int], content: str, attributes: Mapping[str, str]
) -> str:
    """Return an element as the schema orders its parts."""
    words = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    connections = [f'<connection refLocalId="{before}"/>' for before in inputs]
    if not kind.endswith("Convergence"):
        connections = ["".join(connections)] if connections else []
    pins = "".join(f"<connectionPointIn>{connection}</connectionPointIn>" for connection in connections)
    output = {
        "step": '<connectionPointOut formalParameter=""/>',
        "selectionDivergence": '<connectionPointOut formalParameter=""/>',
        "simultaneousDivergence": '<connectionPointOut formalParameter=""/>',
        "actionBlock": "",
        "jumpStep": "",
    }.get(kind, "<connectionPointOut/>")
    start = f'<{kind} localId="{number}"{words}><position x="{place[0]}" y="{place[1]}"/>'
    return f"{start}{pins}{output}{content}</{kind}>"
