"""Recipes in a short notation, for tests that look at one thing."""

import itertools
from typing import Any

from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.condition import NO_IDENTIFIERS, Identifiers
from edge.sfc.net import Net

Json = dict[str, Any]


def step(name: str, **keys: Any) -> Json:
    return {"name": name, **keys}


def transition(source: str, target: str, condition: str = "always", priority: int = 0) -> Json:
    return {"source": source, "target": target, "condition": condition, "priority": priority}


def action(name: str, step: str, qualifier: str = "N", **keys: Any) -> Json:
    return {
        "name": name,
        "step": step,
        "qualifier": qualifier,
        "interaction": "push_command",
        "type_id": f"{name}.v1",
        "timeout_seconds": 10,
        **keys,
    }


def wait(name: str, step: str, qualifier: str = "N", **keys: Any) -> Json:
    return action(name, step, qualifier, interaction="pull_event", **keys)


def branch(name: str, kind: str, *paths: str) -> Json:
    return {"name": name, "type": kind, "branches": [path.split() for path in paths]}


def recipe(names: str, transitions: list[Json], actions: list[Json] | None = None, *branches: Json) -> Json:
    """Make a recipe; the first of the named steps is initial."""
    steps = [step(name, initial=True) if at == 0 else step(name) for at, name in enumerate(names.split())]
    return {"steps": steps, "transitions": transitions, "actions": actions or [], "branches": list(branches)}


def chain(names: str, *actions: Json) -> Json:
    """Make a recipe of steps joined by `always`."""
    words = names.split()
    return recipe(names, [transition(a, b) for a, b in itertools.pairwise(words)], list(actions))


def net_of(data: Json, identifiers: Identifiers = NO_IDENTIFIERS) -> Net:
    net = compile_recipe(data, identifiers)
    assert isinstance(net, Net), net
    return net


def faults_of(data: Json) -> tuple[str, ...]:
    rejected = compile_recipe(data)
    assert isinstance(rejected, RejectedRecipe)
    return rejected.faults
