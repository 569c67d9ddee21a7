"""What of a run decides about its future: two runs that agree in it are one state of an exploration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from edge.expression.syntax import Compare, Literal, Name, Node, nodes_of, parse
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net, NetTransition
from edge.sfc.run import Association, Run

NOW: Final = 1_000_000_000_000
"""The instant of every signal, in milliseconds: time passes by moving the clock of one step into the past."""
_LEAST_CAP: Final = 3


class _Reads(Struct, frozen=True):
    """What the conditions of a transition read of the run beyond its own active steps."""

    actions: frozenset[AssociationKey] = frozenset()
    attempts: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()

    def __or__(self, other: _Reads) -> _Reads:
        return _Reads(
            self.actions | other.actions,
            self.attempts | other.attempts,
            self.counts | other.counts,
            self.times | other.times,
        )


@lru_cache(maxsize=4096)
def tree_of(condition: str) -> Node:
    """Return a condition that was compiled before as a tree."""
    return parse(condition)


def state_names(node: Node) -> Iterator[tuple[str, str, str]]:
    """Yield the names of a condition that read the state of steps and actions, as kind, name and property."""
    for part in nodes_of(node):
        match part:
            case Name(path=("steps" | "actions" as kind, str() as name, str() as prop, *_)):
                yield str(kind), name, prop
            case _:
                pass


def trees_of(transition: NetTransition) -> list[Node]:
    """Return the conditions of a transition as trees."""
    return [tree_of(condition.text) for condition in transition.conditions]


def names_of_state(transition: NetTransition) -> list[tuple[str, str, str]]:
    """Return what the conditions of a transition read of steps and actions, as kind, name and property."""
    return [names for tree in trees_of(transition) for names in state_names(tree)]


class Footprints:
    """Reduces runs of one recipe to what decides about their future."""

    def __init__(self, net: Net) -> None:
        self._net = net
        trees = (tree for transition in net.transitions for tree in trees_of(transition))
        self._cap = _LEAST_CAP + max(map(_highest, trees), default=0)
        self.reads = {transition.index: self._read(transition) for transition in net.transitions}
        self._future = self._futures()
        self._joined: dict[frozenset[str], _Reads] = {}
        shared = {key for mine in net.starting.values() if len(mine) > 1 for key in (action.key for action in mine)}
        waiting = {action.key for mine in net.pulling.values() if len(mine) > 1 for action in mine}
        self._ordered = shared | waiting

    def _read(self, transition: NetTransition) -> _Reads:
        actions: set[AssociationKey] = set()
        attempts, counts, times = set[str](), set[str](), set[str]()
        for kind, name, prop in names_of_state(transition):
            match kind, prop:
                case "steps", "count":
                    counts.add(name)
                case "steps", "T":
                    times.add(name)
                case "steps", "done":
                    actions |= {action.key for action in self._net.steps[name].actions}
                case "actions", "attempts":
                    attempts.add(name)
                case "actions", _:
                    actions |= self._keys(name)
                case _:
                    pass
        # Where the step of an action is left, the action is of its present activation.
        sources = set(transition.sources)
        renewed = {key for key in actions if key.step in sources and not self._net.actions[key].rule.stored}
        return _Reads(frozenset(actions - renewed), frozenset(attempts), frozenset(counts), frozenset(times))

    def _keys(self, action: str) -> set[AssociationKey]:
        every = (*self._net.starting.get(action, ()), *self._net.resetting.get(action, ()))
        return {net_action.key for net_action in every}

    def _futures(self) -> dict[str, _Reads]:
        """Return what is read by the transitions that can follow when a step is active."""
        futures = {name: _Reads() for name in self._net.steps}
        changed = True
        while changed:
            changed = False
            for transition in reversed(self._net.transitions):
                after = self.reads[transition.index]
                for target in transition.targets:
                    after |= futures[target]
                for source in transition.sources:
                    if (joined := futures[source] | after) != futures[source]:
                        futures[source], changed = joined, True
        return futures

    def future(self, active: frozenset[str]) -> _Reads:
        """Return what is read by the transitions that can follow these active steps."""
        reads = self._joined.get(active)
        if reads is None:
            reads = _Reads()
            for name in active:
                reads |= self._future[name]
            self._joined[active] = reads
        return reads

    def normal(self, before: Run, run: Run, variables: Any) -> Run:
        """Return a run without its history, with bounded counts, its actions in the order in which they began."""
        steps = run.steps
        changed = [name for kind, name in run.touched if kind == "step"]
        if counted := [name for name in changed if steps[name].count > self._cap]:
            steps = steps | {name: replace(steps[name], count=self._cap) for name in counted}
        associations = run.associations
        if self._ordered:
            old = {key for key in self._ordered if key in before.associations}
            associations = {
                key: _aged(association) if key in old and before.associations[key] is association else association
                for key, association in associations.items()
            }
        # Of the commands that were left behind in a loop one stands for all.
        left = sorted(key for key in run.open if key.is_left_behind)
        surplus = {later for first, later in pairwise(left) if later.latest == first.latest}
        if surplus:
            associations = {key: association for key, association in associations.items() if key not in surplus}
        return replace(
            run,
            steps=steps,
            associations=associations,
            open=run.open - surplus,
            past={},
            interventions={},
            early={},
            variables=variables,
        )

    def of(self, run: Run) -> object:
        """Return what of a run decides about its future."""
        reads, net, associations = self.future(run.active), self._net, run.associations
        watched = {*run.open, *run.stored.values(), *(key for key in reads.actions if key in associations)}
        for name in run.active:
            watched.update(action.key for action in net.steps[name].actions)
        actions = {
            (key.latest, key.is_left_behind, self._action(associations[key], reads))
            for key in watched
            if key in associations
        }
        order = self._order(run, watched) if self._ordered else ()
        steps = {
            (name, state.completed, NOW - state.activated_at if name in reads.times else 0)
            for name in run.active
            for state in (run.steps[name],)
        }
        left = {(name, run.steps[name].elapsed_ms) for name in reads.times - run.active if name in run.steps}
        counts = {(name, run.steps[name].count) for name in reads.counts if name in run.steps}
        attempts = {(name, self._attempts(run, name)) for name in reads.attempts}
        locks = (run.locks.held, run.locks.entering, run.locks.forced, run.locks.deadline)
        stored = frozenset(run.stored.items())
        parts = (frozenset(steps), frozenset(left), frozenset(counts), frozenset(attempts), frozenset(actions))
        return (run.outcome, order, run.faults, locks, stored, *parts)

    def _action(self, association: Association, reads: _Reads) -> tuple[object, ...]:
        deadline, due = association.deadline, association.due
        return (
            association.state,
            association.awaits_outcome,
            association.result is not None,
            None if deadline is None else deadline - NOW,
            None if due is None else due - NOW,
            min(association.attempt, self._cap) if association.action in reads.attempts else 0,
        )

    def _attempts(self, run: Run, name: str) -> int:
        latest = [association.attempt for key in self._keys(name) if (association := run.associations.get(key))]
        return min(max(latest, default=0), self._cap)

    def _order(self, run: Run, watched: Iterable[AssociationKey]) -> tuple[AssociationKey, ...]:
        keys = [key for key in watched if key in self._ordered and key in run.associations]
        return tuple(sorted(keys, key=lambda key: (run.associations[key].armed_at or 0, key)))


def _aged(association: Association) -> Association:
    return association if association.armed_at is None else replace(association, armed_at=association.armed_at - 1)


def _highest(tree: Node) -> int:
    """Return the highest number with which a condition compares a count."""
    counting = (
        part
        for part in nodes_of(tree)
        if isinstance(part, Compare) and any(prop in {"count", "attempts"} for _, _, prop in state_names(part))
    )
    literals = (part.value for comparison in counting for part in nodes_of(comparison) if isinstance(part, Literal))
    numbers = [value for value in literals if isinstance(value, int | float) and not isinstance(value, bool)]
    return int(min(max((abs(number) for number in numbers), default=0), _MOST_COUNTED))


_MOST_COUNTED: Final = 1000
