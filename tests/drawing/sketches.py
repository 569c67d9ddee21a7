"""Recipes to draw: small ones written down, and random ones of every form."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from edge.model.recipe import Recipe, parse_recipe
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from tests.sfc.charts import recipes

Json = dict[str, Any]


def recipe_of(transitions: list[tuple[str, str, str]], branches: list[Json] | None = None) -> Recipe:
    """A recipe of these transitions, with the steps they name; the first source is initial."""
    inside = [name for branch in branches or [] for path in branch["branches"] for name in path]
    named = dict.fromkeys([name for source, target, _ in transitions for name in (source, target)] + inside)
    steps = [name for name in named if name not in {branch["name"] for branch in branches or []}]
    recipe, faults = parse_recipe(
        {
            "steps": [{"name": name, "initial": number == 0} for number, name in enumerate(steps)],
            "transitions": [
                {"source": source, "target": target, "condition": condition, "priority": number}
                for number, (source, target, condition) in enumerate(transitions)
            ],
            "branches": branches or [],
        }
    )
    assert recipe is not None
    assert not faults
    return recipe


def selection(*paths: list[str], name: str = "B") -> Json:
    return {"name": name, "type": "selection", "branches": list(paths)}


def simultaneous(*paths: list[str], name: str = "B") -> Json:
    return {"name": name, "type": "simultaneous", "branches": list(paths)}


@st.composite
def graphs(draw: st.DrawFn) -> Json:
    """Steps without branches whose transitions go anywhere."""
    size = draw(st.integers(2, 9))
    pairs = [(draw(st.integers(0, target - 1)), target) for target in range(1, size)]
    pairs += draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=6))
    return {
        "steps": [{"name": f"S{number}", "initial": number == 0} for number in range(size)],
        "transitions": [
            {
                "source": f"S{source}",
                "target": f"S{target}",
                "condition": f"c{number}",
                "priority": draw(st.integers(0, 3)),
            }
            for number, (source, target) in enumerate(pairs)
        ],
    }


@st.composite
def with_jumps(draw: st.DrawFn) -> Json:
    """Nested branches, and jumps from anywhere to anywhere that the checks let pass."""
    recipe: Json = draw(recipes())
    names = [step["name"] for step in (*recipe["steps"], *recipe["branches"])]
    jumps = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), min_size=1, max_size=4))
    for number, (source, target) in enumerate(jumps):
        more = {"source": source, "target": target, "condition": f"jump{number}", "priority": number - 2}
        longer = recipe | {"transitions": [*recipe["transitions"], more]}
        if isinstance(compile_recipe(longer), Net):
            recipe = longer
    return recipe


any_recipe = st.one_of(recipes(), graphs(), with_jumps())


def sound(data: Json) -> Recipe:
    net = compile_recipe(data)
    assume(isinstance(net, Net))
    assert isinstance(net, Net)
    return net.recipe
