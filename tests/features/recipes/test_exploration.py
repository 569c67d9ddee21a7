"""Random charts of up to 12 steps, explored exhaustively by other means: the check agrees."""

import itertools
from collections.abc import Iterator, Mapping
from time import process_time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from edge.expression.value import UNKNOWN
from edge.features.recipes.check import check_net
from edge.features.recipes.exploration import Exploration, explore, explore_orders
from edge.sfc.advance import advance
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Run, new_run
from edge.sfc.signal import Advanced, Answer, Event, Signal, Start, Tick, Unknown
from edge.sfc.view import next_deadline
from tests.features.recipes.recipes import Json, action, net_of, recipe, wait, way

NAMES = ("x", "y")
OWN = [
    "always",
    "never",
    "x",
    "not x",
    "x and not y",
    "x == false and x",
    "actions.{a}.done",
    "actions.{a}.failed",
    "actions.{a}.timed_out",
    "actions.{a}.failed or actions.{a}.timed_out",
    "actions.{a}.unknown",
    "actions.{a}.state == 'complete'",
    "actions.{a}.done and y",
    "actions.a0.failed",
    "steps.{s}.T >= 10s",
    "steps.{s}.T >= 50s",
    "steps.{s}.count < 2",
]
"""Conditions of a transition that leaves step `s` with its action `a`."""


@st.composite
def chains(draw: st.DrawFn) -> Json:
    """Draw a chart without simultaneous branches: each step has up to three ways, forwards or back."""
    size = draw(st.integers(2, 12))
    actions = [_action(draw, number) for number in range(size - 1) if draw(st.integers(0, 3))]
    owners = {item["step"]: item["name"] for item in actions}
    transitions = []
    for number in range(size - 1):
        step = f"S{number}"
        for priority in range(draw(st.integers(1, 3))):
            target = draw(st.sampled_from([number + 1, number + 1, min(size - 1, number + 2), max(0, number - 1)]))
            usable = [text for text in OWN if "{a}" not in text or step in owners]
            text = draw(st.sampled_from(usable)).format(a=owners.get(step), s=step)
            if "a0" in text and "S0" not in owners:
                text = "x"
            transitions.append(way(step, f"S{target}", text, priority))
    return _whole(size, transitions, actions)


@st.composite
def parallel(draw: st.DrawFn) -> Json:
    """Draw a chart with a simultaneous branch of two or three paths, without time."""
    lengths = draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    paths = [[f"P{number}{place}" for place in range(length)] for number, length in enumerate(lengths)]
    steps = [name for path in paths for name in path]
    actions = [action(f"a{name}", name, timeout_seconds=0) for name in steps if draw(st.integers(0, 2))]
    owners = {item["step"]: item["name"] for item in actions}
    transitions = [way("I", "both"), way("both", "End", draw(st.sampled_from(["always", "x", "never"])))]
    for path in paths:
        for source, target in itertools.pairwise(path):
            usable = [text for text in OWN if "T >=" not in text and "a0" not in text]
            usable = [text for text in usable if "{a}" not in text or source in owners]
            text = draw(st.sampled_from(usable)).format(a=owners.get(source), s=source)
            transitions.append(way(source, target, text))
            if draw(st.integers(0, 2)) == 0:
                foreign = draw(st.sampled_from(steps))
                transitions.append(way(source, target, f"steps.{foreign}.X or steps.{foreign}.done", 1))
    branches = [{"name": "both", "type": "simultaneous", "branches": paths}]
    return recipe(*transitions, actions=tuple(actions), branches=branches)


def _action(draw: st.DrawFn, number: int) -> Json:
    make = wait if draw(st.integers(0, 4)) == 0 else action
    timeout = draw(st.sampled_from([0, 30]))
    qualifier = draw(st.sampled_from(["N", "N", "N", "P", "P0", "D", "L"]))
    if qualifier == "P0":
        make = action
    duration = {"duration_seconds": 20} if qualifier in {"D", "L"} else {}
    return make(f"a{number}", f"S{number}", timeout_seconds=timeout, qualifier=qualifier, **duration)


def _whole(size: int, transitions: list[Json], actions: list[Json]) -> Json:
    steps = [{"name": f"S{number}", "initial": number == 0} for number in range(size)]
    return {"steps": steps, "transitions": transitions, "actions": actions}


_MOST_STATES = 1500
"""A chart with more is not drawn again: each state is tried with nine combinations of values."""


class TooManyStatesError(Exception):
    """A chart that cannot be explored by brute force in a test."""


class Exhaustive:
    """Every state of a recipe by brute force: each outcome, each instant, each value of each name in each state."""

    def __init__(self, data: Json) -> None:
        self.values: Mapping[str, Any] = {}
        net = compile_recipe(data, {name: self._reader(name) for name in NAMES})
        assert isinstance(net, Net)
        self.net = net
        self.activated: set[str] = set()
        self.dead: set[str] = set()
        self._explore()

    def _reader(self, name: str) -> Any:
        return lambda _view: self.values.get(name, UNKNOWN)

    def _explore(self) -> None:
        first = (new_run("J1", "s", "1", {}), 1_000_000)
        pending: list[tuple[tuple[Run, int], Signal]] = [(first, Start())]
        seen: set[object] = set()
        while pending:
            (run, now), signal = pending.pop()
            for after in self._all_data(run, signal, now):
                key = self._key(after, now)
                if key not in seen:
                    seen.add(key)
                    if len(seen) > _MOST_STATES:
                        raise TooManyStatesError
                    pending += [((after, at), further) for further, at in self._signals(after, now)]
                    self.dead |= self._dead_steps(after, now)

    def _all_data(self, run: Run, signal: Signal, now: int) -> Iterator[Run]:
        for combination in itertools.product([True, False, UNKNOWN], repeat=len(NAMES)):
            self.values = dict(zip(NAMES, combination, strict=True))
            advanced = advance(self.net, run, signal, now)
            if isinstance(advanced, Advanced):
                self.activated |= {change.step for change in advanced.steps if change.active}
                yield advanced.run

    def _signals(self, run: Run, now: int) -> list[tuple[Signal, int]]:
        if run.ended:
            return []
        signals: list[tuple[Signal, int]] = [(Tick(), now)]
        for key in run.open:
            association = run.associations[key]
            if association.awaits_outcome:
                signals += [(Answer(association.command_id, ok=ok), now) for ok in (True, False)]
                if f"{association.action}.unknown" in self.net.source or ".state" in self.net.source:
                    signals.append((Unknown(association.command_id, ""), now))
            elif association.state is ActionState.WAITING:
                signals.append((Event(association.type_id, None, f"e{run.revision}", named=True), now))
        if (deadline := next_deadline(self.net, run)) is not None:
            signals.append((Tick(), max(now, deadline)))
        return signals

    def _key(self, run: Run, now: int) -> object:
        """Return a run with its instants relative to now, and counts up to 5."""
        steps = frozenset(
            (name, state.active, min(state.count, 5), min(state.t(now), 60_000)) for name, state in run.steps.items()
        )
        actions = frozenset(
            (
                key.latest,
                key.is_left_behind,
                association.state,
                association.ended_at is None,
                association.due and association.due - now,
                association.deadline and association.deadline - now,
            )
            for key, association in run.associations.items()
        )
        return run.outcome, steps, actions

    def _dead_steps(self, run: Run, now: int) -> set[str]:
        """Return the steps that stand still whatever the data, without those that wait for them."""
        if run.ended or len(self._signals(run, now)) > 1:
            return set()
        every = list(self._all_data(run, Tick(), now))
        # A step that is left and active again has a way out.
        stuck = {
            name
            for name in run.active - self.net.terminal
            if all(not after.ended and after.steps[name] == run.steps[name] for after in every)
        }
        waiting = run.active - self.net.terminal
        own = {
            name for name in waiting if all(run.active.issuperset(way.sources) for way in self.net.steps[name].outgoing)
        }
        return stuck & (own or waiting)


def dead(exploration: Exploration) -> set[str]:
    return {still.step for still in exploration.standstills if not still.depends_on_data}


def agree(data: Json) -> None:
    if isinstance(compile_recipe(data), RejectedRecipe):
        return
    try:
        exhaustive = Exhaustive(data)
    except TooManyStatesError:
        reject()
    exploration = explore(net_of(data))
    assert exploration.is_complete
    assert dead(exploration) == exhaustive.dead
    assert exploration.activated == exhaustive.activated


SETTINGS = settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))


@SETTINGS
@given(chains())
def test_check_agrees_with_an_exhaustive_exploration(data: Json) -> None:
    agree(data)


@SETTINGS
@given(parallel())
def test_check_agrees_with_an_exhaustive_exploration_of_paths(data: Json) -> None:
    agree(data)


@SETTINGS
@given(parallel())
def test_independent_paths_in_turn_find_the_same(data: Json) -> None:
    if isinstance(compile_recipe(data), RejectedRecipe):
        return
    whole, reduced = explore_orders(net_of(data)), explore_orders(net_of(data), reduced=True)
    assert (dead(whole), whole.activated, whole.cleared) == (dead(reduced), reduced.activated, reduced.cleared)


def test_long_recipe_is_explored_as_a_whole() -> None:
    names = [f"S{number}" for number in range(200)]
    ways = [
        [way(source, target, f"actions.a{source}.done"), way(source, "Rework", f"actions.a{source}.failed")]
        for source, target in itertools.pairwise([*names, "End"])
    ]
    actions = tuple(action(f"a{name}", name) for name in names)
    net = net_of(recipe(*itertools.chain(*ways), way("Rework", "End"), actions=actions))
    exploration = explore(net)
    assert exploration.is_complete
    began = process_time()
    check_net(net)
    assert process_time() - began < 0.5
    assert len(exploration.activated) == 202
    assert exploration.calls < 2000


def test_six_paths_of_ten_steps_are_explored_as_a_whole() -> None:
    paths = [[f"P{number}_{place}" for place in range(10)] for number in range(6)]
    actions = tuple(action(f"a{name}", name) for path in paths for name in path)
    branches = [{"name": "all", "type": "simultaneous", "branches": paths}]
    began = process_time()
    exploration = explore(net_of(recipe(way("I", "all"), way("all", "End"), actions=actions, branches=branches)))
    assert process_time() - began < 2
    assert exploration.is_complete
    assert len(exploration.activated) == 62


def test_bound_is_reported_when_it_is_met() -> None:
    paths = [[f"P{number}_{place}" for place in range(10)] for number in range(6)]
    # Each step looks at the next path: no path can be explored alone.
    ways = [
        way(source, target, f"steps.{paths[(number + 1) % 6][place]}.count >= 0")
        for number, path in enumerate(paths)
        for place, (source, target) in enumerate(itertools.pairwise(path))
    ]
    actions = tuple(action(f"a{name}", name) for path in paths for name in path)
    branches = [{"name": "all", "type": "simultaneous", "branches": paths}]
    data = recipe(way("I", "all"), way("all", "End"), *ways, actions=actions, branches=branches)
    began = process_time()
    assert not explore(net_of(data)).is_complete
    assert process_time() - began < 2


@pytest.mark.parametrize("data", [recipe(way("A", "B", "x"))])
def test_exhaustive_exploration_sees_that_data_lead_on(data: Json) -> None:
    exhaustive = Exhaustive(data)
    assert (exhaustive.dead, exhaustive.activated) == (set(), {"A", "B"})
