"""The form of a trial: the values that conditions of a recipe ask for, so that a person does not write JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct

from edge.expression.syntax import Compare, Kind, Literal, Name, Node, needed_kinds, nodes_of
from edge.features.recipes.footprint import tree_of
from edge.model.recipe import Recipe

_KINDS: Final = {Kind.TRUTH: "flag", Kind.NUMBER: "number", Kind.STRING: "text"}


class TrialField(Struct, frozen=True, kw_only=True):
    """A value to enter: `kind` is `flag`, `number`, `text` or empty, `values` are those that conditions compare with.

    `name` is the path below a result or an order parameter: `torque` or `geometry.height`.
    """

    name: str
    kind: str
    values: tuple[Any, ...] = ()


def result_fields(recipe: Recipe, action: str) -> tuple[TrialField, ...]:
    """Return what conditions ask for in the result of an action, then the plain names: a result may set them."""
    own = _fields(recipe, ("actions", action, "result"))
    names = {field.name for field in own}
    return (*own, *(field for field in _fields(recipe, ()) if field.name not in names))


def parameter_fields(recipe: Recipe) -> tuple[TrialField, ...]:
    """Return the order parameters that conditions name, then the plain names: an order may set them."""
    own = _fields(recipe, ("job", "parameters"))
    names = {field.name for field in own}
    return (*own, *(field for field in _fields(recipe, ()) if field.name not in names))


def _fields(recipe: Recipe, below: tuple[str, ...]) -> tuple[TrialField, ...]:
    """Return the names below a path; below the empty path those of one part, the job variables."""
    kinds, values = dict[str, str](), dict[str, dict[Any, None]]()
    for tree in _trees(recipe):
        for node in nodes_of(tree):
            if isinstance(node, Name) and (name := _below(node, below)):
                kinds.setdefault(name, "")
                values.setdefault(name, {})
        for node, kind in needed_kinds(tree, Kind.TRUTH):
            if isinstance(node, Name) and (name := _below(node, below)):
                kinds[name] = kinds[name] or _KINDS[kind]
        for name, value in _compared(tree, below):
            values[name][value] = None
    return tuple(TrialField(name=name, kind=kind, values=tuple(values[name])) for name, kind in kinds.items())


def _trees(recipe: Recipe) -> Sequence[Node]:
    conditions = [transition.condition for transition in recipe.transitions]
    return [tree_of(text) for text in (*conditions, *([] if recipe.verdict is UNSET else [recipe.verdict]))]


def _below(name: Name, below: tuple[str, ...]) -> str:
    """Return the rest of a name below a path; empty where it stands elsewhere."""
    rest = name.path[len(below) :]
    if name.path[: len(below)] != below or not rest or not all(isinstance(part, str) for part in rest):
        return ""
    return ".".join(map(str, rest)) if below or len(rest) == 1 else ""


def _compared(tree: Node, below: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield each name below a path with a number or text that it is compared with."""
    for node in nodes_of(tree):
        match node:
            case (
                Compare(left=Name() as name, right=Literal(value=value))
                | Compare(left=Literal(value=value), right=Name() as name)
            ) if not isinstance(value, bool):
                if found := _below(name, below):
                    yield found, value
            case _:
                pass
