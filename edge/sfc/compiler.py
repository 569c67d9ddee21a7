"""Compiles a checked recipe into a net with its indexes."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.expression.compiler import Expression
from edge.expression.syntax import ExpressionSyntaxError
from edge.foundation.text import Text, as_text, join_texts
from edge.model.recipe import UNREADABLE, Action, Interaction, Intervention, Recipe, Step, parse_recipe
from edge.sfc.check import (
    evolution_faults,
    lock_faults,
    lock_warnings,
    needed_by_step,
    part_faults,
    safety_faults,
    shape_faults,
    timeouts_by_step,
    warnings_of,
)
from edge.sfc.condition import NO_IDENTIFIERS, Condition, Identifiers, Names, compile_condition, compile_verdict
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import HELPS_A_FAILURE, QUALIFIER_RULES, Net, NetAction, NetStep, NetTransition
from edge.sfc.structure import Structure, TooManyWaysError


class RejectedRecipe(Struct, frozen=True):
    """An invalid recipe with all its faults."""

    texts: tuple[Text, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the faults in English."""
        return tuple(map(str, self.texts))


RecipeCheck: TypeAlias = Callable[[Recipe], Iterable[str | Text]]
"""Returns the faults that a kind of equipment finds in a recipe, such as those of its parameters."""


def compile_recipe(
    data: object, identifiers: Identifiers = NO_IDENTIFIERS, checks: Sequence[RecipeCheck] = ()
) -> Net | RejectedRecipe:
    """Compile decoded JSON to a net, or return all its faults, with those that `checks` find."""
    recipe, form = parse_recipe(data)
    if recipe is None:
        return RejectedRecipe(form)
    shape = shape_faults(recipe)
    actions = _actions(recipe)
    conditions = _condition_faults(recipe, actions)
    faults = [*form, *shape, *part_faults(recipe), *conditions.values()]
    faults += [as_text(fault) for check in checks for fault in check(recipe)]
    if shape:
        return RejectedRecipe(tuple(faults))
    structure = Structure(_with_placeholders(recipe, conditions))
    faults += safety_faults(structure)
    try:
        transitions = _transitions(structure, actions, identifiers)
    except TooManyWaysError as error:
        faults.append(Text.of("{reason}: its selections multiply to more ways than can be followed", reason=error))
        return RejectedRecipe(tuple(faults))
    faults += evolution_faults(structure, transitions)
    faults += lock_faults(structure, transitions)
    verdict = _verdict(recipe, actions, identifiers)
    if isinstance(verdict, Text):
        faults.append(verdict)
    if faults or isinstance(verdict, Text):
        return RejectedRecipe(tuple(faults))
    return replace(_net(structure, actions, transitions), verdict=verdict)


def _verdict(recipe: Recipe, actions: tuple[NetAction, ...], identifiers: Identifiers) -> Expression | Text | None:
    """Return the compiled verdict, or its fault; None for a recipe without one."""
    if recipe.verdict is msgspec.UNSET:
        return None
    names = Names(frozenset(step.name for step in recipe.steps), _keys_by_name(actions), identifiers)
    try:
        return compile_verdict(recipe.verdict, names)
    except ExpressionSyntaxError as error:
        return Text.of("verdict {verdict!r}: {reason}", verdict=recipe.verdict[:80], reason=error)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _actions(recipe: Recipe) -> tuple[NetAction, ...]:
    counter: Counter[tuple[str, str]] = Counter()
    net_actions = []
    for index, action in enumerate(recipe.actions):
        counter[action.name, action.step] += 1
        key = AssociationKey(action.name, action.step, counter[action.name, action.step])
        net_actions.append(_action(index, action, key, _allowed(recipe, action)))
    return tuple(net_actions)


def _allowed(recipe: Recipe, part: Action | Step) -> frozenset[Intervention]:
    """Return the interventions allowed at a step or action: its own list, else that of the recipe."""
    own = part.interventions
    return frozenset(recipe.interventions if own is msgspec.UNSET else own)


def _action(index: int, action: Action, key: AssociationKey, interventions: frozenset[Intervention]) -> NetAction:
    rule = QUALIFIER_RULES[action.qualifier]
    return NetAction(
        key=key,
        index=index,
        name=action.name,
        step=action.step,
        qualifier=action.qualifier,
        rule=rule,
        type_id=action.type_id,
        pull=action.interaction is Interaction.PULL_EVENT,
        timeout_ms=_milliseconds(action.timeout_seconds),
        duration_ms=max(1, _milliseconds(action.duration_seconds)) if rule.timed else 0,
        parameters=action.parameters,
        interventions=interventions,
    )


def _keys_by_name(actions: Iterable[NetAction]) -> dict[str, tuple[AssociationKey, ...]]:
    found: dict[str, list[AssociationKey]] = {}
    for action in actions:
        found.setdefault(action.name, []).append(action.key)
    return {name: tuple(keys) for name, keys in found.items()}


def _condition_faults(recipe: Recipe, actions: tuple[NetAction, ...]) -> dict[int, Text]:
    """Return the fault of each transition whose condition is refused."""
    names = Names(frozenset(step.name for step in recipe.steps), _keys_by_name(actions), {})
    found = {}
    for number, transition in enumerate(recipe.transitions):
        try:
            compile_condition(transition.condition, names)
        except ExpressionSyntaxError as error:
            fault = Text.of("condition {condition!r}: {reason}", condition=transition.condition[:80], reason=error)
            place = f"transitions[{number}] ({transition.source} → {transition.target})"
            found[number] = join_texts(": ", (place, fault))
    return found


def _with_placeholders(recipe: Recipe, faulty: Container[int]) -> Recipe:
    """Replace faulty conditions by a name without value, to search for further faults."""
    transitions = tuple(
        replace(transition, condition=UNREADABLE) if number in faulty else transition
        for number, transition in enumerate(recipe.transitions)
    )
    return replace(recipe, transitions=transitions)


def _transitions(
    structure: Structure, actions: tuple[NetAction, ...], identifiers: Identifiers
) -> tuple[NetTransition, ...]:
    steps = frozenset(step.name for step in structure.recipe.steps)
    every = _keys_by_name(actions)
    in_step: dict[str, list[NetAction]] = {}
    for action in actions:
        in_step.setdefault(action.step, []).append(action)
    states = {step: {action.name for action in mine} for step, mine in in_step.items()}
    owners = {action.step for action in actions if len(every[action.name]) > 1}
    compiled: dict[tuple[str, tuple[str, ...]], Condition] = {}
    names: dict[tuple[str, ...], Names] = {}
    locks = needed_by_step(structure)
    net_transitions = []
    for index, arc in enumerate(structure.arcs):
        own = tuple(source for source in arc.sources if source in owners)
        if own not in names:
            # An action of a source step means that association, whatever other steps it stands in.
            near = sorted((action for step in own for action in in_step[step]), key=lambda action: action.index)
            names[own] = Names(steps, ChainMap(_keys_by_name(near), every), identifiers)
        for text in arc.conditions:
            if (text, own) not in compiled:
                compiled[text, own] = compile_condition(text, names[own])
        conditions = tuple(
            condition for text in arc.conditions if (condition := compiled[text, own]).constant is not True
        )
        live = {
            source
            for source in arc.sources
            for condition in conditions
            if source in condition.timed_steps or condition.state_actions & states.get(source, set())
        }
        needs_done = tuple(source for source in arc.sources if source not in live)
        needed = frozenset[str]().union(*(locks[target] for target in arc.targets))
        net_transitions.append(
            NetTransition(index, arc.sources, arc.targets, conditions, needs_done, arc.place, needed, arc.rank[1])
        )
    return tuple(net_transitions)


def _outgoing(recipe: Recipe, transitions: Iterable[NetTransition]) -> dict[str, list[NetTransition]]:
    """Return the transitions that leave each step, by rank."""
    outgoing: dict[str, list[NetTransition]] = {step.name: [] for step in recipe.steps}
    for transition in transitions:
        for source in transition.sources:
            outgoing[source].append(transition)
    return outgoing


def _sources(transitions: Iterable[NetTransition], has: Callable[[Condition], bool]) -> frozenset[str]:
    """Return the sources of the transitions with such a condition."""
    return frozenset(
        source for transition in transitions if any(map(has, transition.conditions)) for source in transition.sources
    )


def _net(structure: Structure, actions: tuple[NetAction, ...], transitions: tuple[NetTransition, ...]) -> Net:
    recipe = structure.recipe
    in_step: dict[str, list[NetAction]] = {step.name: [] for step in recipe.steps}
    starting: dict[str, list[NetAction]] = {}
    resetting: dict[str, list[NetAction]] = {}
    pulling: dict[str, list[NetAction]] = {}
    for action in actions:
        in_step[action.step].append(action)
        (resetting if action.rule.resets else starting).setdefault(action.name, []).append(action)
        if action.pull:
            pulling.setdefault(action.type_id, []).append(action)
    outgoing = _outgoing(recipe, transitions)
    conditional = [transition for transition in transitions if transition.conditions]
    locks, timeouts = needed_by_step(structure), timeouts_by_step(structure)
    initial = next(step.name for step in recipe.steps if step.initial)
    return Net(
        recipe=recipe,
        source=msgspec.json.encode(recipe).decode(),
        warning_texts=(*warnings_of(structure, transitions), *lock_warnings(structure)),
        initial=initial,
        entry=NetTransition(-1, (), (initial,), (), (), "the start", locks[initial]),
        steps={
            step.name: NetStep(
                index=index,
                name=step.name,
                actions=tuple(in_step[step.name]),
                # A reset dominates a set in the same step (IEC 61131-3, 6.7.4.5).
                entering=tuple(sorted(in_step[step.name], key=lambda action: action.rule.resets)),
                holding=tuple(action.key for action in in_step[step.name] if action.rule.holds),
                outgoing=tuple(outgoing[step.name]),
                interventions=_allowed(recipe, step),
                locks=locks[step.name],
                lock_timeout_ms=_milliseconds(timeouts[step.name]),
            )
            for index, step in enumerate(recipe.steps)
        },
        transitions=transitions,
        actions={action.key: action for action in actions},
        starting={name: tuple(mine) for name, mine in starting.items()},
        resetting={name: tuple(mine) for name, mine in resetting.items()},
        pulling={type_id: tuple(mine) for type_id, mine in pulling.items()},
        sensitive=_sources(conditional, lambda _: True),
        timed=_sources(conditional, lambda condition: bool(condition.wakes)),
        unsteady=_sources(conditional, lambda condition: not condition.is_steady),
        terminal=frozenset(name for name, mine in outgoing.items() if not mine),
        locking=frozenset(
            source
            for transition in transitions
            if not transition.locks.issubset(lock for source in transition.sources for lock in locks[source])
            for source in transition.sources
        ),
        held=frozenset(action.key for action in actions if action.interventions & HELPS_A_FAILURE),
        command_types=frozenset(action.type_id for action in actions if not action.pull),
        mirrors=frozenset().union(*(net_transition.mirrors for net_transition in transitions)),
    )
