"""Findings about what no run of a recipe does: transitions, steps and actions that nothing ever comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from edge.features.recipes.exploration import Exploration, explore
from edge.features.recipes.finding import ElementType, FindingKind, RecipeElement, RecipeFinding, finding
from edge.features.recipes.footprint import names_of_state
from edge.features.recipes.witness import script_to
from edge.foundation.text import Text, join_texts
from edge.sfc.net import Net, NetTransition
from edge.sfc.structure import Structure

_FIRST = -2
"""The rank of a transition before all others, also before the entry of the recipe."""


class _Runs(Struct, frozen=True):
    """What runs do, also with the help of people."""

    cleared: frozenset[int]
    activated: frozenset[str]
    completed: frozenset[object]


def gap_findings(exploration: Exploration) -> Iterator[RecipeFinding]:
    """Yield a finding for each transition, step and action that no run comes to, apart from their consequences."""
    if not exploration.is_complete:
        return
    net = exploration.net
    seen = _Runs(frozenset(exploration.cleared), frozenset(exploration.activated), frozenset(exploration.completed))
    has_gap = len(seen.cleared) < len(net.transitions) or exploration.cut - exploration.completed
    if has_gap and _lets_people_intervene(net):
        helped = explore(net, people=True)
        if not helped.is_complete:
            return
        seen = _Runs(
            seen.cleared | helped.cleared, seen.activated | helped.activated, seen.completed | helped.completed
        )
    yield from _Gaps(exploration, seen).findings()
    yield from _cut_off(exploration, seen)


def _lets_people_intervene(net: Net) -> bool:
    return any(step.interventions for step in net.steps.values()) or any(
        action.interventions for action in net.actions.values()
    )


class _Gaps:
    def __init__(self, exploration: Exploration, seen: _Runs) -> None:
        self._net = exploration.net
        self._exploration = exploration
        self._seen = seen
        arcs = Structure(self._net.recipe).arcs
        order = len(self._net.recipe.transitions)
        self._written = {number: [n for n in arc.rank[1::2] if n < order] for number, arc in enumerate(arcs)}
        """The written transitions of each transition of the net."""
        self._dead = {still.step for still in exploration.standstills if not still.depends_on_data}

    def findings(self) -> Iterator[RecipeFinding]:
        """Yield the transitions first, then the steps to which none of them leads."""
        silent = [
            transition
            for transition in self._net.transitions
            if transition.index not in self._seen.cleared and self._could_clear(transition)
        ]
        explained: set[str] = set()
        never_true: list[NetTransition] = []
        reported: set[int] = set()
        for transition in silent:
            hider = self._hider(transition)
            if hider is None and not self._limited(transition) and set(transition.targets) - self._seen.activated:
                never_true.append(transition)
                continue
            written = [number for number in self._written[transition.index] if not self._clears(number)]
            explained.update(transition.targets)
            for number in written:
                if number not in reported:
                    reported.add(number)
                    yield self._shown(self._never_clears(number, transition, hider), transition.sources)
                break
            else:
                explained.difference_update(transition.targets)
                never_true.append(transition)
        yield from self._never_reached(never_true, explained)

    def _could_clear(self, transition: NetTransition) -> bool:
        """Return whether its sources are active together in some run, and are not what stands still."""
        sources = frozenset(transition.sources)
        if sources & self._dead:
            return False
        if len(sources) == 1:
            return sources <= self._seen.activated
        return any(sources <= active for active in self._exploration.enabled)

    def _clears(self, number: int) -> bool:
        """Return whether a written transition is part of one that clears."""
        return any(number in self._written[index] for index in self._seen.cleared)

    def _hider(self, transition: NetTransition) -> NetTransition | None:
        """Return the transition that is taken instead; None when the condition is never true."""
        sources = set(transition.sources)
        rivals = [
            rival
            for rival in self._net.transitions
            if rival.index in self._seen.cleared and sources & set(rival.sources) and rival.index < transition.index
        ]
        return rivals[-1] if rivals and _FIRST in explore(_with_first(self._net, transition)).cleared else None

    def _limited(self, transition: NetTransition) -> bool:
        """Return whether it asks for the time in its own step, or for a time limit."""
        return any(
            ((kind, prop) == ("steps", "T") and name in transition.sources) or prop == "timed_out"
            for kind, name, prop in names_of_state(transition)
        )

    def _never_clears(self, number: int, transition: NetTransition, hider: NetTransition | None) -> RecipeFinding:
        written = self._net.recipe.transitions[number]
        name = f"{written.source} → {written.target}"
        element = RecipeElement(ElementType.TRANSITION, name, number)
        unlimited = [
            action
            for kind, action, prop in names_of_state(transition)
            if prop == "timed_out" and not any(item.timeout_ms for item in self._net.starting.get(action, ()))
        ]
        if hider is not None:
            other = self._written_label(hider, transition)
            return finding(
                FindingKind.NEVER_CLEARS,
                element,
                Text.of("transition {name}: no run takes it, {other} always comes first", name=name, other=other),
                Text.of(
                    "Set the priority number of {name} below that of {other}, list it before, or remove it.",
                    name=name,
                    other=other,
                ),
            )
        if unlimited:
            return finding(
                FindingKind.NEVER_CLEARS,
                element,
                Text.of(
                    "transition {name}: no run takes it, action {action} has no time limit",
                    name=name,
                    action=unlimited[0],
                ),
                Text.of("Set timeout_seconds of action {action}, or remove {name}.", name=name, action=unlimited[0]),
            )
        if self._limited(transition):
            return finding(
                FindingKind.NEVER_CLEARS,
                element,
                Text.of("transition {name}: no run takes it, its step is left or the job has failed before", name=name),
                Text.of("Compare with a time below the time limits of the step, or remove {name}.", name=name),
            )
        return finding(
            FindingKind.NEVER_CLEARS,
            element,
            Text.of(
                "transition {name}: no run takes it, its condition is never true: {condition}",
                name=name,
                condition=transition.text,
            ),
            Text.of("Correct the condition, or remove {name}.", name=name),
        )

    def _written_label(self, hider: NetTransition, hidden: NetTransition) -> str:
        """Return the written transition that distinguishes the one taken from the hidden one."""
        own = [number for number in self._written[hider.index] if number not in self._written[hidden.index]]
        if not own:
            return _label(hider)
        written = self._net.recipe.transitions[own[0]]
        return f"{written.source} → {written.target}"

    def _never_reached(self, transitions: Sequence[NetTransition], explained: set[str]) -> Iterator[RecipeFinding]:
        reported: set[str] = set()
        for transition in transitions:
            missing = [name for name in transition.targets if name not in self._seen.activated]
            if not missing or explained.union(reported).intersection(missing):
                continue
            reported.update(missing)
            step = missing[0]
            ways = [way for way in transitions if step in way.targets]
            conditions = join_texts(
                ", ", (Text.of("{way} [{condition}]", way=_label(way), condition=way.text or "always") for way in ways)
            )
            reached = finding(
                FindingKind.NEVER_REACHED,
                RecipeElement(ElementType.STEP, step, self._net.steps[step].index),
                Text.of(
                    "step {step}: no run reaches it, its ways in are never true: {ways}", step=step, ways=conditions
                ),
                Text.of("Correct the conditions of the ways to {step}, or remove the step.", step=step),
            )
            yield self._shown(reached, transition.sources)

    def _shown(self, item: RecipeFinding, steps: Sequence[str]) -> RecipeFinding:
        """Return a finding with the script of a run that leaves these steps by another way."""
        return replace(item, script=_script_of_leaving(self._exploration, steps))


def _script_of_leaving(exploration: Exploration, steps: Sequence[str]) -> dict[str, Any] | None:
    """Return the script of the shortest run that leaves steps; None where no run does, or no script can."""
    for state in exploration.states:
        run = state.run
        if all(name in run.steps and run.steps[name].count and not run.steps[name].active for name in steps):
            return script_to(exploration, state)
    return None


def _label(transition: NetTransition) -> str:
    return f"{', '.join(transition.sources)} → {', '.join(transition.targets)}"


def _with_first(net: Net, first: NetTransition) -> Net:
    """Return a net in which a transition comes before all others."""
    moved = replace(first, index=_FIRST)
    steps = dict(net.steps)
    for source in first.sources:
        others = (item for item in net.steps[source].outgoing if item.index != first.index)
        steps[source] = replace(net.steps[source], outgoing=(moved, *others))
    transitions = (moved, *(item for item in net.transitions if item.index != first.index))
    return replace(net, steps=steps, transitions=transitions)


def _cut_off(exploration: Exploration, seen: _Runs) -> Iterator[RecipeFinding]:
    """Yield the actions that begin, and that no run completes."""
    net = exploration.net
    for key, action in net.actions.items():
        if key not in exploration.cut or key in seen.completed:
            continue
        cut = finding(
            FindingKind.WORK_CUT_OFF,
            RecipeElement(ElementType.ACTION, action.name, action.index),
            Text.of(
                "action {action} of step {step}: no run completes it, the step is always left before",
                action=action.name,
                step=action.step,
            ),
            Text.of(
                "Let the exits of {step} wait for actions.{action}.done, or for a longer time.",
                action=action.name,
                step=action.step,
            ),
        )
        yield replace(cut, script=_script_of_leaving(exploration, (action.step,)))
