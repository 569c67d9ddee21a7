"""Find the recipe and the parameters with which a job order runs, or why it cannot run."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from edge.model.isa95 import JobOrder, Parameter
from edge.model.json_value import plain_value
from edge.model.recipe import RECIPE_DATASCHEMA, is_recipe_schema
from edge.sfc.compiler import RejectedRecipe
from edge.sfc.net import Net
from edge.store import resources
from edge.store.client import Store
from edge.store.commit import Commit

_UNGUARDED = Commit()


class FoundRecipe(Struct, frozen=True):
    """The compiled recipe of a job order, and its parameters by id; `guard` fails once the Work Master has changed."""

    net: Net
    parameters: dict[str, Any]
    guard: Commit = _UNGUARDED


class _KnownMaster(Struct, frozen=True):
    """The recipe of a Work Master as read last."""

    net: Net
    parameters: tuple[Parameter, ...] | None
    guard: Commit


class NoRecipe(Struct, frozen=True):
    """The reason why a job order cannot run."""

    reason: str


_MAX_KNOWN = 64


class RecipeLookup:
    """Finds recipes in the Work Masters of a scope and caches them.

    A cached recipe may be old: a commit that uses it takes its guard. When the guard fails, call `forget`.
    """

    def __init__(
        self,
        store: Store,
        compiler: Callable[[str], Net | RejectedRecipe],
        unrouted: Callable[[Net], Sequence[str]] = lambda _: (),
        mirrors: Collection[str] = (),
    ) -> None:
        """Create the lookup; `unrouted` returns the command types of a recipe that no equipment takes.

        `mirrors` are the names of the mirrored sets that there are.
        """
        self._store = store
        self._compiler = compiler
        self._unrouted = unrouted
        self._mirrors = frozenset(mirrors)
        self._known: dict[tuple[str, str], _KnownMaster] = {}

    def forget(self, stale: str) -> None:
        """Remove the recipes of the Work Master at a key from the cache."""
        for name, known in tuple(self._known.items()):
            if any(guard.key == stale for guard in known.guard.guards):
                del self._known[name]

    async def find(self, scope: str, order: JobOrder) -> FoundRecipe | NoRecipe:
        """Return the recipe of an order. Raises Unavailable when the store is gone."""
        masters = order.work_master_id or ()
        if not masters:
            return NoRecipe("the job order names no Work Master")
        if len(masters) > 1:
            return NoRecipe(f"the job order names {len(masters)} Work Masters; name one")
        named = masters[0]
        known = self._known.get((scope, named.id)) or await self._load(scope, named.id)
        if isinstance(known, NoRecipe):
            return known
        if unrouted := self._unrouted(known.net):
            return NoRecipe(f"no equipment takes commands of type {', '.join(unrouted)}")
        if absent := sorted(known.net.mirrors - self._mirrors):
            return NoRecipe(f"its conditions ask for a mirror that this gateway has not: [mirror.{absent[0]}]")
        parameters = _parameters(known.parameters, named.parameters, order.job_order_parameters)
        return FoundRecipe(known.net, parameters, known.guard)

    async def _load(self, scope: str, work_master_id: str) -> _KnownMaster | NoRecipe:
        found = await resources.load_work_master_at_revision(self._store, work_master_id, scope)
        if found is None:
            return NoRecipe(f"Work Master {work_master_id!r} is not known to this station")
        master, revision = found
        if not is_recipe_schema(master.dataschema):
            return NoRecipe(f"Work Master {work_master_id!r} holds no SFC recipe (dataschema {RECIPE_DATASCHEMA})")
        net = self._compiler(msgspec.json.encode(master.data).decode())
        if isinstance(net, RejectedRecipe):
            return NoRecipe(f"the recipe of Work Master {work_master_id!r} is refused: {'; '.join(net.faults)}")
        known = _KnownMaster(net, master.parameters, Commit(guards=(revision,)))
        self._known[scope, work_master_id] = known
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return known


def _parameters(*lists: tuple[Parameter, ...] | None) -> dict[str, Any]:
    """Merge parameters by id: those of a later list replace those of an earlier one."""
    return {parameter.id: _plain(parameter) for parameters in lists for parameter in parameters or ()}


def _plain(parameter: Parameter) -> object:
    if parameter.subparameters:
        return {subparameter.id: _plain(subparameter) for subparameter in parameter.subparameters}
    return plain_value(parameter.value)
