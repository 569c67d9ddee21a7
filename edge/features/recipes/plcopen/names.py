"""Converts the names of a recipe to identifiers of a PLC, different ones without regard to case."""

from __future__ import annotations

import itertools
import re

from msgspec import Struct

from edge.features.recipes.plcopen.st_text import is_plain_name
from edge.model.recipe import Recipe


class PlcNames(Struct, frozen=True):
    """The names of steps, branches and actions in the PLC, by those in the recipe."""

    steps: dict[str, str]
    branches: dict[str, str]
    actions: dict[str, str]

    @property
    def all(self) -> list[str]:
        """Return every name in the PLC."""
        return [*self.steps.values(), *self.branches.values(), *self.actions.values()]


class NameGiver:
    """Returns a name of a PLC for each name, each once."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def name(self, wanted: str) -> str:
        """Return the name itself where it can stand in a PLC, else one like it."""
        plain = wanted if is_plain_name(wanted) else _plain(wanted)
        numbered = (f"{plain}_{number}" for number in itertools.count(2))
        name = next(name for name in itertools.chain((plain,), numbered) if name.upper() not in self._used)
        self._used.add(name.upper())
        return name


def _plain(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:60]
    return text if is_plain_name(text) else f"N_{text}".rstrip("_")


def names_of_recipe(recipe: Recipe, giver: NameGiver) -> PlcNames:
    """Return the names of a recipe in the PLC; those that can stay are given first."""
    actions = list(dict.fromkeys(action.name for action in recipe.actions))
    groups = ([step.name for step in recipe.steps], [branch.name for branch in recipe.branches], actions)
    names: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({}, {}, {})
    for is_plain in (True, False):
        for group, given in zip(groups, names, strict=True):
            given.update({name: giver.name(name) for name in group if is_plain_name(name) is is_plain})
    return PlcNames(*names)
