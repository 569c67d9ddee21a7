"""Builds small recipes for the tests of the check."""

from typing import Any

from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net

Json = dict[str, Any]


def action(name: str, step: str, **keys: Any) -> Json:
    """Return a command that a step sends, with a time limit of 30 s."""
    return {
        "name": name,
        "step": step,
        "qualifier": "N",
        "interaction": "push_command",
        "type_id": f"com.example.{name}.v1",
        "timeout_seconds": 30,
        **keys,
    }


def wait(name: str, step: str, **keys: Any) -> Json:
    """Return an action that waits for an event."""
    return action(name, step, interaction="pull_event", **keys)


def way(source: str, target: str, condition: str = "always", priority: int = 0) -> Json:
    """Return a transition."""
    return {"source": source, "target": target, "condition": condition, "priority": priority}


def recipe(*transitions: Json, actions: tuple[Json, ...] = (), **keys: Any) -> Json:
    """Return a recipe whose steps are those of its transitions and branches; the first source is initial."""
    branches = keys.get("branches", [])
    names = {branch["name"] for branch in branches}
    inner = [name for branch in branches for path in branch["branches"] for name in path]
    ends = [transition[end] for transition in transitions for end in ("source", "target")]
    steps = [name for name in dict.fromkeys([*ends, *inner, *(item["step"] for item in actions)]) if name not in names]
    locks = keys.pop("locks", {})
    interventions = keys.pop("at_steps", {})
    return {
        "steps": [
            {"name": name, "initial": number == 0}
            | ({"lock": locks[name]} if name in locks else {})
            | ({"interventions": interventions[name]} if name in interventions else {})
            for number, name in enumerate(steps)
        ],
        "transitions": list(transitions),
        "actions": list(actions),
        **keys,
    }


def net_of(data: Json) -> Net:
    """Compile a recipe that has no faults."""
    net = compile_recipe(data)
    assert isinstance(net, Net), net.faults
    return net
