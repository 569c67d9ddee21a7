"""The data of the HTTP API about recipes, and the orders of jobs made from them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

_Id = Annotated[str, Meta(min_length=1, max_length=255)]


class ParameterLine(Struct, frozen=True, kw_only=True):
    """A parameter of a Work Master with its default value and unit."""

    id: str
    value: Any
    unit: str
    description: str


class RecipeLine(Struct, frozen=True, kw_only=True):
    """A Work Master of a scope; `has_recipe` is false where its content is for another program."""

    scope: str
    id: str
    description: str
    has_recipe: bool
    parameters: tuple[ParameterLine, ...]


class RecipeList(Struct, frozen=True, kw_only=True):
    """The Work Masters of the scopes of this gateway."""

    recipes: tuple[RecipeLine, ...]


class RecipeBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe to check or to draw, with `active` steps to mark."""

    recipe: Any
    active: Annotated[tuple[Annotated[str, Meta(max_length=255)], ...], Meta(max_length=1000)] = ()


class RecipeResult(Struct, frozen=True, kw_only=True):
    """All faults of a recipe, and its chart as SVG with the faulty or active steps marked; empty when it has none."""

    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    chart: str


class SimulationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe to simulate, with the answers and events of its equipment as `edge simulate --script` takes them."""

    recipe: Any
    script: Any = None


class SimulatedEvent(Struct, frozen=True, kw_only=True):
    """One event of a simulation, `t` seconds after its start, and the steps that are active after it."""

    t: float
    text: str
    active: tuple[str, ...]


class SimulationResult(Struct, frozen=True, kw_only=True):
    """What happened in a simulation, in the order of time; `truncated` says that later events are left out."""

    events: tuple[SimulatedEvent, ...]
    warnings: tuple[str, ...]
    outcome: str
    truncated: bool


class JobOrderBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job order for a Work Master; with `start` it may start at once, else it waits to be allowed."""

    scope: _Id
    id: _Id
    work_master: _Id
    parameters: Annotated[Mapping[str, Any], Meta(max_length=500)] = {}
    priority: Annotated[int, Meta(ge=-32768, le=32767)] | None = None
    start_time: datetime | None = None
    start: bool = True
