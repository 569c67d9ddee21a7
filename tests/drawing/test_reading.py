"""A chart shows every step, transition and action of its recipe with the transitions of the net."""

from collections import Counter

import pytest
from hypothesis import given

from edge.drawing.reading import Fork, Jump, StepBlock, TransitionBar, read_chart
from edge.model.recipe import BranchType, Recipe
from edge.sfc.structure import Structure
from tests.drawing.drawn import DrawnTransition, drawn_transitions, items_of, written
from tests.drawing.sketches import Json, any_recipe, recipe_of, selection, simultaneous, sound


def arcs(recipe: Recipe) -> set[DrawnTransition]:
    """Return the transitions of the net, from the same unfolding that it is compiled from."""
    return {(frozenset(arc.sources), frozenset(arc.targets), written(arc.conditions)) for arc in Structure(recipe).arcs}


def entered_by_a_door(recipe: Recipe) -> set[str]:
    """Return the selections whose own choice is passed by when a transition names the first block of a path."""
    choosing = {
        path[0]: branch.name
        for branch in recipe.branches
        if branch.type is BranchType.SELECTION
        for path in branch.branches
    }
    found = set()
    for transition in recipe.transitions:
        name = transition.target
        while name in choosing and choosing[name] != transition.source:
            name = choosing[name]
            found.add(name)
    return found


@given(any_recipe)
def test_every_step_is_in_the_chart_once_with_all_its_actions(data: Json) -> None:
    recipe = sound(data)
    steps = [item for item in items_of(read_chart(recipe).pieces) if isinstance(item, StepBlock)]
    assert sorted(step.name for step in steps) == sorted(step.name for step in recipe.steps)
    actions = sorted(number for step in steps for number, action in step.actions if action.step == step.name)
    assert actions == list(range(len(recipe.actions)))


@given(any_recipe)
def test_every_branch_is_in_the_chart_once_with_all_its_paths(data: Json) -> None:
    recipe = sound(data)
    forks = [item for item in items_of(read_chart(recipe).pieces) if isinstance(item, Fork) and item.name]
    assert sorted(fork.name for fork in forks) == sorted(branch.name for branch in recipe.branches)
    paths = {branch.name: len(branch.branches) for branch in recipe.branches}
    # A selection may show jumps next to its paths.
    assert all(len(fork.legs) >= paths[fork.name] for fork in forks)


@given(any_recipe)
def test_every_transition_is_drawn_once_except_those_of_selections(data: Json) -> None:
    recipe = sound(data)
    bars = [item for item in items_of(read_chart(recipe).pieces) if isinstance(item, TransitionBar)]
    times = Counter(number for bar in bars for number in bar.numbers)
    selections = {branch.name for branch in recipe.branches if branch.type is BranchType.SELECTION}
    passed_by = entered_by_a_door(recipe)
    for number, transition in enumerate(recipe.transitions):
        assert times[number] >= 1 or transition.source in passed_by
        if not selections & {transition.source, transition.target}:
            assert times[number] == 1


@given(any_recipe)
def test_transitions_of_the_chart_match_those_of_the_recipe(data: Json) -> None:
    recipe = sound(data)
    assert drawn_transitions(read_chart(recipe), recipe) == arcs(recipe)


@given(any_recipe)
def test_every_jump_leads_to_a_block_that_names_its_source(data: Json) -> None:
    chart = read_chart(sound(data))
    jumps = Counter(item.target for item in items_of(chart.pieces) if isinstance(item, Jump))
    assert jumps == {target: len(sources) for target, sources in chart.arrivals.items()}
    drawn = {item.name for item in items_of(chart.pieces) if isinstance(item, StepBlock | Fork)}
    assert jumps.keys() <= drawn


@given(any_recipe)
def test_alternatives_are_numbered_in_their_evaluation_order(data: Json) -> None:
    recipe = sound(data)
    for item in items_of(read_chart(recipe).pieces):
        if isinstance(item, Fork) and item.type is BranchType.SELECTION:
            orders = [leg.items[0].order for leg in item.legs if leg.items and isinstance(leg.items[0], TransitionBar)]
            assert orders == sorted(orders)


def test_paths_that_meet_again_converge_without_a_jump() -> None:
    chart = read_chart(recipe_of([("A", "B", "b"), ("A", "C", "c"), ("B", "D", "x"), ("C", "D", "y")]))
    assert not chart.arrivals
    (piece,) = chart.pieces
    assert [type(item) for item in piece] == [StepBlock, Fork, StepBlock]


def test_path_to_an_earlier_step_is_a_jump() -> None:
    chart = read_chart(recipe_of([("A", "B", "go"), ("B", "A", "again"), ("B", "C", "good")]))
    assert chart.arrivals == {"A": ("B",)}
    (piece,) = chart.pieces
    assert [item.name for item in piece if isinstance(item, StepBlock)] == ["A", "B", "C"]


def test_step_with_many_sources_is_drawn_separately() -> None:
    transitions = [("A", "B", "1"), ("A", "X", "f"), ("B", "C", "1"), ("B", "X", "f"), ("C", "D", "1"), ("C", "X", "f")]
    chart = read_chart(recipe_of(transitions))
    assert len(chart.pieces) == 2
    assert chart.arrivals == {"X": ("A", "B", "C")}


def test_each_path_of_a_selection_begins_and_ends_with_a_transition() -> None:
    recipe = recipe_of(
        [("A", "B", "always"), ("B", "P", "p"), ("B", "Q", "q"), ("B", "Z", "over")], [selection(["P"], ["Q"])]
    )
    (piece,) = read_chart(recipe).pieces
    assert [type(item) for item in piece] == [StepBlock, Fork, StepBlock]
    fork = piece[1]
    assert isinstance(fork, Fork)
    texts = [[item.condition for item in leg.items if isinstance(item, TransitionBar)] for leg in fork.legs]
    assert texts == [["p", "over"], ["q", "over"]]


def test_condition_before_a_selection_is_drawn_at_each_of_its_paths() -> None:
    recipe = recipe_of(
        [("A", "B", "ready"), ("B", "P", "a < 1"), ("B", "Q", "q"), ("B", "Z", "always")], [selection(["P"], ["Q"])]
    )
    fork = read_chart(recipe).pieces[0][1]
    assert isinstance(fork, Fork)
    heads = [leg.items[0] for leg in fork.legs]
    assert [head.condition for head in heads if isinstance(head, TransitionBar)] == ["ready and (a < 1)", "ready and q"]


def test_a_jump_out_of_a_selection_names_its_target() -> None:
    recipe = recipe_of([("A", "B", "always"), ("P", "X", "broken"), ("B", "Z", "always")], [selection(["P"], ["Q"])])
    chart = read_chart(recipe)
    assert chart.arrivals == {"X": ("P",)}
    assert len(chart.pieces) == 2


def test_the_last_steps_of_simultaneous_paths_wait_at_the_double_line() -> None:
    recipe = recipe_of([("A", "B", "always"), ("B", "Z", "both")], [simultaneous(["P", "P2"], ["Q"])])
    (piece,) = read_chart(recipe).pieces
    fork = piece[2]
    assert isinstance(fork, Fork)
    assert [[type(item) for item in leg.items] for leg in fork.legs] == [
        [StepBlock, TransitionBar, StepBlock],
        [StepBlock],
    ]
    assert all(leg.open for leg in fork.legs)


@pytest.mark.parametrize(
    ("written", "shown"),
    [("always", "TRUE"), ("true", "TRUE"), (" never ", "FALSE"), ("false", "FALSE"), ("torque_ok", "torque_ok")],
)
def test_constant_conditions_are_the_literals_of_the_standard(written: str, shown: str) -> None:
    bar = read_chart(recipe_of([("A", "B", written)])).pieces[0][1]
    assert isinstance(bar, TransitionBar)
    assert bar.condition == shown


def test_long_chain_of_alternatives_does_not_exceed_the_recursion_limit() -> None:
    transitions = [(f"S{n}", f"{way}{n + 1}", way) for n in range(600) for way in ("S", "T")]
    chart = read_chart(recipe_of(transitions))
    assert sum(isinstance(item, StepBlock) for item in items_of(chart.pieces)) == 1201


@pytest.mark.parametrize(
    ("aside", "choosing"),
    [
        ([("A", "A0", "back")], [("B", "P", "p"), ("B", "Q", "q")]),
        ([("A", "P", "straight")], [("B", "P", "p"), ("B", "Q", "q")]),
    ],
    ids=["a way back beside it", "a way past its choice"],
)
def test_jump_to_a_selection_is_the_only_source_named_at_the_selection(
    aside: list[tuple[str, str, str]], choosing: list[tuple[str, str, str]]
) -> None:
    recipe = recipe_of(
        [("A0", "A", "go"), *aside, ("A", "B", "always"), *choosing, ("B", "Z", "always"), ("Z", "B", "again")],
        [selection(["P"], ["Q"])],
    )
    chart = read_chart(recipe)
    assert chart.arrivals["B"] == ("Z",)
    assert drawn_transitions(chart, recipe) == arcs(recipe)
