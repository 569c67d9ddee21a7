"""The recipe that an export put into a file: what of it still counts where another tool has changed the chart.

The chart wins. A step, an action or a branch that the chart has as the export wrote it keeps its other members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from edge.features.recipes.plcopen.chart import MAX_ENDS
from edge.features.recipes.plcopen.extent import ends_of
from edge.features.recipes.plcopen.names import NameGiver, PlcNames, names_of_recipe
from edge.features.recipes.plcopen.recipe import Json
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.json_value import read_json_text
from edge.model.recipe import Action, Branch, Step, parse_recipe
from edge.sfc.check import shape_faults
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import QUALIFIER_RULES, Net

_CHART_OF_STEP = frozenset({"name", "initial"})
ActionKey = tuple[str, str, str, float]
"""An action as the chart has it: its name, step, qualifier and duration."""


class Original(Struct):
    """A recipe as it was exported: its data, and its names in the PLC."""

    data: Json
    net: Net
    names: PlcNames

    @property
    def steps(self) -> Mapping[str, str]:
        """The names of steps by those in the PLC, in upper case."""
        return {plc.upper(): name for name, plc in self.names.steps.items()}

    @property
    def actions(self) -> Mapping[str, str]:
        """The names of actions by those in the PLC, in upper case."""
        return {plc.upper(): name for name, plc in self.names.actions.items()}


def read_original(text: str) -> Original | None:
    """Return the recipe in the `addData` of a POU; None where it is not a sound recipe."""
    try:
        data = read_json_text(text.encode())
    except Refused:
        return None
    recipe, form = parse_recipe(data)
    if recipe is None or form or shape_faults(recipe) or ends_of(recipe) > MAX_ENDS:
        return None
    net = compile_recipe(data)
    if not isinstance(net, Net):
        return None
    return Original(data, net, names_of_recipe(net.recipe, NameGiver()))


class Members:
    """Hands out the members of a recipe to the elements of a chart that have not changed."""

    def __init__(self, original: Original) -> None:
        recipe = original.net.recipe
        self._steps = {step.name: _json_of(step) for step in recipe.steps}
        self._actions: dict[ActionKey, list[Json]] = {}
        for action in recipe.actions:
            duration = action.duration_seconds if QUALIFIER_RULES[action.qualifier].timed else 0
            key = (action.name, action.step, action.qualifier.value, float(duration))
            self._actions.setdefault(key, []).append(_json_of(action))
        self._branches = {_members_of(_json_of(branch)): branch for branch in recipe.branches}
        self._interventions = [word.value for word in recipe.interventions]

    def add_to(self, recipe: Json) -> None:
        """Add what steps, branches and the recipe itself had."""
        for step in recipe["steps"]:
            members = self._steps.pop(step["name"], {})
            step.update({key: value for key, value in members.items() if key not in _CHART_OF_STEP})
        self._add_branches(recipe)
        if self._interventions:
            recipe["interventions"] = self._interventions

    def _add_branches(self, recipe: Json) -> None:
        names: dict[str, str] = {}
        used = {part["name"] for part in (*recipe["steps"], *recipe["branches"])}
        for branch in recipe["branches"]:
            original = self._branches.pop(_members_of(branch), None)
            if original is not None and (original.name == branch["name"] or original.name not in used):
                names[branch["name"]] = original.name
                branch.update(_json_of(original) | {"branches": branch["branches"]})
        for branch in recipe["branches"]:
            branch["branches"] = [[names.get(name, name) for name in path] for path in branch["branches"]]
        for transition in recipe["transitions"]:
            for end in ("source", "target"):
                transition[end] = names.get(transition[end], transition[end])

    def action(self, key: ActionKey) -> Json | None:
        """Return an action of the recipe, each once; None where the chart has changed it."""
        actions = self._actions.get(key)
        return actions.pop(0) if actions else None

    def lost(self) -> Iterator[Text]:
        """Yield what is not taken over, because the chart has changed."""
        for name, step in self._steps.items():
            if step.keys() - _CHART_OF_STEP:
                yield Text.of("the members of step {name!r} are not carried over: the chart has changed", name=name)
        for (name, step_name, _, _), actions in self._actions.items():
            if actions:
                yield Text.of(
                    "the members of action {name!r} in step {step!r} are not carried over: the chart has changed",
                    name=name,
                    step=step_name,
                )
        for branch in self._branches.values():
            if branch.lock:
                yield Text.of(
                    "the locks of branch {name!r} are not carried over: the chart has changed", name=branch.name
                )


def _json_of(part: Step | Action | Branch) -> Json:
    """Return a part of a recipe as it stands in JSON."""
    data: Json = msgspec.json.decode(msgspec.json.encode(part))
    return data


def _members_of(branch: Json) -> tuple[object, ...]:
    return (branch["type"], *(tuple(sorted(path)) for path in branch["branches"]))
