"""Checks the locks of a recipe: all jobs acquire them in alphabetical order, so that they cannot block each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge.sfc.qualifier import QUALIFIER_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edge.model.recipe import Action, Branch, Step
    from edge.sfc.net import NetTransition
    from edge.sfc.structure import Structure


def needed_by_step(structure: Structure) -> dict[str, frozenset[str]]:
    """Return the locks of each step: its own and those of the branches around it."""
    found = {}
    for step in structure.recipe.steps:
        around = (each.lock for each in structure.branches_around(step.name))
        found[step.name] = frozenset(step.lock).union(*around)
    return found


def timeouts_by_step(structure: Structure) -> dict[str, float]:
    """Return the longest wait for the locks of each step in seconds: its own, else that of the innermost branch."""
    found: dict[str, float] = {}
    for step in structure.recipe.steps:
        places: tuple[Step | Branch, ...] = (step, *structure.branches_around(step.name))
        found[step.name] = next((each.lock_timeout_seconds for each in places if each.lock_timeout_seconds), 0)
    return found


def lock_faults(structure: Structure, transitions: Sequence[NetTransition]) -> Iterator[str]:
    """Yield transitions that acquire a lock while the job may hold one that comes after it, and useless timeouts."""
    recipe = structure.recipe
    parts: list[Step | Branch] = [*recipe.steps, *recipe.branches]
    for part in parts:
        if part.lock_timeout_seconds and not part.lock:
            yield f"{part.name!r}: lock_timeout_seconds without a lock"
    needed = needed_by_step(structure)
    if not any(needed.values()):
        return
    for transition in transitions:
        kept = frozenset[str]().union(*(needed[source] for source in transition.sources))
        acquired = transition.locks - kept
        if not acquired:
            continue
        beside = _active_beside(structure, transition.sources, needed)
        held = kept.union(*(needed[name] for name in beside))
        late = sorted((before, lock) for lock in acquired for before in held if before > lock)
        if late:
            before, lock = late[0]
            yield (
                f"{transition.place}: acquires lock {lock!r} while the job may hold {before!r}; locks are acquired in "
                f"alphabetical order: acquire {lock!r} together with {before!r}, or leave the steps of {before!r} first"
            )


def lock_warnings(structure: Structure) -> Iterator[str]:
    """Yield the stored actions that go on after a lock of their step is released."""
    needed = needed_by_step(structure)
    resets: dict[str, list[Action]] = {}
    for action in structure.recipe.actions:
        if QUALIFIER_RULES[action.qualifier].resets:
            resets.setdefault(action.name, []).append(action)
    for action in structure.recipe.actions:
        rule, locks = QUALIFIER_RULES[action.qualifier], needed[action.step]
        ends = resets.get(action.name, ())
        if rule.stored and locks and not any(locks <= needed[each.step] for each in ends):
            yield (
                f"action {action.name!r} of step {action.step!r} goes on after the step: "
                f"lock {', '.join(map(repr, sorted(locks)))} is released before its reset"
            )


def _active_beside(structure: Structure, sources: Sequence[str], needed: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the steps with locks that may be active together with all sources of a transition."""
    return {
        name
        for name, locks in needed.items()
        if locks and all(_are_parallel(structure.chain(name), structure.chain(source)) for source in sources)
    }


def _are_parallel(one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...]) -> bool:
    """Return whether two steps stand in different paths of a simultaneous branch."""
    paths = dict(one)
    return any(branch in paths and paths[branch] != path for branch, path in other)
