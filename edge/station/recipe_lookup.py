"""Find the recipe and the parameters with which a job order runs, or why it cannot run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from edge.model.exact_value import plain_value
from edge.model.isa95 import JobOrder, Parameter
from edge.model.recipe import RECIPE_DATASCHEMA, is_recipe_schema
from edge.sfc.compiler import RejectedRecipe
from edge.sfc.net import Net
from edge.store import resources
from edge.store.client import Store


@dataclass(frozen=True, slots=True)
class FoundRecipe:
    """The compiled recipe of a job order, and its parameters by id."""

    net: Net
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NoRecipe:
    """Why a job order cannot run."""

    reason: str


class RecipeLookup:
    """Finds recipes in the Work Masters of a scope."""

    def __init__(
        self,
        store: Store,
        compiler: Callable[[str], Net | RejectedRecipe],
        unrouted: Callable[[Net], Sequence[str]] = lambda _: (),
    ) -> None:
        """Create the lookup; `unrouted` returns the command types of a recipe that no equipment takes."""
        self._store = store
        self._compiler = compiler
        self._unrouted = unrouted

    async def find(self, scope: str, order: JobOrder) -> FoundRecipe | NoRecipe:
        """Return the recipe of an order. Raises Unavailable when the store is gone."""
        masters = order.work_master_id or ()
        if not masters:
            return NoRecipe("the job order names no Work Master")
        if len(masters) > 1:
            return NoRecipe(f"the job order names {len(masters)} Work Masters; name one")
        named = masters[0]
        master = await resources.load_work_master(self._store, named.id, scope)
        if master is None:
            return NoRecipe(f"Work Master {named.id!r} is not known to this station")
        if not is_recipe_schema(master.dataschema):
            return NoRecipe(f"Work Master {named.id!r} holds no SFC recipe (dataschema {RECIPE_DATASCHEMA})")
        net = self._compiler(msgspec.json.encode(master.data).decode())
        if isinstance(net, RejectedRecipe):
            return NoRecipe(f"the recipe of Work Master {named.id!r} is refused: {'; '.join(net.faults)}")
        if unrouted := self._unrouted(net):
            return NoRecipe(f"no equipment takes commands of type {', '.join(unrouted)}")
        return FoundRecipe(net, _parameters(master.parameters, named.parameters, order.job_order_parameters))


def _parameters(*lists: tuple[Parameter, ...] | None) -> dict[str, Any]:
    """Merge parameters by id: those of a later list replace those of an earlier one."""
    return {each.id: _plain(each) for parameters in lists for each in parameters or ()}


def _plain(parameter: Parameter) -> object:
    if parameter.subparameters:
        return {each.id: _plain(each) for each in parameter.subparameters}
    return plain_value(parameter.value)
