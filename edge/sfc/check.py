"""Finds every structural fault of a recipe, and locks whose jobs could wait for each other.

`shape_faults` checks names and nesting; only without these faults can the branches be unfolded, and then
`safety_faults` and `evolution_faults` check how the chart can evolve. Each fault is one sentence that names its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from edge.foundation.text import Text, join_texts
from edge.model.recipe import Action, Branch, BranchType, Interaction, Qualifier, Recipe, Step
from edge.sfc.net import QUALIFIER_RULES, NetTransition
from edge.sfc.structure import MAX_NESTING, Structure


def shape_faults(recipe: Recipe) -> list[Text]:
    """Return the faults of names, nesting and the ends of transitions: these faults make the meaning ambiguous."""
    return [*_name_faults(recipe), *_path_faults(recipe), *_end_faults(recipe)]


def part_faults(recipe: Recipe) -> list[Text]:
    """Return the faults of single steps and actions, which do not prevent the search for others."""
    return [*_initial_faults(recipe), *_action_faults(recipe)]


def _name_faults(recipe: Recipe) -> Iterator[Text]:
    names = Counter([step.name for step in recipe.steps] + [branch.name for branch in recipe.branches])
    for name, times in names.items():
        if times > 1:
            yield Text.of("the name {name!r} names {times} steps or branches", name=name, times=times)


def _initial_faults(recipe: Recipe) -> Iterator[Text]:
    initial = [step.name for step in recipe.steps if step.initial]
    if len(initial) != 1:
        if initial:
            yield Text.of(
                "exactly one step must be initial, not {count}: {names}", count=len(initial), names=", ".join(initial)
            )
        else:
            yield Text("exactly one step must be initial, not none")


def _path_faults(recipe: Recipe) -> Iterator[Text]:
    known = _names(recipe)
    places: dict[str, list[str]] = {}
    for branch in recipe.branches:
        if not branch.branches:
            yield Text.of("branch {branch!r} has no path", branch=branch.name)
        for number, path in enumerate(branch.branches):
            if not path:
                yield Text.of("branch {branch!r}: path {number} is empty", branch=branch.name, number=number)
            for name in path:
                places.setdefault(name, []).append(f"{branch.name}[{number}]")
                if name not in known:
                    yield Text.of(
                        "branch {branch!r}: path {number} names the unknown step or branch {name!r}",
                        branch=branch.name,
                        number=number,
                        name=name,
                    )
    for name, where in places.items():
        if len(where) > 1:
            yield Text.of("{name!r} stands in more than one path: {where}", name=name, where=", ".join(where))
    yield from _nesting_faults(recipe)


def _nesting_faults(recipe: Recipe) -> Iterator[Text]:
    """Yield cycles and excessive depth; walks outwards from each branch, so that any depth can be checked."""
    parent = {name: branch.name for branch in recipe.branches for path in branch.branches for name in path}
    reported: set[str] = set()
    for branch in recipe.branches:
        seen = [branch.name]
        while (outer := parent.get(seen[-1])) is not None and outer not in seen and len(seen) <= MAX_NESTING:
            seen.append(outer)
        if outer == branch.name and not reported.intersection(seen):
            reported.update(seen)
            yield Text.of(
                "branch {branch!r} contains itself: {nested}", branch=branch.name, nested=_nested([*seen, branch.name])
            )
        elif len(seen) > MAX_NESTING and not reported:
            reported.update(seen)
            yield Text.of(
                "branch {branch!r} is nested deeper than {max_nesting}", branch=branch.name, max_nesting=MAX_NESTING
            )


def _names(recipe: Recipe) -> set[str]:
    return {step.name for step in recipe.steps} | {branch.name for branch in recipe.branches}


def _end_faults(recipe: Recipe) -> Iterator[Text]:
    known = _names(recipe)
    for number, transition in enumerate(recipe.transitions):
        faults = []
        if (name := transition.source) not in known:
            faults.append(Text.of("unknown source {name!r}, no step or branch has this name", name=name))
        if (name := transition.target) not in known:
            faults.append(Text.of("unknown target {name!r}, no step or branch has this name", name=name))
        yield from (join_texts(": ", (_place_of(recipe, number), fault)) for fault in faults)


def _place(number: int, action: Action) -> str:
    return f"actions[{number}] ({action.name}, {action.qualifier} in {action.step})"


def _action_faults(recipe: Recipe) -> Iterator[Text]:
    steps = {step.name for step in recipe.steps}
    stored = {action.name for action in recipe.actions if QUALIFIER_RULES[action.qualifier].stored}
    timed = Counter(action.name for action in recipe.actions if QUALIFIER_RULES[action.qualifier].timed)
    for number, action in enumerate(recipe.actions):
        place, rule = _place(number, action), QUALIFIER_RULES[action.qualifier]
        if action.step not in steps:
            yield Text.of("{place}: unknown step {step!r}", place=place, step=action.step)
        if rule.timed and not action.duration_seconds > 0:
            yield Text.of(
                "{place}: qualifier {qualifier} needs a duration_seconds above 0",
                place=place,
                qualifier=action.qualifier,
            )
        if rule.resets and action.name not in stored:
            yield Text.of(
                "{place}: nothing to reset, no S, SD, DS or SL of action {action!r}", place=place, action=action.name
            )
        if action.qualifier is Qualifier.P0 and action.interaction is Interaction.PULL_EVENT:
            yield Text.of("{place}: P0 cannot wait for an event (pull_event), its step is left already", place=place)
    for name, times in timed.items():
        if times > 1:
            yield Text.of(
                "action {name!r} has {times} timed qualifiers; an action may have one", name=name, times=times
            )


def safety_faults(structure: Structure) -> Iterator[Text]:
    """Yield transitions that would lose or multiply activity, and an initial step inside a simultaneous path."""
    recipe = structure.recipe
    for step in recipe.steps:
        if step.initial and (chain := structure.chain(step.name)):
            yield Text.of(
                "the initial step {step!r} stands inside the simultaneous branch {chain!r}",
                step=step.name,
                chain=chain[-1][0],
            )
    for number, transition in enumerate(recipe.transitions):
        if structure.is_entry(number):
            continue
        source, target = structure.chain(transition.source), structure.chain(transition.target)
        if source != target:
            yield (
                Text.of(
                    "transitions[{number}] ({source} → {target}): unsafe, {source} is {where} and {target} is {place}",
                    number=number,
                    source=transition.source,
                    target=transition.target,
                    where=_where(source),
                    place=_where(target),
                )
            )


def _where(chain: Sequence[tuple[str, int]]) -> Text:
    if not chain:
        return Text("outside all simultaneous branches")
    paths = [Text.of("in path {number} of {name}", number=number, name=name) for name, number in reversed(chain)]
    return join_texts(" ", paths)


def _nested(names: Sequence[str]) -> str | Text:
    """Return names of branches, the inner one first."""
    nested: str | Text = names[0]
    for name in names[1:]:
        nested = Text.of("{before} in {name}", before=nested, name=name)
    return nested


def evolution_faults(structure: Structure, transitions: Sequence[NetTransition]) -> list[Text]:
    """Return the faults of evolution: unreachable steps, paths without end, loops without time."""
    recipe = structure.recipe
    initial = [step.name for step in recipe.steps if step.initial]
    reached = _reachable(set(initial), transitions)
    faults = [
        Text.of(
            "step {step!r} cannot be reached from the initial step {initial}",
            step=step.name,
            initial=", ".join(map(repr, initial)),
        )
        for step in recipe.steps
        if initial and step.name not in reached
    ]
    hidden = {shadowed.index for _, shadowed in shadows(transitions)}
    effective = [transition for transition in transitions if transition.index not in hidden and not transition.never]
    faults += _path_end_faults(structure, effective)
    faults += _livelock_faults(recipe, effective)
    return faults


def _reachable(start: AbstractSet[str], transitions: Sequence[NetTransition]) -> set[str]:
    """Return the steps reachable when a transition adds its targets once all its sources are reachable."""
    missing = [len(set(transition.sources)) for transition in transitions]
    needing: dict[str, list[int]] = {}
    for index, transition in enumerate(transitions):
        for source in set(transition.sources):
            needing.setdefault(source, []).append(index)
    reached, fresh = set(start), list(start)
    while fresh:
        for index in needing.get(fresh.pop(), ()):
            missing[index] -= 1
            if missing[index] == 0:
                added = set(transitions[index].targets) - reached
                reached |= added
                fresh += added
    return reached


def _path_end_faults(structure: Structure, transitions: Sequence[NetTransition]) -> Iterator[Text]:
    """Yield steps of a simultaneous path from which its end cannot be reached: the branch would never converge.

    A transition that is never true, or comes after an `always`, leads nowhere.
    """
    before: dict[str, set[str]] = {}
    for transition in transitions:
        for target in transition.targets:
            before.setdefault(target, set()).update(transition.sources)
    for branch in structure.recipe.branches:
        if branch.type is not BranchType.SIMULTANEOUS:
            continue
        for number, path in enumerate(branch.branches):
            inside = structure.steps_of(path)
            ending = {step for way in structure.ways_out(path[-1]) for step in way}
            found = _backwards(ending, before, inside)
            for step in sorted(inside - found):
                yield Text.of(
                    "branch {branch!r}: the end of path {number} cannot be reached from step {step!r}",
                    branch=branch.name,
                    number=number,
                    step=step,
                )


def _backwards(start: set[str], before: Mapping[str, AbstractSet[str]], inside: AbstractSet[str]) -> set[str]:
    found, fresh = set(start), list(start)
    while fresh:
        added = {step for step in before.get(fresh.pop(), ()) if step in inside} - found
        found |= added
        fresh += added
    return found


def _livelock_faults(recipe: Recipe, transitions: Sequence[NetTransition]) -> Iterator[Text]:
    """Yield loops that would run without end and without time.

    Only transitions that clear at once whenever they are enabled can make one.
    """
    busy = {action.step for action in recipe.actions if QUALIFIER_RULES[action.qualifier].holds}
    at_once = [
        transition for transition in transitions if transition.always and not busy.intersection(transition.sources)
    ]
    for loop in _loops(_feeding_itself(at_once)):
        yield Text.of(
            "livelock: {loop}: a loop of steps without actions over conditions that are always true",
            loop=" → ".join(loop),
        )


def _feeding_itself(transitions: Sequence[NetTransition]) -> list[NetTransition]:
    """Remove the transitions with a source that no other transition activates, until nothing changes."""
    feeds = Counter(target for transition in transitions for target in transition.targets)
    leaving: dict[str, list[int]] = {}
    for index, transition in enumerate(transitions):
        for source in transition.sources:
            leaving.setdefault(source, []).append(index)
    out: set[int] = set()
    unfed = [step for step in leaving if not feeds[step]]
    while unfed:
        for index in leaving.get(unfed.pop(), ()):
            if index not in out:
                out.add(index)
                feeds.subtract(transitions[index].targets)
                unfed += (target for target in transitions[index].targets if not feeds[target])
    return [transition for index, transition in enumerate(transitions) if index not in out]


def _loops(transitions: Sequence[NetTransition]) -> Iterator[list[str]]:
    """Yield one loop for each group of steps that activate each other."""
    following: dict[str, str] = {}
    for transition in transitions:
        for source in transition.sources:
            following.setdefault(source, transition.targets[0])
    reported: set[str] = set()
    for step in following:
        walk, walked = [step], {step}
        while walk[-1] not in reported and (after := following.get(walk[-1])) is not None:
            if after in walked:
                yield [*walk[walk.index(after) :], after]
                break
            walk.append(after)
            walked.add(after)
        reported.update(walk)


def shadows(transitions: Iterable[NetTransition]) -> Iterator[tuple[NetTransition, NetTransition]]:
    """Yield pairs of transitions whose first is always true and always tested before the second."""
    constant: dict[str, list[NetTransition]] = {}
    for transition in transitions:
        sources, needs = set(transition.sources), set(transition.needs_done)
        earlier = (better for source in transition.sources for better in constant.get(source, ()))
        better = next((b for b in earlier if sources.issuperset(b.sources) and needs.issuperset(b.needs_done)), None)
        if better is not None:
            yield better, transition
        elif transition.always:
            for source in transition.sources:
                constant.setdefault(source, []).append(transition)


def warnings_of(structure: Structure, transitions: Sequence[NetTransition]) -> list[Text]:
    """Return the warnings: constructs that are allowed but probably not intended."""
    recipe = structure.recipe
    found = [
        Text.of(
            "{place} never counts: what leads to this path names its first element, not the branch",
            place=_place_of(recipe, number),
        )
        for number in structure.unused_entries
    ]
    found += [_shadow_text(better, hidden) for better, hidden in shadows(transitions)]
    reset = {action.name for action in recipe.actions if QUALIFIER_RULES[action.qualifier].resets}
    keeps = {
        action.name
        for action in recipe.actions
        if QUALIFIER_RULES[action.qualifier].stored and not QUALIFIER_RULES[action.qualifier].ends
    }
    found += [
        Text.of("action {name!r} is set and never reset: it stays set after the job", name=name)
        for name in sorted(keeps - reset)
    ]
    sources = {source for transition in transitions for source in transition.sources}
    terminal = {step.name for step in recipe.steps} - sources
    if not terminal:
        found.append(Text("no terminal step: every step has an outgoing transition, the job never completes"))
    found += [
        Text.of("{place} is never sent: nothing leaves this step", place=_place(number, action))
        for number, action in enumerate(recipe.actions)
        if action.qualifier is Qualifier.P0 and action.step in terminal
    ]
    return list(dict.fromkeys(found))


def _shadow_text(better: NetTransition, hidden: NetTransition) -> Text:
    if better.place != hidden.place:
        return Text.of(
            "{place} never clears: {better} is always true and comes first", place=hidden.place, better=better.place
        )
    return Text.of(
        "{place} never leads to {targets}: the way to {others} is always open and comes first",
        place=hidden.place,
        targets=", ".join(hidden.targets),
        others=", ".join(better.targets),
    )


def _place_of(recipe: Recipe, number: int) -> str:
    transition = recipe.transitions[number]
    return f"transitions[{number}] ({transition.source} → {transition.target})"


def needed_by_step(structure: Structure) -> dict[str, frozenset[str]]:
    """Return the locks of each step: its own and those of the branches around it."""
    found = {}
    for step in structure.recipe.steps:
        around = (branch.lock for branch in structure.branches_around(step.name))
        found[step.name] = frozenset(step.lock).union(*around)
    return found


def timeouts_by_step(structure: Structure) -> dict[str, float]:
    """Return the longest wait for the locks of each step in seconds: its own, else that of the innermost branch."""
    found: dict[str, float] = {}
    for step in structure.recipe.steps:
        places: tuple[Step | Branch, ...] = (step, *structure.branches_around(step.name))
        found[step.name] = next((place.lock_timeout_seconds for place in places if place.lock_timeout_seconds), 0)
    return found


def lock_faults(structure: Structure, transitions: Sequence[NetTransition]) -> Iterator[Text]:
    """Yield transitions that acquire a lock while the job may hold one that comes after it, and useless timeouts."""
    recipe = structure.recipe
    parts: list[Step | Branch] = [*recipe.steps, *recipe.branches]
    for part in parts:
        if part.lock_timeout_seconds and not part.lock:
            yield Text.of("{part!r}: lock_timeout_seconds without a lock", part=part.name)
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
                Text.of(
                    "{place}: acquires lock {lock!r} while the job may hold {before!r}; locks are acquired in "
                    "alphabetical order: acquire {lock!r} together with {before!r}, or leave the steps of {before!r} "
                    "first",
                    place=transition.place,
                    lock=lock,
                    before=before,
                )
            )


def lock_warnings(structure: Structure) -> Iterator[Text]:
    """Yield the stored actions that continue after a lock of their step is released."""
    needed = needed_by_step(structure)
    resets: dict[str, list[Action]] = {}
    for action in structure.recipe.actions:
        if QUALIFIER_RULES[action.qualifier].resets:
            resets.setdefault(action.name, []).append(action)
    for action in structure.recipe.actions:
        rule, locks = QUALIFIER_RULES[action.qualifier], needed[action.step]
        ends = resets.get(action.name, ())
        if rule.stored and locks and not any(locks <= needed[end.step] for end in ends):
            yield (
                Text.of(
                    "action {action!r} of step {step!r} continues after the step: lock {locks} is released before its "
                    "reset",
                    action=action.name,
                    step=action.step,
                    locks=", ".join(map(repr, sorted(locks))),
                )
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
