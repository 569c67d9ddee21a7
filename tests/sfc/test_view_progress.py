"""How far a run is on its way."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.sfc.run import new_run
from edge.sfc.view import expected_steps
from tests.sfc.driving import Driven
from tests.sfc.recipes import Json, action, branch, chain, net_of, recipe, transition


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (chain("A B C", action("a", "A")), 3),
        (recipe("A B C R", [transition("A", "B"), transition("A", "R", "x"), transition("B", "C")]), 3),
        (
            recipe(
                "A B C D E",
                [transition("A", "P"), transition("P", "E")],
                [action("a", "A")],
                branch("P", "simultaneous", "B C", "D"),
            ),
            5,
        ),
        (recipe("A B", [transition("A", "A", "x"), transition("A", "B", "y")]), 2),
    ],
)
def test_steps_ahead_are_those_of_the_first_way(data: Json, expected: int) -> None:
    net = net_of(data)
    assert expected_steps(net, new_run("J", "s", "R", {})) == expected


def test_steps_of_another_way_are_not_expected_once_it_is_left() -> None:
    data = recipe(
        "A B C R",
        [
            transition("A", "B", "actions.a.done"),
            transition("A", "R", "actions.a.failed"),
            transition("B", "C"),
        ],
        [action("a", "A"), action("r", "R")],
    )
    driven = Driven(net_of(data))
    assert expected_steps(driven.net, driven.run) == 3
    driven.answer("a", 10, error="torque low")
    assert driven.run.active == {"R"}
    assert expected_steps(driven.net, driven.run) == 2
    driven.answer("r", 20)
    assert driven.run.ended
    assert expected_steps(driven.net, driven.run) == 2


@given(st.integers(1, 30), st.data())
def test_expected_steps_cover_the_way_and_never_exceed_the_recipe(size: int, data: st.DataObject) -> None:
    names = [f"S{number}" for number in range(size)]
    joined = [transition(a, b) for a, b in itertools.pairwise(names)]
    extra = data.draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=5))
    others = [transition(a, b, "x", priority=data.draw(st.integers(-2, 2))) for a, b in extra]
    net = net_of(recipe(" ".join(names), [*joined, *others], [action("a", "S0")]))
    run = Driven(net).run
    assert len(run.active) <= expected_steps(net, run) <= size
